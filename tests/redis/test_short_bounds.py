"""One producer and one consumer of a queue with a short bound: they wait for each other after every
few items, and need few calls for that."""

from __future__ import annotations

import collections
import multiprocessing
import os
import random
import signal
import threading
import time

import psutil
import pytest
from programs import short_bounds as programs
from programs.space import put_all, put_on
from waiting import LIMIT, Background, until

from pressure_mp import Full, JoinableQueue, Queue

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

BOUND = 8
NUMBER = 2000


@pytest.fixture
def make(own_server, closed_at_end):
    """Handles that are closed at the end."""
    return lambda bound=BOUND, kind=Queue, url=own_server.url, **options: closed_at_end(
        kind(bound, url=url, **options)
    )


def scripts_run(client):
    return client.info("commandstats")["cmdstat_evalsha"]["calls"]


def fill(q, first):
    """Put without waiting until the queue is full; the next item."""
    while True:
        try:
            q.put_nowait(first)
        except Full:
            return first
        first += 1


@pytest.mark.parametrize("bound", [4, BOUND, 16])
def test_all_arrives_in_order_in_fewer_calls_than_items(make, own_server, start, bound):
    q = make(bound)
    with own_server.client() as client:
        client.config_resetstat()
        process, _ = start(put_all, q, range(NUMBER))
        assert [q.get(timeout=LIMIT) for _ in range(NUMBER)] == list(range(NUMBER))
        process.join(LIMIT)
        # One by one each item takes two at least, and those that wait for each other more.
        assert scripts_run(client) < 2 * NUMBER
    stats = q.stats()
    assert (stats.length, stats.produced_messages, stats.consumed_messages) == (0, NUMBER, NUMBER)
    assert stats.consumed_bytes == stats.produced_bytes


@pytest.mark.parametrize("pause", [0.0005, 0.003])
def test_a_slow_consumer_is_never_ahead_of_the_bound(make, start, pause):
    q = make()
    counts = multiprocessing.get_context("fork").Array("q", 1, lock=False)
    process, pipe = start(put_on, q, counts, 0)
    for number in range(300):
        assert q.get(timeout=LIMIT) == (0, number)
        assert counts[0] <= number + 1 + BOUND
        time.sleep(pause)
    pipe.send("enough")
    while not pipe.poll():
        try:
            q.get(timeout=0.05)
        except Exception:
            pass
    process.join(LIMIT)


def test_put_nowait_is_refused_exactly_when_the_queue_is_full(make, start):
    q, expected = make(), 0
    process, pipe = start(programs.get_when_told, q)
    number = fill(q, 0)
    assert number == BOUND
    for taken in (1, 3, 8, 2, 8, 8, 5, 8, 1):
        pipe.send(taken)
        assert pipe.recv() == list(range(expected, expected + taken))
        expected += taken
        number = fill(q, number)
        assert number == expected + BOUND
    pipe.send(0)
    process.join(LIMIT)


def test_a_joinable_queue_keeps_its_bound_and_its_count(make, start):
    q = make(kind=JoinableQueue)
    process, _ = start(put_all, q, range(500))
    for number in range(500):
        assert q.get(timeout=LIMIT) == number
        q.task_done()
    process.join(LIMIT)
    q.join()
    assert q.qsize() == 0


def test_a_second_consumer_gets_its_share_and_nothing_comes_twice(make, start):
    q = make()
    putting, _ = start(put_all, q, [*range(NUMBER), None, None])
    getting = [start(programs.get_until_none, q) for _ in range(2)]
    putting.join(LIMIT)
    found = [pipe.recv() for _, pipe in getting]
    assert sorted(found[0] + found[1]) == list(range(NUMBER))
    assert all(sorted(some) == some for some in found)


def test_two_producers_lose_nothing(make, start):
    q = make()
    putting = [start(programs.put_pairs, q, me, 1000) for me in range(2)]
    found = collections.defaultdict(list)
    for _ in range(2000):
        me, number = q.get(timeout=LIMIT)
        found[me].append(number)
    for process, _ in putting:
        process.join(LIMIT)
    assert found == {0: [*range(1000)], 1: [*range(1000)]}


# Killed, stopped and cut off


def test_what_a_killed_consumer_was_handed_does_not_come_again_and_the_rest_does(make, start):
    q = make()
    counts = multiprocessing.get_context("fork").Array("q", 2, lock=False)
    putting, putter = start(put_on, q, counts, 0)
    draw, expected = random.Random(5), 0
    for _ in range(6):
        # Its count is one item behind what it was handed, or not.
        getting, _ = start(programs.count_what_is_got, q, counts, 1)
        least = expected + draw.randrange(300)
        until(lambda least=least: counts[1] > least)
        os.kill(getting.pid, signal.SIGKILL)
        getting.join()
        _, number = q.get(timeout=LIMIT)
        assert number in (counts[1], counts[1] + 1)
        expected = counts[1] = number + 1
    putter.send("enough")
    while not putter.poll():
        try:
            assert q.get(timeout=0.05) == (0, expected)
            expected += 1
        except Exception as error:
            if isinstance(error, AssertionError):
                raise
    putting.join(LIMIT)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_consumer_that_ends_while_it_waits_for_the_next_items_keeps_none(
    make, start, signal_number
):
    q = make(lease=1)
    getting, pipe = start(programs.get_in_bursts, q)
    for number in range(5 * BOUND):
        q.put(number)
    number += 1
    os.kill(getting.pid, signal_number)
    if signal_number == signal.SIGKILL:
        getting.join()
    else:
        until(lambda: psutil.Process(getting.pid).status() == psutil.STATUS_STOPPED)
    last = -1
    while pipe.poll():
        try:
            last = pipe.recv()
        except EOFError:
            break
    putting = Background(lambda: q.put(number, timeout=LIMIT))
    found = [q.get(timeout=LIMIT)]
    while found[-1] < number:
        found.append(q.get(timeout=LIMIT))
    putting.result()
    assert found == list(range(found[0], number + 1))
    assert found[0] in (last + 1, last + 2)
    if signal_number == signal.SIGSTOP:
        os.kill(getting.pid, signal.SIGKILL)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_producer_that_ends_while_it_waits_for_space_keeps_none(make, start, signal_number):
    q = make(lease=1)
    counts = multiprocessing.get_context("fork").Array("q", 1, lock=False)
    putting, _ = start(put_on, q, counts, 0)
    found = [q.get(timeout=LIMIT)[1] for _ in range(100)]
    os.kill(putting.pid, signal_number)
    if signal_number == signal.SIGKILL:
        putting.join()
    else:
        until(lambda: psutil.Process(putting.pid).status() == psutil.STATUS_STOPPED)
    putting_mine = Background(lambda: q.put(("mine", 0), timeout=LIMIT))
    while (item := q.get(timeout=LIMIT)) != ("mine", 0):
        found.append(item[1])
    putting_mine.result()
    assert found == list(range(len(found)))
    assert len(found) <= counts[0] + 1
    if signal_number == signal.SIGSTOP:
        os.kill(putting.pid, signal.SIGKILL)


def test_connections_that_break_lose_nothing_and_the_bound_holds(make, proxy_of, own_server, start):
    proxy = proxy_of(own_server)
    q = make(url=proxy.url)
    done = threading.Event()

    putting, pipe = start(put_all, q, range(NUMBER))
    cutting = Background(lambda: proxy.trouble(done))
    try:
        assert [q.get(timeout=LIMIT) for _ in range(NUMBER)] == list(range(NUMBER))
    finally:
        done.set()
    assert pipe.recv() == "put all"
    putting.join(LIMIT)
    cutting.result()
    assert fill(q, 0) == BOUND
