"""why_blocked(), and what the errors of a wait in vain say."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import socket
import threading

import inside
import pytest
from oracle.clients import Client
from programs import dying_clients
from stepwise import StepwiseClient
from waiting import Background, until

from pressure_mp import (
    ConsumerInUseError,
    Diagnosis,
    Empty,
    Full,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    Queue,
    QueueDoesNotExistError,
    QueueInUseError,
    ShutDown,
)
from pressure_mp.effects import Until
from pressure_mp.engines.contract.queues import Inspect
from pressure_mp.engines.contract.replies import NoSpace, Outcome
from pressure_mp.engines.contract.session import ONE_TRY
from pressure_mp.engines.redis import scripts
from pressure_mp.identity.client import client_id, is_gone, parse_client, ticket
from pressure_mp.operations.items import ItemOperations

pytestmark = pytest.mark.usefixtures("world")


@pytest.fixture
def q(url, name):
    q = Queue(1, name, url=url, lease=30)
    yield q
    q.delete()


def begin(call, *args):
    """A call that waits, and the client id of the thread it waits in."""
    ids = []

    def run():
        ids.append(client_id())
        return call(*args)

    waiting = Background(run)
    return waiting, until(lambda: ids)[0]


def test_calls_wait_for_nothing_on_a_queue_that_is_neither_empty_nor_full(url, name):
    q = Queue(2, name, url=url)
    q.put(1)
    found = q.why_blocked()
    assert isinstance(found, Diagnosis)
    assert (found.queue, found.length, found.maxsize, found.closed) == (name, 1, 2, False)
    for side in (found.put, found.get):
        assert (side.waits_for, side.holder, side.line) == ("nothing", None, ())
    assert "\na put waits for nothing: the producer role is free" in str(found)
    q.shutdown()
    found = q.why_blocked()
    assert (found.put.waits_for, found.get.waits_for) == ("nothing", "nothing")
    assert "holds 1 of 2 items, and is shut down" in str(found)
    q.delete()
    with pytest.raises(QueueDoesNotExistError):
        q.why_blocked()


def test_an_empty_queue_and_a_full_one(q):
    found = q.why_blocked()
    assert (found.put.waits_for, found.get.waits_for) == ("nothing", "item")
    assert found.get.partners == ()
    assert not found.get.no_live_partner
    assert "a get waits for item: the consumer role is free; no producer was ever seen" in str(
        found
    )
    q.put(1)
    found = q.why_blocked()
    assert (found.put.waits_for, found.get.waits_for) == ("space", "nothing")


@pytest.mark.only_threads("a client id of asyncio is not that of the caller's thread")
@pytest.mark.parametrize(("operation", "role"), [("put", "producer"), ("get", "consumer")])
def test_the_holder_of_the_role_and_the_clients_in_line_are_named(q, operation, role):
    if operation == "put":
        q.put("full")
    call = (q.put, "x") if operation == "put" else (q.get,)
    waiting = []
    for number in range(3):
        waiting.append(begin(*call))
        until(lambda: getattr(q.why_blocked(), operation).holder)
        until(lambda number=number: len(getattr(q.why_blocked(), operation).line) == number)
    side = getattr(q.why_blocked(), operation)
    assert (side.waits_for, side.role, side.holder.state) == ("role", role, "waiting")
    holder = side.holder
    assert holder.peer.id == waiting[0][1]
    assert (holder.peer.host, holder.peer.pid) == (socket.gethostname(), os.getpid())
    assert holder.peer.thread != threading.get_native_id()
    assert holder.peer.alive is True
    assert 0 <= holder.age <= holder.held < 10
    assert 20 < holder.left <= 30
    assert [one.peer.id for one in side.line] == [client for _, client in waiting[1:]]
    assert side.line[0].waited >= side.line[1].waited >= 0
    text = str(q.why_blocked())
    assert re.search(
        rf"the {role} role is with pid {os.getpid()}, thread \d+ on .* \(alive\)", text
    )
    assert re.search(r"lease renewed \d+\.\d s ago, \d+\.\d s left\); 2 in line: pid", text)
    for _ in waiting:  # the server's line may have calls that came together in another order
        q.get() if operation == "put" else q.put("x")
    for one, _ in waiting:
        one.result()
    side = getattr(q.why_blocked(), operation)
    assert (side.holder, side.line) == (None, ())


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, LifoQueue])
@pytest.mark.parametrize(
    ("operation", "role", "method", "args"),
    [
        ("put", "producer", "put", ["x"]),
        ("put", "producer", "put_many", [["x"]]),
        ("get", "consumer", "get", []),
        ("get", "consumer", "get_many", [1]),
    ],
)
@pytest.mark.only_threads("a client id of asyncio is not that of the caller's thread")
def test_a_client_that_waits_with_a_role_is_known_as_its_holder(
    url, name, kind, operation, role, method, args
):
    """Before it put or got anything, and for other implementations too; unlike a client in line."""
    q = kind.create(name, 1, url=url, lease=30)
    q.put("full")
    if operation == "get":
        q.get()
    call = (getattr(q, method), *args)
    first, holder = begin(*call)
    until(lambda: getattr(q.why_blocked(), operation).holder)
    second, _ = begin(*call)
    until(lambda: getattr(q.why_blocked(), operation).line)
    assert getattr(q.stats(), role) == holder
    for waiting in (first, second):
        q.get() if operation == "put" else q.put("x")
        waiting.result()
    q.delete()


@pytest.mark.only_threads("the waiting calls of one event loop stand in a line of their own")
def test_a_long_line_is_counted_and_its_first_are_named(q):
    waiting = [Background(q.get) for _ in range(6)]
    until(lambda: len(q.why_blocked().get.line) == 5)
    assert re.search(r"; 5 in line: pid [^;]* and 2 more; ", str(q.why_blocked()))
    q.shutdown()
    for one in waiting:
        with pytest.raises(ShutDown):
            one.result()


def test_the_text_of_a_wait_in_vain_ends_with_what_was_in_the_way(q):
    with pytest.raises(Empty, match=r"is empty, still after 0\.1 s: holds 0 of 1 items; the cons"):
        q.get(timeout=0.1)
    getting, _ = begin(q.get)
    until(lambda: q.why_blocked().get.holder)
    with pytest.raises(Empty, match=f"the consumer role is with pid {os.getpid()}, "):
        q.get(timeout=0.1)
    q.put(1)
    assert getting.result() == 1
    q.put(2)
    with pytest.raises(Full, match="holds 1 of 1 items; the producer role is free"):
        q.put(3, timeout=0.1)
    putting, _ = begin(q.put, 3)
    until(lambda: q.why_blocked().put.holder)
    with pytest.raises(Full, match="which has waited for space for"):
        q.put(4, timeout=0.1)
    q.get()
    putting.result()


def test_the_text_of_a_call_that_does_not_wait_says_no_more_than_before(q):
    with pytest.raises(Empty, match=r"is empty$"):
        q.get_nowait()
    q.put(1)
    for call in (lambda: q.put_nowait(2), lambda: q.put(2, timeout=0)):
        with pytest.raises(Full, match=r"is full$"):
            call()


def test_a_call_that_does_not_wait_does_not_ask_why(own_server, name):
    def puts_and_gets():
        q = Queue(1, name, url=own_server.url)
        for call in (q.get_nowait, lambda: (q.put_nowait(1), q.put_nowait(2))):
            with pytest.raises((Empty, Full)):
                call()
        q.delete()

    with own_server.client() as client:
        puts_and_gets()  # the scripts are loaded
        client.config_resetstat()
        puts_and_gets()
        # To open; a get; one put that is done, and one that is declined by the fast path and by the
        # full call; and the end of the queue.
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == 1 + 1 + 1 + 2 + 1


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_an_error_stays_what_it_is_when_the_reason_cannot_be_found():
    put = iter(ItemOperations("q", "fifo").put(b"x", True, 0.01))
    effect = next(put)
    while not (isinstance(effect, Until) and isinstance(effect.request, Inspect)):
        effect = put.send(NoSpace(1))
    assert effect.end == ONE_TRY
    with pytest.raises(Full, match=r"after 0\.01 s: it is not known why: queue 'q' does not exist"):
        put.send(Outcome.MISSING)


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_why_blocked_can_be_called_under_asyncio(url, name):
    client = Client(url, name)
    client.open(1)
    found = asyncio.run(client.arun(client.operations.why_blocked()))
    assert found.get.waits_for == "item"
    client.run(client.operations.delete(True, None))


# Which clients live.


@pytest.mark.only_threads("a client id of asyncio is not that of the caller's thread")
def test_no_live_producer(server, name):
    q = Queue(5, name, url=server.url)
    producer = multiprocessing.get_context("spawn").Process(target=q.put, args=(1,))
    producer.start()
    producer.join()
    q.get()
    side = q.why_blocked().get
    assert side.no_live_partner
    assert [(peer.pid, peer.alive) for peer in side.partners] == [(producer.pid, False)]
    expected = (
        rf"no live producer exists: the last one known is pid {producer.pid}, .*\(has ended\)"
    )
    with pytest.raises(Empty, match=expected):
        q.get(timeout=0.1)
    with server.client() as client:
        key = f"__pressure__:{name}:producer"
        for unknown in ("another-host:1:1:00000000", "stepwise", "localhost:1:1:00000000"):
            client.set(key, unknown)
            side = q.why_blocked().get
            assert [(peer.id, peer.alive) for peer in side.partners] == [(unknown, None)]
            assert not side.no_live_partner
            assert "producer exists" not in str(q.why_blocked())
    q.put(2)
    q.get()
    assert [peer.alive for peer in q.why_blocked().get.partners] == [True]
    q.delete()


@pytest.mark.only_threads("a client id of asyncio is not that of the caller's thread")
def test_a_queue_that_is_not_full_and_whose_consumer_has_ended(server, name):
    q = Queue(5, name, url=server.url)
    q.put_many([1, 2])
    consumer = multiprocessing.get_context("spawn").Process(target=q.get)
    consumer.start()
    consumer.join()
    assert re.fullmatch(
        rf"The queue holds 1 of 5 items and its only known consumer, pid {consumer.pid} on host "
        r".*, has ended: start a consumer\.",
        q.why_blocked().sentence,
    )
    q.get()
    q.put(3)
    assert (
        q.why_blocked().sentence
        == "The queue holds 1 of 5 items, and nothing blocks a put or a get."
    )
    q.delete()


@pytest.mark.only_threads("a client id of asyncio is not that of the caller's thread")
def test_a_producer_that_waits_is_a_live_one(server, name):
    """A client that waits for space is the producer now, and not the dead one that last put."""
    q = Queue(1, name, url=server.url)
    producer = multiprocessing.get_context("spawn").Process(target=q.put, args=(1,))
    producer.start()
    producer.join()
    putting = Background(q.put, 2)
    until(lambda: q.why_blocked().put.holder)
    assert [peer.alive for peer in q.why_blocked().get.partners] == [True]
    assert not q.why_blocked().get.no_live_partner
    q.get()
    putting.result()
    q.delete()


def test_a_dead_holder_and_the_dead_in_line(server, name):
    q = Queue(1, name, url=server.url, lease=30)
    context = multiprocessing.get_context("spawn")
    doomed = [
        context.Process(target=dying_clients.wait, args=(q, "get"), kwargs={"elsewhere": elsewhere})
        for elsewhere in (False, False, True)
    ]
    with server.client() as client:
        holder, line = (f"__pressure__:{name}:mp:{part}" for part in ("consumer_holder", "waiting"))
        for number, process in enumerate(doomed):
            process.start()
            until(lambda number=number: client.exists(holder) and client.hlen(line) == number)
        for process in reversed(doomed):  # no client is left that looks after the holder
            process.kill()
            process.join()
    found = q.why_blocked()
    side = found.get
    assert (side.holder.peer.pid, side.holder.peer.alive) == (doomed[0].pid, False)
    assert "(has ended), which has waited for an item for" in str(found)
    assert [(one.peer.pid, one.peer.alive) for one in side.line] == [
        (doomed[1].pid, False),
        (doomed[2].pid, None),
    ]
    assert q.why_blocked().get.holder is None  # it was freed by the look
    q.delete()


@pytest.mark.parametrize(("role", "operation"), [("producer", "put"), ("consumer", "get")])
def test_a_role_that_another_implementation_has(server, name, role, operation):
    q = PressureQueue(name, url=server.url)
    q.create(2)
    q.put(b"x")
    theirs = StepwiseClient(server.port, name)
    try:
        theirs.take(role)
        side = getattr(q.why_blocked(), operation)
        assert (side.waits_for, side.holder.state) == ("role", "foreign")
        assert (side.holder.peer.id, side.holder.peer.alive) == ("stepwise", None)
        assert side.holder.left is None
        advice = (
            f"the {role} role is with another implementation, or with a client that died; the last "
            rf"{role} was 'stepwise' \(not known whether alive\); "
            rf"PressureQueue.unlock\('{role}'\) takes"
        )
        waits = [
            lambda: q.put(b"y", 0.1) if operation == "put" else q.get(0.1),
            lambda: q.close(0.1),
        ]
        for wait in waits[: 2 if role == "producer" else 1]:
            with pytest.raises(QueueInUseError, match=f"still after 0.1 s: .*{advice}"):
                wait()
    finally:
        theirs.abort()
    with pytest.raises(QueueInUseError, match=f"still after 0.1 s: is being deleted; {advice}"):
        q.delete(timeout=0.1)
    assert q.why_blocked().deleting
    q.unlock(role)
    q.delete()


@pytest.mark.only_threads("the waiting calls of one event loop stand in a line of their own")
def test_to_ask_changes_nothing(server, name):
    q = Queue(1, name, url=server.url)
    getting = [Background(q.get) for _ in range(2)]
    until(lambda: len(q.why_blocked().get.line) == 1)
    with server.client() as client:
        script = scripts.load("fifo")["inspect"]
        names = [inside.binding(q).key(part) for part in script.keys]
        command = ("EVALSHA_RO", script.sha, len(names), *names, 10)
        assert client.execute_command(*command)[0] == b"done"
    q.shutdown()
    for one in getting:
        with pytest.raises(ShutDown):
            one.result()
    q.delete()


def test_values_that_other_programs_wrote_into_our_keys_do_no_harm(server, name):
    q = Queue(1, name, url=server.url)
    q.open()
    with server.client() as client:
        client.hset(f"__pressure__:{name}:mp:waiting", mapping={b"\xff": b"\xfe", "x": "consumer"})
        client.delete(f"__pressure__:{name}:consumer_free")
        holder = {"ticket": b"\xff/1/", "until": "9" * 30, "lease": b"\xff", "client": b"\xff"}
        client.hset(f"__pressure__:{name}:mp:consumer_holder", mapping=holder)
    side = q.why_blocked().get
    assert (side.holder.state, side.holder.held, side.holder.peer.alive) == ("waiting", 0, None)
    assert side.line == ()
    with pytest.raises(ConsumerInUseError, match="'�' "):
        q.get(timeout=1)
    PressureQueue(name, url=server.url).unlock("consumer")
    q.delete()


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_ids_are_read_back():
    mine = parse_client(client_id())
    assert mine == (socket.gethostname(), os.getpid(), threading.get_native_id())
    assert parse_client("a:b:1:2:0123456789ab-3-0123abcd") == ("a:b", 1, 2)
    strange = ("host:1:2", "host:1:2:0123abcd", "host:x:2:0123456789ab-3-0123abcd")
    for other in ("stepwise", "", *strange):
        assert parse_client(other) is None
        assert is_gone(other) is None
    assert is_gone(client_id()) is False
    assert is_gone(ticket()) is False
    dead = multiprocessing.get_context("spawn").Process(target=int)
    dead.start()
    dead.join()
    for one in (client_id(), ticket()):
        assert is_gone(one.replace(str(os.getpid()), str(dead.pid))) is True
    assert is_gone(ticket().replace(socket.gethostname(), "another-host")) is None
