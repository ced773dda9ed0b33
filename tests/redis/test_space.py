"""The only process that puts into an anonymous queue with a bound has its space reserved."""

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
from programs import space as programs
from waiting import HOURS, LIMIT, Background, blocked, until

from pressure_mp import Full, JoinableQueue, LifoQueue, ProducerInUseError, Queue, ShutDown
from pressure_mp.buffering import bounded, space

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

BOUND = 100


@pytest.fixture
def make(own_server, proxy_of, closed_at_end):
    """Handles that are closed at the end, before the proxies."""
    return lambda *args, kind=Queue, url=own_server.url, **options: closed_at_end(
        kind(*args, url=url, **options)
    )


@pytest.fixture
def keeps(monkeypatch):
    """What is reserved is kept until somebody wants it; and no machine is too slow."""
    monkeypatch.setattr(space, "KEPT", HOURS)
    monkeypatch.setattr(space, "_WINDOW", HOURS)


class Other:
    """A process that calls a queue's methods, as told."""

    def __init__(self, start, q, method="fork"):
        self.process, self.pipe = start(programs.obey, q, method=method)

    def begin(self, *told):
        self.pipe.send(told)

    def result(self, limit=LIMIT):
        assert self.pipe.poll(limit)
        found = self.pipe.recv()
        if isinstance(found, Exception):
            raise found
        return found

    def __getattr__(self, method):
        def call(*args):
            self.begin(method, *args)
            return self.result()

        return call


@pytest.fixture
def other_of(start):
    return lambda q, method="fork": Other(start, q, method)


def scripts_run(client):
    return client.info("commandstats")["cmdstat_evalsha"]["calls"]


def length(q):
    """How many items the broker has."""
    with inside.client(q) as client:
        return client.llen(f"__pressure__:{q.name}")


def writing(q, first=0, number=10):
    """Put until space is reserved, and then what is buffered; returns the next item."""
    for item in range(first, first + number):
        q.put(item)
    assert inside.has_space(q)
    q.flush()
    return first + number


def in_order(items):
    """Whether those of each producer are."""
    last = collections.defaultdict(lambda: -1)
    for me, number in items:
        if number != last[me] + 1:
            return False
        last[me] = number
    return True


# What is gained


def test_one_that_takes_long_reserves_nothing_though_some_puts_come_soon(make, monkeypatch):
    passed = 0.0
    for module in (bounded, space):
        monkeypatch.setattr(module, "monotonic", lambda: time.monotonic() + passed)
    q = make(100)
    for item in range(60):
        q.put(item)
        assert not inside.has_space(q)
        passed += 0.0 if item % 5 == 4 else 0.03


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_the_only_producer_puts_many_items_in_few_round_trips(make, own_server, keeps, kind):
    q = make(1000, kind=kind)
    with own_server.client() as client:
        client.config_resetstat()
        for item in range(1000):
            q.put(item)
        q.flush()
        assert scripts_run(client) < 100
    assert length(q) == 1000
    assert [q.get() for _ in range(1000)] == list(range(1000))


@pytest.mark.parametrize(
    "options",
    [
        {"maxsize": 100, "name": "named"},
        {"maxsize": 100, "eof": "producers"},
        {"maxsize": 100, "buffering": 0},
        {"maxsize": 100, "kind": LifoQueue},
    ],
)
def test_others_put_item_by_item(make, own_server, keeps, options):
    q = make(**options)
    with own_server.client() as client:
        client.config_resetstat()
        for item in range(30):
            q.put(item)
            assert q.qsize() == item + 1
        assert scripts_run(client) >= 60
    if "name" in options:
        q.delete()


def test_a_worker_of_a_pool_puts_item_by_item(make, own_server, keeps):
    q = make(BOUND)
    with own_server.client() as client, multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(put_all, (q, ["first"]))
        client.config_resetstat()
        pool.apply(put_all, (q, range(50)))
        assert scripts_run(client) >= 50
    assert q.qsize() == 51


def put_all(q, items):
    for item in items:
        q.put(item)


# The bound


@pytest.mark.parametrize("bound", [4, 8, 32, 1000])
def test_never_are_there_more_items_than_the_bound_says(make, start, bound):
    q = make(bound)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    each, producers, consumers = 2000, 3, 2
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


def test_put_nowait_is_refused_exactly_when_the_queue_is_full(make, other_of, keeps):
    """The consumer has more items here than it handed out, and tells the broker later."""
    q, expected, number = make(BOUND), 0, 0
    consumer = other_of(q)
    number = fill(q, number)
    assert number == BOUND
    for taken in (1, 30, 7, 100, 50, 1, 1, 99):
        got = [consumer.get() for _ in range(taken)]
        assert got == list(range(expected, expected + taken))
        expected += taken
        number = fill(q, number)
        assert number == expected + BOUND


def fill(q, number):
    """Put without waiting until the queue is full."""
    for item in itertools.count(number):
        try:
            q.put_nowait(item)
        except Full:
            return item
    raise AssertionError("it ends when the queue is full")


def test_one_that_gets_from_itself_is_refused_exactly_when_the_queue_is_full(make, keeps):
    q, expected, number = make(BOUND), 0, 0
    for taken in (0, 1, 30, 100, 7, 50):
        assert [q.get() for _ in range(taken)] == list(range(expected, expected + taken))
        expected += taken
        number = fill(q, number)
        assert number == expected + BOUND


def test_a_put_with_a_time_limit_is_refused_when_that_is_over(make, other_of, keeps):
    q = make(BOUND)
    consumer = other_of(q)
    fill(q, 0)
    began = time.monotonic()
    with pytest.raises(Full):
        q.put("more", timeout=0.05)
    assert time.monotonic() - began < LIMIT
    putting = Background(q.put, "more", timeout=LIMIT)
    assert consumer.get() == 0
    putting.result()
    assert length(q) == BOUND


def test_a_put_waits_for_space_and_returns_when_there_is_some(make, other_of, own_server, keeps):
    q = make(BOUND)
    consumer = other_of(q)
    fill(q, 0)
    with own_server.client() as client:
        putting = Background(q.put, BOUND)
        until(lambda: blocked(client))
        assert consumer.get() == 0
        putting.result()
    assert [consumer.get() for _ in range(BOUND)] == list(range(1, BOUND + 1))


def test_threads_that_put_are_never_over_the_bound(make, other_of):
    q, put, got = make(BOUND), [0] * 4, 0
    consumer = other_of(q)

    def put_some(me):
        for number in range(500):
            q.put((me, number))
            put[me] += 1

    threads = [Background(put_some, me) for me in range(4)]
    found = []
    while len(found) < 2000:
        assert sum(put) <= got + BOUND
        got += 1
        found.append(consumer.get())
    for thread in threads:
        thread.result()
    assert all(mine == list(range(500)) for mine in by_producer(found))


def test_a_bound_that_another_process_sets_holds_from_then_on(make, other_of, keeps):
    q = make(1000)
    other = other_of(q)
    writing(q)
    other.begin("set", "maxsize", 50)
    number = 10
    with inside.client(q) as client:
        until(lambda: client.hexists(f"__pressure__:{q.name}:mp:producer_holder", "looked"))
    while inside.has_space(q):
        q.put(number)
        q.flush()
        number += 1
    other.result()
    left = max(50 - number, 0)
    for _ in range(left):
        q.put_nowait("more")
    with pytest.raises(Full):
        q.put_nowait("more")
    assert length(q) == number + left


def test_a_bound_that_it_sets_itself_holds_from_then_on(make, keeps):
    q = make(1000)
    writing(q)
    q.maxsize = 50
    assert fill(q, 10) == 50
    q.maxsize = 200
    assert fill(q, 50) == 200
    q.maxsize = 0
    for number in range(200, 1200):
        q.put_nowait(number)
    assert [q.get() for _ in range(1200)] == list(range(1200))


# Others who come


def test_a_second_producer_is_served_at_once(make, other_of, start, keeps):
    """Otherwise the first one would keep the space for hours, or as long as it puts."""
    q = make(1000)
    counts = multiprocessing.get_context("fork").Array("q", 1, lock=False)
    _, first = start(programs.put_on, q, counts, 0)
    _, consumer = start(programs.get_and_count, q, multiprocessing.Array("q", 1, lock=False), 0, 1)
    until(lambda: counts[0] > 2000)
    second = other_of(q)
    for number in range(3):
        second.put(("second", number))
    first.send("end")
    number = first.recv()
    until(lambda: length(q) == 0)
    q.put(None)
    found = consumer.recv()
    assert [item for item in found if item[0] == 0] == [(0, each) for each in range(number)]
    assert [item for item in found if item[0] != 0] == [("second", each) for each in range(3)]


def test_one_that_may_not_wait_does_not_take_space_that_is_reserved(make, other_of, keeps):
    q = make(BOUND)
    other = other_of(q)
    number = writing(q)
    with pytest.raises(ProducerInUseError):
        other.put_nowait("of another")
    q.put(number)
    q.maxsize = BOUND  # which releases what is reserved
    assert other.put_nowait("of another") is None
    assert [q.get() for _ in range(number + 2)] == [*range(number + 1), "of another"]


@pytest.mark.parametrize("look", ["qsize", "empty", "full", "stats", "maxsize"])
def test_another_process_sees_all_that_was_put(make, other_of, monkeypatch, look):
    """What was accepted and is not sent is waited for."""
    q = make(BOUND)
    other = other_of(q)
    for number in range(1, BOUND + 1):
        q.put(number)
        if number % 10:
            continue
        if look == "maxsize":
            assert other.stats().maxsize == BOUND
        elif look == "stats":
            assert other.stats().length == number
        else:
            expected = {"qsize": number, "empty": False, "full": number == BOUND}
            assert getattr(other, look)() == expected[look]


def test_one_who_joins_waits_for_what_was_put(make, other_of):
    q = make(BOUND)
    other = other_of(q)
    for _ in range(20):
        for item in range(BOUND // 2):
            q.put(item)
        other.begin("join")
        for _ in range(BOUND // 2):
            assert not other.pipe.poll(0)
            q.get()
            q.task_done()
        assert other.result() is None


def test_a_shutdown_by_another_process_loses_nothing_that_was_put(make, other_of):
    for _ in range(3):
        q = make(BOUND)
        other = other_of(q)
        for item in range(BOUND // 2):
            q.put(item)
        other.shutdown()
        with pytest.raises(ShutDown):
            q.put("more")
        assert [other.get() for _ in range(BOUND // 2)] == list(range(BOUND // 2))


def test_a_shutdown_by_itself_sends_all_that_was_put(make, keeps):
    q = make(BOUND)
    for item in range(BOUND // 2):
        q.put(item)
    q.shutdown()
    assert [q.get() for _ in range(BOUND // 2)] == list(range(BOUND // 2))
    with pytest.raises(ShutDown):
        q.get()


def test_an_immediate_shutdown_drops_what_was_put(make, keeps):
    q = make(BOUND)
    for item in range(BOUND // 2):
        q.put(item)
    q.shutdown(immediate=True)
    with pytest.raises(ShutDown):
        q.get()
    with pytest.raises(ShutDown):
        q.put("more")


@pytest.mark.parametrize("by", ["itself", "another"])
def test_a_delete_waits_for_nothing_but_what_is_reserved(make, other_of, by):
    q = make(BOUND)
    other = other_of(q)
    for item in range(BOUND // 2):
        q.put(item)
    if by == "itself":
        q.delete()
    else:
        other.delete()
    assert not q.exists()


def test_who_keeps_space_is_told_to_those_who_ask(make, other_of, keeps):
    q = make(BOUND)
    other = other_of(q)
    writing(q)
    blocked = other.why_blocked()
    assert blocked.put.holder.state == "writing"
    assert str(os.getpid()) in str(blocked)


def test_what_is_not_used_soon_is_for_others(make, own_server, monkeypatch):
    monkeypatch.setattr(space, "_WINDOW", HOURS)
    q = make(BOUND)
    for item in range(10):
        q.put(item)
    with own_server.client() as client:
        until(lambda: client.llen(f"__pressure__:{q.name}:producer_free") == 1)
    assert not inside.has_space(q)


# Order


def test_what_threads_put_one_after_the_other_arrives_so(make):
    q, turn, numbers = make(BOUND), threading.Lock(), itertools.count()

    def put_some():
        for _ in range(300):
            with turn:
                q.put(next(numbers))

    threads = [Background(put_some) for _ in range(4)]
    assert [q.get(timeout=LIMIT) for _ in range(1200)] == list(range(1200))
    for thread in threads:
        thread.result()


def test_what_is_put_through_two_handles_arrives_in_that_order(make):
    q = make(BOUND)
    handles = itertools.cycle([q, inside.copy(q), inside.copy(q)])

    def put_all():
        for number in range(3000):
            next(handles).put(number)

    putting = Background(put_all)
    assert [q.get(timeout=LIMIT) for _ in range(3000)] == list(range(3000))
    putting.result()
    for _ in range(3):
        next(handles).close()


def test_what_is_put_into_several_queues_arrives_in_that_order(make, own_server):
    queues = [make(BOUND, serializer="raw"), make(serializer="raw"), make(500, serializer="raw")]
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
    q, sizes = make(BOUND), {3: 300_000, 7: 20_000, 9: 300_000}

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


# Processes that begin and end


def test_a_forked_child_has_no_part_in_what_its_parent_reserved(make, other_of, keeps):
    q = make(BOUND)
    number = writing(q)
    child = other_of(q)
    q.put(number)
    child.put("of the child")  # the parent is told that it is wanted when it puts
    assert [q.get() for _ in range(number + 2)] == [*range(number + 1), "of the child"]


def test_what_was_put_before_a_fork_comes_before_what_the_child_puts(make, start):
    q = make(BOUND)
    for _ in range(3):
        for item in range(30):
            q.put(item)
        process, _ = start(programs.put_all, q, ["child"])
        assert [q.get(timeout=LIMIT) for _ in range(31)] == [*range(30), "child"]
        process.join()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_that_ends_sends_what_it_put_and_leaves_the_space(
    make, start, keeps, own_server, method
):
    q = make(1000)
    process, pipe = start(programs.put_all, q, list(range(600)), method=method)
    assert pipe.recv() == "put all"
    process.join()
    assert process.exitcode == 0
    with own_server.client() as client:
        assert client.llen(f"__pressure__:{q.name}:producer_free") == 1
    assert fill(q, 600) == 1000
    assert [q.get() for _ in range(1000)] == list(range(1000))


def test_a_handle_that_is_closed_sends_what_was_put(make, other_of):
    q = make(1000)
    other = other_of(q)
    for item in range(600):
        q.put(item)
    q.close()
    assert other.qsize() == 600
    assert not inside.has_space(q)


def test_a_producer_that_is_killed_keeps_nobody_from_the_space(make, start, keeps):
    q = make(1000, lease=HOURS)
    process, pipe = start(programs.put_and_stop, q, 500, signal.SIGKILL)
    assert pipe.recv() == "put"
    process.join()
    q.put("mine")
    found = list(iter(q.get, "mine"))
    assert found == list(range(len(found)))
    assert fill(q, 0) == 1000


@pytest.mark.parametrize("call", ["put_nowait", "qsize", "full", "shutdown"])
def test_calls_that_do_not_wait_find_a_killed_producer_gone(make, start, keeps, call):
    q = make(1000, lease=HOURS)
    process, pipe = start(programs.put_and_stop, q, 500, signal.SIGKILL)
    assert pipe.recv() == "put"
    process.join()
    getattr(q, call)(*["mine"][: call == "put_nowait"])


def test_a_producer_that_was_stopped_for_long_loses_the_space_and_no_item(make, start, keeps):
    q = make(2000, lease=1)
    process, pipe = start(programs.put_and_stop, q, 500, signal.SIGSTOP)
    assert pipe.recv() == "put"
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    with pytest.raises(Full):
        q.put_nowait("too soon")
    q.put("mine")
    os.kill(process.pid, signal.SIGCONT)
    process.join(LIMIT)
    found = [q.get(timeout=LIMIT) for _ in range(1001)]
    found.remove("mine")
    assert found == list(range(1000))


@pytest.mark.parametrize("signal_number", programs.SIGNALS)
def test_the_space_of_a_consumer_that_read_ahead_is_free_for_others(
    make, start, keeps, signal_number
):
    q = make(BOUND, lease=1)
    fill(q, 0)
    process, pipe = start(programs.get_some, q, 40, signal_number)
    assert pipe.recv() == 39
    if signal_number == signal.SIGKILL:
        process.join()
    else:
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    for item in range(BOUND, BOUND + 40):
        q.put(item, timeout=LIMIT)
    with pytest.raises(Full):
        q.put_nowait("more")
    assert [q.get(timeout=LIMIT) for _ in range(BOUND)] == list(range(40, BOUND + 40))


# Connections that break


def test_connections_that_break_lose_nothing_and_the_bound_holds(make, proxy_of, own_server):
    proxy = proxy_of(own_server)
    q = make(BOUND, url=proxy.url)
    done = threading.Event()

    def put_all():
        for number in range(10000):
            q.put(number)
        done.set()

    cutting, putting = Background(lambda: proxy.trouble(done)), Background(put_all)
    assert [q.get(timeout=LIMIT) for _ in range(10000)] == list(range(10000))
    putting.result()
    cutting.result()
    assert fill(q, 0) == BOUND


def test_a_release_that_was_not_heard_of_keeps_nobody_waiting(make, own_server, proxy_of, keeps):
    proxy = proxy_of(own_server)
    q = make(BOUND, url=proxy.url, lease=HOURS)
    writing(q)
    proxy.cut()
    q.maxsize = 200
    assert fill(q, 10) == 200
    assert q.qsize() == 200
