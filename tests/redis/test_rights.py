"""The rights that docs/security.md grants are enough, and none of them is too much.

Beside this, the tests that take the fixture ``url`` run as that user on one kind of server.
"""

from __future__ import annotations

import asyncio
import pickle
import re
from importlib import resources

import inside
import pytest
from brokers import rights
from oracle.delivery_clients import alone, end_alone, ended

import pressure_mp
from pressure_mp import FairQueue, PressureError, PriorityQueue, Queue, TaskQueue
from pressure_mp.drivers import adrive, drive
from pressure_mp.encoding.large import HEAD_SIZE, MARK, Large, Manifest
from pressure_mp.engines.contract.items import EndPrefetch, Prefetch
from pressure_mp.engines.redis import scripts
from pressure_mp.engines.redis.commands import Command
from pressure_mp.identity.client import client_id, process_prefix
from pressure_mp.operations.deliveries import DeliveryOperations
from pressure_mp.operations.items import ItemOperations
from pressure_mp.operations.large import fetch, sweep

LUA = resources.files("pressure_mp.engines.redis") / "lua"
SCRIPTS = {**scripts.load("fair"), **scripts.load("fifo")}

#: Only this file uses it.
DATABASE = 9

#: Commands that are sent to the server as they are; a script calls all other commands.
SENT = {
    *("evalsha", "script|load", "blmove", "brpop", "client|unblock", "select"),
    *("sadd", "smembers", "srem", "unlink"),  # anonymous queues
    *("multi", "exec"),  # what tasks of an event loop ask for together
    "hget",  # a part of a large item
    "info",  # whether the server removes keys by itself
    "type",  # of the keys of a queue, for an error that names the wrong one
}


def called_by_scripts():
    texts = [
        re.sub(r"--.*", "", file.read_text(encoding="utf-8"))
        for folder in LUA.iterdir()
        for file in folder.iterdir()
    ]
    return {
        command.lower() for text in texts for command in re.findall(r"\.p?call\(\s*'(\w+)'", text)
    }


class Interrupted:
    """A serializer whose user presses Ctrl-C whenever an item is decoded."""

    dumps = staticmethod(bytes)

    def loads(self, payload):
        raise KeyboardInterrupt


class Uses:
    """Everything that a client asks of a server, without ever waiting for another client."""

    def __init__(self, server, user, name):
        self.url = f"{rights.url(server, user)}?db={DATABASE}"
        self.name = name
        self.admin = server.client()
        self.admin.select(DATABASE)
        self.operations = ItemOperations(name, "fifo")

    def make(self):
        self.admin.script_flush()
        self.queue = Queue(2, self.name, url=self.url)
        binding = inside.bind(self.queue)
        self.session, self.asession = binding.session, binding.asession

    def run(self, operation):
        return drive(operation, self.session())

    def put_and_get(self):
        self.queue.put_nowait(1)
        self.queue.put_nowait(2)
        self.queue.get_nowait()
        self.queue.get_nowait()
        self.queue.task_done()
        self.run(self.operations.put_many([b"3", b"4"], False, None))
        self.run(self.operations.get_many(2, False, None))

    def set_an_item_aside(self):
        self.queue.put_nowait(3)
        self.run(self.operations.reject(self.run(self.operations.get(False, None))))
        self.queue.rejected()
        self.queue.requeue_rejected()
        self.run(self.operations.reject(self.run(self.operations.get(False, None))))
        self.queue.put_nowait(3)
        self.queue.peek()
        self.queue.purge()
        self.queue.drop_rejected()

    def take_and_requeue(self):
        """Two come back one after the other, and then the stream is over while one is in flight."""
        operations = DeliveryOperations(self.name, "fifo")
        self.queue.put_nowait(4)
        self.queue.put_nowait(5)
        self.run(operations.take_many("A", 1, 0, 1, False, None))
        second = self.run(operations.take_many("B", 2, 0, 1, False, None))[0]
        self.run(operations.requeue("B"))
        self.run(operations.requeue("A"))
        self.run(operations.take_many("A", 3, 0, 1, False, None))
        second = self.run(operations.take_many("B", 4, 0, 1, False, None))[0]
        self.run(operations.acknowledge("B", second.seq))
        self.run(operations.renew("B", True, True))
        self.run(operations.retire("B"))
        with pytest.raises(pressure_mp.Empty):
            self.run(operations.take_many("B", 5, 0, 1, False, None, eof=True))
        self.run(operations.acknowledge("C", None))

    def move_large_items(self):
        """One is read; one is set aside."""
        large = Large([memoryview(b"x")], bytes, is_signed=False)
        for end in (lambda manifest: sweep(manifest.token), self._reject):
            self.run(self.operations.put(large, False, None))
            item = self.run(self.operations.get(False, None))
            manifest = Manifest(item, item[HEAD_SIZE:], is_signed=False)
            self.run(fetch(manifest))
            session = self.session()
            session.script("renew_content", (manifest.token, 5000))
            session.end()
            self.run(end(manifest))

    def _reject(self, manifest):
        return self.operations.reject(MARK + manifest.token.encode() + b"0" * 16)

    def fetch_and_put_back(self):
        operations = DeliveryOperations(self.name, "fifo")
        self.queue.put_many([6, 7], block=False)
        self.run(operations.prefetch(Prefetch("A#1", 1, 0, 0, 1)))
        self.run(operations.prefetch(Prefetch("A#1", 1, 0, 0, 0)))
        self.run(operations.prefetch(Prefetch("B#1", 1, 0, 0, 1)))
        self.run(ended(EndPrefetch("B#1", 2, 0)))
        self.run(operations.requeue("A"))
        self.queue.get_many(9, block=False)

    def move_from_shared_memory(self):
        args = (1, 1, 0, 0, b"client", 1, pickle.dumps(8))
        assert self.session().script("add_moved", args) == [b"done"]
        held = (1, 1, 0, 1, "A", pickle.dumps(7))
        assert self.session().script("add_held", (1000, 1, *held)) == [b"done"]
        assert self.session().script("were_moved") == [b"done", 1]
        self.queue.get_nowait()

    def read_ahead(self):
        operations = DeliveryOperations(self.name, "fifo")
        self.queue.put_many([8, 8], block=False)
        self.run(operations.prefetch(alone("A:reader-1", 1, 0, 0, 1)))
        self.run(ended(end_alone("A:reader-1", 1, 0)))
        self.run(operations.prefetch(alone("A:reader-1", 2, 0, 0, 1)))
        self.run(ended(end_alone("A:reader-1", 2, 1)))
        here = (client_id(), process_prefix(), 5000)
        session = self.session()
        self.run(operations.prefetch(alone("A:reader-3", 1, 0, 0, 9)))
        args = ("A:reader-3", 2, 0, 0, 0, 0, *here)
        assert session.script("reserve_unbounded", args)[0] in (b"done", b"declined")
        self.run(ended(end_alone("A:reader-3", 2, 0)))
        session.end()
        self.queue.get_nowait()

    def look(self):
        self.queue.exists()
        self.queue.qsize()
        self.queue.stats()
        self.run(self.operations.join(0.01))
        assert not self.queue.is_shutdown
        assert not self.queue.why_blocked().closed
        self.queue.maxsize = 1

    def wait_in_line(self):
        """One holds the consumer's role; another is granted it, and gives it back."""
        holding, waiting = self.session(), self.session()
        holding.script("get_or_wait", ("holder", "h/1/1:1", 5000, ""))
        waiting.script("get", (0, "waiter", "h/1/1:2", b"wait", "first", 5000))
        holding.park("item", 0.01)
        holding.script("release", ("h/1/1:1", "", 5000))
        assert waiting.park("consumer", 0.1)
        waiting.script("release", ("h/1/1:2", "consumer", 5000))
        waiting.script("free_roles", ("h/1/1:1", 5000))
        holding.end()
        waiting.end()

    def wake(self):
        session = self.session()
        session.script("wake", (b"0",))
        session.end()

    def take_the_long_way(self):
        """A put that does not look at the bound, and so is not tried by the fast path."""
        self.run(self.operations.put(b"x", False, None, overfill=True))
        self.run(self.operations.get(False, None))

    def ask_together(self):
        """The first asks alone, and two others then."""
        for _ in range(3):
            self.run(self.operations.put(b"x", False, None, overfill=True))

        async def main():
            sessions = [self.asession() for _ in range(3)]
            await asyncio.gather(
                *(adrive(self.operations.get(True, 1.0), session) for session in sessions)
            )

        asyncio.run(main())

    def unlock(self):
        self.run(self.operations.unlock("consumer"))

    def meet_a_counter_that_is_no_number(self):
        """Whatever was done before the script came to it is taken back."""
        self._with_a_wrong_counter("produced_bytes", lambda: self.queue.put_nowait("goes back"))
        self.queue.put_nowait("stays")
        self._with_a_wrong_counter("consumed_bytes", self.queue.get_nowait)

    def _with_a_wrong_counter(self, counter, call):
        key = f"__pressure__:{self.name}:stats:{counter}"
        right = self.admin.getset(key, "many")
        try:
            call()
        except pressure_mp.WrongKeyTypeError:
            pass
        finally:
            self.admin.set(key, right or "0")

    def meet_a_queue_that_another_implementation_created(self):
        self.admin.persist(f"__pressure__:{self.name}:stats:consumed_bytes")
        self.queue.stats()

    def end_the_queue(self):
        self.queue.shutdown(immediate=True)
        self.queue.delete()

    def use_an_anonymous_queue(self):
        with Queue(url=self.url) as queue:
            operations = ItemOperations(queue.name, "fifo")
            with pytest.raises(pressure_mp.QueueMismatchError):  # which only a cluster is asked
                inside.run(queue, operations.look_for_rival())
            inside.run(queue, operations.enlist("elsewhere/1/1"))
            inside.run(queue, operations.users())
            inside.run(queue, operations.dismiss(["elsewhere/1/1"]))

    def interrupt_a_get(self):
        q = Queue(name=self.name, url=self.url, serializer=Interrupted())
        q.put(b"x")
        with pytest.raises(KeyboardInterrupt):
            q.get()
        assert Queue(name=self.name, url=self.url, serializer="raw").get_nowait() == b"x"

    def use_the_other_orders(self):
        other = self.name + "-2"
        with FairQueue(len, name=other, url=self.url) as fair:
            fair.put("x")
            fair.snapshot()
            fair.peek()
            fair.keys()
            fair.qsize(key=1)
            fair.get()
            fair.delete()
        with PriorityQueue(name=other, url=self.url) as urgent:
            urgent.put(1)
            urgent.put(2)
            urgent.get()
            urgent.delete()

    def use_tasks(self):
        with TaskQueue(self.name + "-3", url=self.url) as tasks:
            tasks.put_many([1, 2], tube="tube")
            tasks.take(0).ack()
            tasks.qsize("tube")
            tasks.take(0, tube="tube").bury()
            tasks.kick_many()
            with pytest.raises(pressure_mp.Empty):
                tasks.take(0.01, tube="another")
            tasks.put(3)
            tasks.delete()

    STEPS = (
        *(
            make,
            put_and_get,
            set_an_item_aside,
            interrupt_a_get,
            take_and_requeue,
            use_the_other_orders,
            move_large_items,
            fetch_and_put_back,
            read_ahead,
            move_from_shared_memory,
        ),
        *(look, wait_in_line, wake, take_the_long_way, ask_together, unlock),
        *(meet_a_counter_that_is_no_number, meet_a_queue_that_another_implementation_created),
        *(end_the_queue, use_an_anonymous_queue, use_tasks),
    )

    def everything(self, tolerant=False):
        """Every step in turn; with ``tolerant``, go on after a refusal."""
        try:
            for step in self.STEPS:
                try:
                    step(self)
                except (PressureError, AssertionError, AttributeError):
                    if not tolerant:
                        raise
        finally:
            self.admin.delete("none", *self.admin.scan_iter(match="__pressure__:*"))
            self.admin.close()


def test_the_document_grants_the_commands_that_are_sent_or_called_by_scripts():
    assert sorted(rights.granted()) == sorted(SENT | called_by_scripts())
    assert "reset" in rights.line()
    assert [word for word in rights.line() if word[0] == "~"] == ["~__pressure__:*"]


def test_nothing_is_refused_to_the_documents_user(server, name, monkeypatch):
    ran = set()
    pack = Command.pack

    def noting(command, *rest):
        ran.add(command.script.name)
        return pack(command, *rest)

    monkeypatch.setattr(Command, "pack", noting)
    with server.client() as client:
        rights.make_user(client, name)
        client.execute_command("ACL LOG", "RESET")
        Uses(server, name, name).everything()
        assert rights.refusals(client, name) == set()
        client.execute_command("ACL DELUSER", name)
    assert set(SCRIPTS) <= ran, "a new operation: add it to the steps"


@pytest.mark.parametrize("missing", rights.granted())
def test_without_one_of_its_rights_the_user_is_refused_something(valkey, name, missing):
    with valkey.client() as client:
        rights.make_user(client, name, without=missing)
        client.execute_command("ACL LOG", "RESET")
        Uses(valkey, name, name).everything(tolerant=True)
        assert missing in rights.refusals(client, name)
        client.execute_command("ACL DELUSER", name)


def test_the_documents_user_reaches_no_other_keys(server, name):
    with server.client() as client:
        rights.make_user(client, name)
        with pytest.raises(pressure_mp.BrokerError, match="NOPERM"):
            Queue(name=name, prefix="other", url=Uses(server, name, name).url).open()
        client.execute_command("ACL DELUSER", name)


def test_a_right_that_is_missing_is_an_error_and_not_a_wait_for_ever(server, name):
    with server.client() as client:
        rights.make_user(client, name, without="blmove")
        q = Queue(name=name, url=Uses(server, name, name).url)
        q.open()
        with pytest.raises(pressure_mp.BrokerError, match=r"NOPERM.*blmove"):
            q.get(timeout=20)
        assert q.empty()
        q.delete()
        client.execute_command("ACL SETUSER", name, "-select")
        with pytest.raises(pressure_mp.BrokerError, match=r"refuses the connection.*select"):
            Queue(name=name, url=f"{rights.url(server, name)}?db=8").open()
        client.execute_command("ACL DELUSER", name)


@pytest.mark.parametrize("missing", ["time", "lpush"])
def test_an_error_about_a_right_says_where_to_look(server, name, missing):
    with server.client() as client:
        rights.make_user(client, name, without=missing)
        url = Uses(server, name, name).url
        with pytest.raises(
            pressure_mp.BrokerError, match=f"{name} lacks the right.*ACL LOG.*security.md"
        ):
            Queue(name=name, url=url).get(timeout=20)
        client.execute_command("ACL DELUSER", name)
