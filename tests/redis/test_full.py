"""A producer of an anonymous queue that is mostly full sends each put together with the wait for
its space."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

import pytest
from programs.space import obey, put_all
from waiting import LIMIT, Background, blocked, until

from pressure_mp import Full, Queue, ShutDown

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

BOUND = 4
NUMBER = 200


@pytest.fixture
def make(own_server, closed_at_end):
    """Handles that are closed at the end, and read nothing ahead."""
    return lambda bound=BOUND, **options: closed_at_end(
        Queue(bound, url=own_server.url, prefetch=0, **options)
    )


@pytest.fixture
def client(own_server):
    with own_server.client() as client:
        yield client


def is_full(client, q):
    """Whether the queue is full, and somebody waits for space."""
    return client.llen(f"__pressure__:{q.name}") == BOUND and blocked(client) == 1


def taken_when_full(q, client, number):
    """Get so many, one at a time, each when the producer waits again."""
    found = []
    for _ in range(number):
        until(lambda: is_full(client, q))
        found.append(q.get(timeout=LIMIT))
    return found


def put_quietly(q, items):
    for item in items:
        q.put(item)


@pytest.fixture(params=["worker of a pool", "process"])
def producer_of(request, start):
    """Starts a process that puts items: one that puts for itself, or one that reserves space."""
    begun = []

    def producer(q, items):
        if request.param == "process":
            return start(put_all, q, items)[0]
        fork = multiprocessing.get_context("fork")
        begun.append(fork.Process(None, put_quietly, "ForkPoolWorker-1", (q, items), daemon=True))
        begun[-1].start()
        return begun[-1]

    yield producer
    for process in begun:
        process.kill()
        process.join()


def test_a_put_that_waits_again_takes_one_call(make, client, producer_of):
    q = make()
    producer = producer_of(q, range(NUMBER + BOUND))
    assert taken_when_full(q, client, 50) == list(range(50))  # it has learned
    client.config_resetstat()
    assert taken_when_full(q, client, NUMBER - 50) == list(range(50, NUMBER))
    scripts = client.info("commandstats")["cmdstat_evalsha"]["calls"]
    # One to get, and one to put; now and then it is seen whether that has to wait at all.
    assert scripts < 2.5 * (NUMBER - 50)
    assert [q.get(timeout=LIMIT) for _ in range(BOUND)] == list(range(NUMBER, NUMBER + BOUND))
    producer.join(LIMIT)
    assert q.qsize() == 0


def waiting(q, client, more=1):
    """Puts of this process that have learned to wait first; the last ``more`` still do."""
    putting = Background(put_quietly, q, range(BOUND + 10 + more))
    assert taken_when_full(q, client, 10) == list(range(10))
    until(lambda: is_full(client, q))
    return putting


@pytest.fixture(params=[0, None], ids=["at once", "default"])
def buffering(request):
    return request.param


def test_a_shutdown_ends_the_wait(make, client, buffering):
    q = make(buffering=buffering)
    putting = waiting(q, client)
    began = time.monotonic()
    q.shutdown()
    with pytest.raises(ShutDown):
        putting.result()
    assert time.monotonic() - began < 1
    assert q.qsize() == BOUND


def test_one_that_finds_no_space_after_the_wait_waits_on(make, client, buffering):
    q = make(buffering=buffering)
    putting = waiting(q, client)
    time.sleep(0.3)  # longer than one waits without a place in line
    assert putting.is_alive()
    assert q.get() == 10
    putting.result()
    assert [q.get() for _ in range(BOUND)] == list(range(11, 11 + BOUND))


def test_one_that_may_not_wait_is_refused_at_once_and_one_with_a_limit_in_time(
    make, client, buffering
):
    q = make(buffering=buffering)
    putting = waiting(q, client)
    assert q.get() == 10
    putting.result()
    for limit in (0, 0.3):
        began = time.monotonic()
        with pytest.raises(Full):
            q.put("more", timeout=limit)
        assert limit <= time.monotonic() - began < limit + 1
    assert q.qsize() == BOUND


class Interrupted(Exception):
    pass


def interrupt(signum, frame):
    raise Interrupted


def test_an_interrupted_wait_leaves_the_queue_as_it_is(make, client, buffering, monkeypatch):
    q = make(buffering=buffering)
    for item in range(BOUND):
        q.put(item)
    q.flush()
    taking = Background(taken_when_full, q, client, 10)
    put_quietly(q, range(BOUND, BOUND + 10))
    assert taking.result() == list(range(10))
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threading.Thread(target=when_full_kill, args=(client, q)).start()
        with pytest.raises(Interrupted):
            q.put("interrupted")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [q.get(timeout=LIMIT) for _ in range(BOUND)] == list(range(10, 10 + BOUND))
    q.put("next")
    assert q.get(timeout=LIMIT) == "next"


def when_full_kill(client, q):
    until(lambda: is_full(client, q))
    os.kill(os.getpid(), signal.SIGUSR1)


def test_one_that_is_killed_while_it_waits_is_in_nobodys_way(make, client, producer_of, start):
    q = make()
    producer = producer_of(q, range(100))
    assert taken_when_full(q, client, 20) == list(range(20))
    until(lambda: is_full(client, q))
    producer.kill()
    producer.join()
    until(lambda: blocked(client) == 0)
    _, pipe = start(obey, q)
    pipe.send(("put_nowait", "more"))
    assert isinstance(pipe.recv(), Full)
    pipe.send(("put", "more"))
    assert q.get(timeout=LIMIT) == 20
    assert pipe.poll(LIMIT)
    assert pipe.recv() is None
    assert [q.get(timeout=LIMIT) for _ in range(BOUND)] == [21, 22, 23, "more"]


def test_one_that_is_cut_off_while_it_waits_puts_its_item_once(make, client, producer_of):
    q = make()
    producer = producer_of(q, range(NUMBER))
    found = []
    while len(found) < NUMBER // 2:
        found += taken_when_full(q, client, 5)
        until(lambda: is_full(client, q))
        for connection in client.client_list():
            if "b" in connection["flags"]:
                client.client_kill_filter(connection["id"])
    found += [q.get(timeout=LIMIT) for _ in range(NUMBER - len(found))]
    assert found == list(range(NUMBER))
    producer.join(LIMIT)
    assert q.qsize() == 0
