"""A call goes along with a wait: what comes at once is served without going back and forth."""

from __future__ import annotations

import asyncio
import socket

import hiredis
import pytest
from oracle_clients import Client
from oracle_loops import run as run_loop
from servers import Server
from waiting import Background, blocked, settled, until, waiters

from pressure_mp import Empty, JoinableQueue, PressureQueue, Queue
from pressure_mp.engines.redis.outage import Lane

#: Milliseconds of a lease that nobody waits for.
LEASE = 20_000


class Waiter:
    """A client whose every step is seen: it takes a role, waits, and a call goes along."""

    def __init__(self, server, q, op, args):
        host, port = "127.0.0.1", server.port
        self.binding = q._binding or q._attach()
        self.op, self.args, self.lane = op, args, Lane()
        self.socket = socket.create_connection((host, port), timeout=5)
        self.reader = hiredis.Reader()
        self.socket.sendall(hiredis.pack_command(("CLIENT", "ID")))
        self.conn = self.reply()

    def reply(self):
        while (reply := self.reader.gets()) is False:
            received = self.socket.recv(1 << 16)
            assert received, "the server hung up"
            self.reader.feed(received)
        return reply

    def packed(self, turn):
        args = (*self.args, "client", "host/1/00000000:1", b"wait", turn, LEASE)
        number = self.binding.number(self.op, self.lane)
        return self.binding.command(self.op, args, self.conn, self.lane, number)

    def take(self):
        self.socket.sendall(self.packed("first"))
        return self.reply()

    def wait(self, signal):
        command, _ = self.binding.waiting(signal, 5.0)
        self.socket.sendall(hiredis.pack_command(command) + self.packed("woken"))

    def release(self, q):
        q._run(_release("host/1/00000000:1"))


def _release(ticket):
    from pressure_mp.effects import Call

    return (yield Call("release", (ticket, "again", LEASE)))


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


@pytest.fixture
def consumer(server, name, client):
    """One that waits for an item with the consumer's role, since just now."""
    q = PressureQueue(name, url=server.url)
    q.create(1)
    with pytest.raises(Empty):
        q.get_nowait()  # the server has the script
    made = []

    def make():
        waiter = Waiter(server, q, "get", (0,))
        made.append(waiter.socket)
        assert waiter.take() == [b"empty", b"item"]
        waiter.wait("item")
        until(lambda: blocked(client) == 1)
        return waiter

    yield q, make
    for connected in made:
        connected.close()
    q.delete()


def test_an_item_that_comes_at_once_is_served_with_the_wake(consumer):
    q, make = consumer
    for _ in range(20):
        waiter = make()
        q.put(b"item")
        assert waiter.reply() == b"item"
        if waiter.reply() == [b"done", b"item"]:
            assert q.length() == 0
            return
        waiter.release(q)
        assert q.get() == b"item"  # the machine was busy
    raise AssertionError("it was never at once")


def test_an_item_that_comes_later_is_served_to_one_that_answers(consumer, client):
    """The one that waits may have been stopped or cut off meanwhile: nothing is given to it, and
    its lease is not renewed."""
    q, make = consumer
    waiter = make()
    settled(client, q.name)
    holder = client.hgetall(f"__pressure__:{q.name}:mp:consumer_holder")
    q.put(b"item")
    assert waiter.reply() == b"item"
    assert waiter.reply() == [b"declined"]
    assert client.hgetall(f"__pressure__:{q.name}:mp:consumer_holder") == holder
    assert q.get_nowait() == b"item"
    waiter.release(q)


def test_nothing_is_served_to_one_that_gave_its_role_back(consumer, client):
    q, make = consumer
    waiter = make()
    waiter.release(q)
    client.client_unblock(waiter.conn)
    assert waiter.reply() is None
    assert waiter.reply() == [b"declined"]
    q.put(b"item")
    assert q.get() == b"item"


def test_nothing_is_served_to_one_that_is_gone(consumer, client):
    """As a process that is killed: the server drops what a connection sent before it ended."""
    q, make = consumer
    for _ in range(20):
        waiter = make()
        waiter.socket.close()
        q.put(b"item")
        assert q.get_nowait() == b"item"
        until(lambda: blocked(client) == 0)
        waiter.release(q)


def test_a_wait_that_is_cut_off_as_the_item_comes_gives_it_once(server, name, client):
    q = Queue(name=name, url=server.url)
    for number in range(30):
        getting = Background(q.get)
        waiter = waiters(client)[0]
        with client.pipeline(transaction=False) as pipeline:
            if number % 2:
                pipeline.client_kill_filter(_id=waiter)
            pipeline.lpush(f"__pressure__:{name}", q._codec.encode(number))
            if not number % 2:
                pipeline.client_kill_filter(_id=waiter)
            pipeline.execute()
        assert getting.result() == number
        assert q.empty()
    q.delete()


def test_a_task_that_is_cancelled_as_its_item_comes(server, name, client):
    """It got the item, or the item is there."""
    queue = Client(server.url, name)
    queue.open()

    async def main():
        for number in range(50):
            item = b"%d" % number
            task = asyncio.ensure_future(queue.aget())
            while not blocked(client):
                await asyncio.sleep(0)
            putting = asyncio.ensure_future(queue.aput(item))
            for _ in range(number % 10):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task, putting})
            got = [] if task.cancelled() else [task.result()]
            rest = [await queue.aget(block=False) for _ in range(await queue.alength())]
            assert got + rest == [item]
            assert queue.roles() == []

    run_loop(main)


@pytest.mark.parametrize("kind", ["valkey", "redis"])
def test_a_hand_off_is_one_script_for_each_side(kind, name):
    """Beside that one by which the consumer said that it waits."""
    server = Server(kind)
    try:
        server.start()
        q = Queue(1, name, url=server.url)
        q.put(0)
        q.get()
        with server.client() as client:
            counts = []
            for _ in range(20):
                before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
                getting = Background(q.get)
                until(lambda: blocked(client))
                q.put(1)
                assert getting.result() == 1
                counts.append(client.info("commandstats")["cmdstat_evalsha"]["calls"] - before)
        # The first get tries the short way before it waits.
        assert min(counts) == 3
    finally:
        server.stop()


def test_space_that_comes_at_once_is_used_with_the_wake(server, name):
    q = Queue(1, name, url=server.url)
    for number in range(200):
        q.put(number, timeout=5)
        putting = Background(q.put, -number)
        assert [q.get(timeout=5), q.get(timeout=5)] == [number, -number]
        putting.result()
    q.delete()


def test_an_item_for_a_joinable_queue_is_in_flight_once(server, name, client):
    q = JoinableQueue(name=name, url=server.url)
    for number in range(50):
        getting = Background(q.get)
        until(lambda: blocked(client))
        q.put(number)
        assert getting.result() == number
        assert q.stats().in_flight == 1
        q.task_done()
    q.delete()
