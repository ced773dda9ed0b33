"""Anonymous queues with a bound whose items are at the broker: each put is a call, and so is each
get."""

from __future__ import annotations

import collections
import itertools
import multiprocessing
import os
import random
import re
import signal
import threading
import time

import inside
import psutil
import pytest
from programs import bounds as programs
from programs.bounds import put_all, put_on
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


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_put_is_one_call_and_its_item_is_at_the_broker(make, own_server, kind):
    q = make(1000, kind=kind)
    with own_server.client() as client:
        q.put("first")
        client.config_resetstat()
        for number in range(1, 101):
            q.put(number)
            assert client.llen(f"__pressure__:{q.name}") == number + 1
        assert scripts_run(client) == 100


def test_puts_are_sent_in_the_background_where_the_program_says_so(make, own_server):
    q = make(1000, buffering=500)
    with own_server.client() as client:
        client.config_resetstat()
        for number in range(500):
            q.put(number)
        q.flush()
        assert scripts_run(client) < 100
    assert [q.get() for _ in range(500)] == list(range(500))


@pytest.mark.parametrize("bound", [4, BOUND, 16])
def test_all_arrives_in_order_and_is_counted(make, start, bound):
    q = make(bound)
    process, _ = start(put_all, q, range(NUMBER))
    assert [q.get(timeout=LIMIT) for _ in range(NUMBER)] == list(range(NUMBER))
    process.join(LIMIT)
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


@pytest.mark.parametrize("bound", [4, 100])
def test_never_are_there_more_items_than_the_bound_says(make, start, bound):
    q = make(bound)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    each, producers, consumers = 700, 3, 2
    counts = multiprocessing.get_context("fork").Array("q", producers + consumers, lock=False)
    putting = [
        start(programs.come_and_go, q, counts, me, each, seed + me)[0] for me in range(producers)
    ]
    getting = [
        start(programs.get_and_count, q, counts, producers + me, seed + 10 + me)
        for me in range(consumers)
    ]
    while any(process.is_alive() for process in putting):
        put = sum(counts[:producers])
        # Each get that has begun may have had its item.
        assert put - sum(counts[producers:]) <= bound
        time.sleep(0.0002)  # the processor is for the others
    assert all(process.exitcode == 0 for process in putting)
    for _ in getting:
        q.put(None)
    found = [pipe.recv() for _, pipe in getting]
    assert sorted(itertools.chain(*found)) == [
        (me, number) for me in range(producers) for number in range(each)
    ]
    for items in found:
        assert all(sorted(mine) == mine for mine in by_producer(items))


def by_producer(items):
    found = collections.defaultdict(list)
    for me, number in items:
        found[me].append(number)
    return found.values()


def test_a_put_of_a_process_that_also_gets_is_refused_exactly_when_the_queue_is_full(make):
    q, expected, number = make(100), 0, 0
    for taken in (0, 1, 30, 100, 7, 50):
        assert [q.get() for _ in range(taken)] == list(range(expected, expected + taken))
        expected += taken
        number = fill(q, number)
        assert number == expected + 100


def test_threads_that_put_are_never_over_the_bound(make, start):
    q, put, got = make(100), [0] * 4, 0
    _, consumer = start(programs.get_when_told, q)

    def put_some(me):
        for number in range(500):
            q.put((me, number))
            put[me] += 1

    threads = [Background(put_some, me) for me in range(4)]
    found = []
    while len(found) < 2000:
        assert sum(put) <= got + 100
        got += 1
        consumer.send(1)
        found += consumer.recv()
    for thread in threads:
        thread.result()
    assert all(mine == list(range(500)) for mine in by_producer(found))
    consumer.send(0)


def test_a_bound_that_is_set_holds_from_then_on(make):
    q = make(1000)
    for number in range(10):
        q.put(number)
    q.maxsize = 50
    assert fill(q, 10) == 50
    q.maxsize = 200
    assert fill(q, 50) == 200
    q.maxsize = 0
    for number in range(200, 1200):
        q.put_nowait(number)
    assert [q.get() for _ in range(1200)] == list(range(1200))


# Order


def test_items_put_through_several_handles_arrive_in_that_order(make):
    q = make(100)
    handles = itertools.cycle([q, inside.copy(q), inside.copy(q)])

    def put_all():
        for number in range(3000):
            next(handles).put(number)

    putting = Background(put_all)
    assert [q.get(timeout=LIMIT) for _ in range(3000)] == list(range(3000))
    putting.result()
    for _ in range(3):
        next(handles).close()


def test_items_put_into_several_queues_arrive_in_that_order(make, own_server):
    """Puts into the second of these are sent in the background."""
    queues = [make(bound, serializer="raw") for bound in (100, 0, 500)]
    seen = []
    with own_server.client() as client, client.monitor() as monitor:
        put = Background(put_in_turn, queues, 1500)
        get = [Background(get_all, q, 500) for q in queues]
        while len(seen) < 1500:
            command = monitor.next_command()["command"]
            if command.startswith("LPUSH __pressure__") and "item-" in command:
                seen += map(int, re.findall(r"item-(\d+)", command))
        put.result()
        for each in get:
            each.result()
    assert seen == list(range(1500))


def put_in_turn(queues, number):
    for item, q in zip(range(number), itertools.cycle(queues)):
        q.put(b"item-%d" % item)


def get_all(q, number):
    for _ in range(number):
        q.get(timeout=LIMIT)


def test_large_items_and_batches_keep_their_places(make):
    q, sizes = make(100), {3: 300_000, 7: 20_000, 9: 300_000}

    def put_all():
        for number in range(300):
            if number % 50 == 20:
                q.put_many([(number, b""), (number + 0.5, b"")])
            else:
                q.put((number, bytes(sizes.get(number % 50, 10))))

    putting = Background(put_all)
    found = [q.get(timeout=LIMIT)[0] for _ in range(306)]
    assert found == sorted(found)
    putting.result()


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


def test_items_handed_to_a_killed_consumer_do_not_come_again_and_all_others_come(make, start):
    q = make()
    counts = multiprocessing.get_context("fork").Array("q", 2, lock=False)
    putting, putter = start(put_on, q, counts, 0)
    draw, expected = random.Random(5), 0
    for _ in range(6):
        # Its count is one item behind what it was handed, or not.
        getting, _ = start(programs.count_received_items, q, counts, 1)
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


@pytest.mark.parametrize("signal_number", programs.SIGNALS)
def test_the_space_of_items_that_a_consumer_got_is_free_for_others(make, start, signal_number):
    q = make(100, lease=1)
    fill(q, 0)
    process, pipe = start(programs.get_some, q, 40, signal_number)
    assert pipe.recv() == 39
    if signal_number == signal.SIGKILL:
        process.join()
    else:
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    for item in range(100, 140):
        q.put_nowait(item)
    with pytest.raises(Full):
        q.put_nowait("more")
    assert [q.get(timeout=LIMIT) for _ in range(100)] == list(range(40, 140))


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
