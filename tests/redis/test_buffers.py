"""``buffering=N`` in real processes that end, die and fork, over connections that break."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
import stopped
from brokers.servers import Server
from exchanges import Exchanges
from programs import buffers as programs
from waiting import HOURS, LIMIT, Background, lasting, until

from pressure_mp import BrokerUnavailable, Empty, JoinableQueue, Queue, ShutDown

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def make(valkey, name):
    made = []

    def make(kind=Queue, buffering=64, **options):
        options.setdefault("lease", HOURS)  # what waits for its end does not end
        options = {"buffering": buffering, "prefetch": buffering, **options}
        made.append(kind(name=name, url=valkey.url, **options))
        return made[-1]

    yield make
    for handle in made:
        handle.close()
    made[0].delete()
    with valkey.client() as client:
        assert lasting(client, f"*{name}*") == []


# A process ends


@pytest.mark.parametrize(("act", "method"), [("return", "spawn"), ("raise", "fork")])
def test_a_process_that_ends_sends_what_it_put(make, start, method, act):
    q = make(buffering=0, eof="producers")
    producing = make(eof="producers")
    process, _ = start(programs.put_and_end, producing, list(range(300)), act, method=method)
    process.join()
    assert list(q) == list(range(300))


def test_a_program_that_ends_sends_what_it_put(make, valkey):
    q = make(buffering=0)
    program = (
        "import atexit, sys; from pressure_mp import Queue\n"
        "q = Queue(name=sys.argv[1], url=sys.argv[2], buffering=64, prefetch=64)\n"
        "atexit.register(lambda: q.put('last'))\n"  # runs first: the package comes before it
        "for item in range(200): q.put(item)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, q.name, valkey.url],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert [q.get_nowait() for _ in range(201)] == [*range(200), "last"]


def test_a_program_that_ends_says_what_it_could_not_send(make, valkey):
    q = make(buffering=0)
    program = (
        "import sys; from pressure_mp import Queue\n"
        "q = Queue(name=sys.argv[1], url=sys.argv[2], buffering=64, prefetch=64)\n"
        "q.put(0); q.flush(); Queue(name=sys.argv[1], url=sys.argv[2]).shutdown()\n"
        "q.put(1); q._puts.settle(block=True)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, q.name, valkey.url],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
    )
    assert f"1 items that were put on queue '{q.name}' were not sent" in result.stderr
    assert q.name in result.stderr


def test_a_process_that_gave_up_its_buffer_ends_at_once(make, start):
    q = make(buffering=64, maxsize=100)
    q.put_many(range(100))
    full = make(buffering=0)
    full.get()
    process, pipe = start(programs.put_and_end, q, ["a"], "cancel")
    assert pipe.recv() == "put"
    process.join(LIMIT)
    assert process.exitcode == 0


def test_a_process_that_is_killed_sends_only_what_it_sent(make, start):
    q = make(buffering=0)
    process, pipe = start(programs.put_and_end, make(), list(range(500)), "kill")
    assert pipe.recv() == "put"
    pipe.send("die")
    process.join()
    got = q.get_many(1000)
    assert got == list(range(len(got)))


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
@pytest.mark.parametrize("act", ["return", "close"])
def test_a_process_that_ends_gives_back_what_it_did_not_hand_out(make, start, kind, act):
    q = make(kind, buffering=0)
    q.put_many(range(50))
    process, pipe = start(programs.get_and_act, make(kind, buffering=20), 3, act)
    assert pipe.recv() == [0, 1, 2]
    assert q.qsize() == 30
    pipe.send("go on")
    if act == "close":
        assert pipe.recv() == "closed"
    else:
        process.join()
    first = 0 if (kind, act) == (JoinableQueue, "return") else 3
    assert q.get_many(100) == list(range(first, 50))
    assert q.stats().in_flight == (0 if kind is Queue else 50)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
@pytest.mark.parametrize("buffering", [0, 20])
def test_items_prefetched_by_a_killed_process_are_got_first_by_other_processes(
    make, start, kind, buffering
):
    q = make(kind, buffering=buffering)
    filling = make(kind, buffering=0)
    filling.put_many(range(50))
    process, pipe = start(programs.get_and_act, make(kind, buffering=20), 3, "kill")
    assert pipe.recv() == [0, 1, 2]
    filling.get_many(30)  # what it had not fetched
    if kind is Queue:
        until(lambda: filling.stats().in_flight == 17)  # it told what it handed out
    getting = Background(q.get)
    pipe.send("die")
    process.join()
    first = 3 if kind is Queue else 0
    assert getting.result() == first
    rest = [q.get_nowait() for _ in range(20 - first - 1)]
    assert rest == list(range(first + 1, 20))


def test_items_handed_to_a_killed_process_do_not_come_again_on_its_host(make, start):
    q, filling = make(buffering=0), make(buffering=0)
    filling.put_many(range(20))
    process, pipe = start(programs.get_and_act, make(buffering=20), 3, "kill")
    assert pipe.recv() == [0, 1, 2]
    pipe.send("die")
    process.join()
    assert q.get(timeout=LIMIT) == 3
    assert [q.get_nowait() for _ in range(16)] == list(range(4, 20))


def test_a_stopped_process_loses_what_it_fetched_after_its_lease(make, start):
    """When it goes on, it finds out, and hands out no item that others got."""
    filling = make(buffering=0, lease=0.5)
    filling.put_many(range(20))
    process, pipe = start(programs.get_and_tell, make(buffering=20, lease=0.5), 3)
    assert pipe.recv() == [0, 1, 2]
    until(lambda: filling.stats().in_flight == 17)
    stopped.loses(list(range(3, 20)), process, pipe, filling)


def test_a_fork_with_a_full_buffer_sends_nothing_twice(make, start):
    """There is space for one, and then none."""
    q, other = make(maxsize=3), make(buffering=0)
    process, pipe = start(programs.fork_with_a_full_buffer, q)
    assert pipe.recv() == "flushed"
    other.put_many(["x", "y"])
    pipe.send("go on")
    assert (pipe.recv(), pipe.recv()) == (0, 1)
    got = [other.get(timeout=LIMIT) for _ in range(4)]
    process.join()
    assert got == ["before", "x", "y", "parent"]
    assert other.empty()


def test_slow_consumers_leave_the_others_their_share(make, start):
    """Of the items that are there when three consume, a slow consumer takes a third at most."""
    q = make(buffering=0)
    slow = start(programs.consume, make(buffering=1000), 30)[1]
    fast = [start(programs.consume, make(buffering=1000), 0)[1] for _ in range(2)]
    until(lambda: len(q.why_blocked().get.line) + bool(q.why_blocked().get.holder) == 3)
    q.put_many(range(900))
    q.shutdown()
    got = [[], []]
    for one, pipe in zip(got, fast, strict=True):
        while (item := pipe.recv()) is not None:
            one.append(item)
    assert slow.poll(LIMIT)
    assert 600 <= len(got[0]) + len(got[1]) < 900
    for one in got:
        assert one == sorted(one)


def test_an_anonymous_queue_with_buffers_leaves_no_key(valkey, name):
    program = (
        "import sys; from pressure_mp import Queue\n"
        "q = Queue(url=sys.argv[1], prefix=sys.argv[2], buffering=8, prefetch=8)\n"
        "for item in range(20): q.put(item)\n"
        "print(q.get())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, valkey.url, name],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
    )
    assert (result.stdout, result.stderr) == ("0\n", "")
    with valkey.client() as client:
        assert lasting(client, f"{name}*") == []


# Connections that break, and a server that is killed


@pytest.mark.parametrize("losses", [1, 3])
@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_items_come_once_when_replies_are_lost(proxy, name, losses, kind):
    q = kind(name=name, url=proxy.url, buffering=10, prefetch=10)
    got = []
    for number in range(40):
        if number % 10 == 0:
            proxy.lose(losses)
        q.put(number)
    q.flush()
    assert proxy.lost >= losses
    for number in range(40):
        if number % 10 == 0:
            proxy.lose(losses)
        got.append(q.get())
    assert got == list(range(40))
    stats = q.stats()
    assert (stats.produced_messages, stats.consumed_messages, stats.length) == (40, 40, 0)
    q.delete()


def test_a_fetch_that_was_never_answered_is_asked_for_again(proxy, name):
    q = Queue(name=name, url=proxy.url, buffering=10, prefetch=10, reconnect=0)
    q.put_many(range(10))
    proxy.lose()
    with pytest.raises(BrokerUnavailable):
        q.get()
    assert [q.get() for _ in range(10)] == list(range(10))
    q.put_many(range(10))
    proxy.lose()
    with pytest.raises(BrokerUnavailable):
        q.get()
    q.close()
    other = Queue(name=name, url=proxy.url)
    assert other.get_many(20) == list(range(10))
    other.delete()


def test_a_broker_that_does_not_come_back_fails_with_the_items(name):
    server = Server("valkey").start()
    q = Queue(name=name, url=server.url, buffering=10, prefetch=10, reconnect=0.2)
    q.put("sent")
    q.flush()
    server.kill()
    for item in "abc":
        q.put(item)
    with pytest.raises(BrokerUnavailable) as caught:
        q.flush()
    assert caught.value.rest == ["a", "b", "c"]
    with pytest.raises(BrokerUnavailable):
        q.put("d")
    q.close()
    server.stop()


def test_a_broker_that_is_killed_and_comes_back_loses_nothing_of_the_buffers(name):
    server = Server("valkey", Server.durable).start()
    try:
        producer = Queue(name=name, url=server.url, buffering=50, prefetch=50)
        consumer = Queue(name=name, url=server.url, buffering=50, prefetch=50)

        def produce():
            for number in range(3000):
                producer.put(number)
            producer.shutdown()

        producing, consuming = Background(produce), Background(list, consumer)
        for _ in range(2):
            until(lambda: consumer.stats().consumed_messages > 200)
            server.kill()
            server.start()
        producing.result()
        assert consuming.result() == list(range(3000))
        consumer.close()
    finally:
        server.stop()


@pytest.mark.parametrize(
    "when",
    [
        "at once",
        "after the next get",
        "after an empty get",
        "after a close",
    ],
)
def test_a_fetch_that_comes_late_takes_nothing_that_is_not_got(make, valkey, monkeypatch, when):
    """Its caller was interrupted before the server had it."""
    q, late = make(prefetch=4), []

    def interrupt(wire, packed):
        late.append(packed)
        raise KeyboardInterrupt

    def let_it_come():
        with socket.create_connection(("127.0.0.1", valkey.port)) as connection:
            connection.sendall(late[0])
            assert connection.recv(1)

    for number in range(5):
        q.put(number)
    got = [q.get(timeout=LIMIT) for _ in range(4)]
    Exchanges(monkeypatch, q).before[1] = interrupt
    with pytest.raises(KeyboardInterrupt):
        q.get()
    if when == "after a close":
        q.close()
        q = make()
    elif when != "at once":
        got.append(q.get(timeout=LIMIT))
    if when == "after an empty get":
        with pytest.raises(Empty):
            q.get_nowait()
    q.put_many(range(5, 10))
    let_it_come()
    assert got + [q.get(timeout=LIMIT) for _ in range(10 - len(got))] == list(range(10))


def test_threads_and_connections_of_handles_that_are_not_in_use_are_given_up(make, valkey):
    with valkey.client() as client:
        before = client.info("clients")["connected_clients"]
        handles = [make(buffering=4) for _ in range(20)]
        for handle in handles:
            handle.put(1)
            handle.flush()
        assert client.info("clients")["connected_clients"] < before + 15
    handles[0].shutdown()
    for _ in range(20):
        handles[0].get()
    with pytest.raises(ShutDown):
        handles[0].get()
