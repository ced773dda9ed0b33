"""What every Queue does, on every engine and server."""

from __future__ import annotations

import functools
import pickle
import queue as stdlib
import threading
import time

import pytest
from oracle.clients import waiters
from order_keys import same
from waiting import HOURS, Background, until

import pressure_mp
from pressure_mp import FairQueue, LifoQueue, PriorityQueue, Queue
from pressure_mp.engines.contract.levels import Level

pytestmark = pytest.mark.usefixtures("world")

#: With one key, or one priority, for all items every discipline but LIFO is first in, first out.
DISCIPLINES = {
    "fifo": (Queue, {}),
    "lifo": (LifoQueue, {}),
    "priority": (PriorityQueue, {"key": same}),
    "fair": (FairQueue, {"key": same}),
}


#: An engine needs no more for it than the first level.
FIFO = pytest.param("fifo", marks=pytest.mark.levels(Level.ITEMS))


@pytest.fixture(params=[FIFO, "lifo", "priority", "fair"])
def make(url, name, request, world):
    """Makes handles to one queue."""
    kind, own = DISCIPLINES[request.param]
    kind = world(kind)

    def make(maxsize=0, **options):
        return kind(maxsize=maxsize, name=name, url=url, **own, **options)

    make.create = functools.partial(kind.create, name, url=url, **own)
    make.attach = functools.partial(kind.attach, name, url=url, **own)
    make.served = lambda items: items[::-1] if request.param == "lifo" else items

    return make


def test_items_come_out_in_the_disciplines_order(make):
    q = make()
    items = [1, "two", {"three": 3}, None]
    for item in items:
        q.put(item)
    assert [q.get() for _ in range(4)] == make.served(items)


def test_put_waits_for_space_and_get_waits_for_an_item(make):
    q = make(1)
    q.put("first")
    putting = Background(q.put, "second")
    assert q.get() == "first"
    putting.result()
    assert q.get() == "second"
    getting = Background(q.get)
    q.put("third")
    assert getting.result() == "third"


def test_a_full_queue_raises_full_and_an_empty_one_empty(make):
    q = make(1)
    q.put(1)
    for call in (lambda: q.put_nowait(2), lambda: q.put(2, timeout=0.05)):
        with pytest.raises(stdlib.Full):
            call()
    assert q.qsize() == 1
    q.get()
    for call in (q.get_nowait, lambda: q.get(timeout=0.05)):
        with pytest.raises(stdlib.Empty):
            call()


def test_a_timeout_lasts_as_long_as_it_says(make):
    q = make()
    begin = time.monotonic()
    with pytest.raises(stdlib.Empty):
        q.get(timeout=0.3)
    assert time.monotonic() - begin > 0.29


def test_waiters_are_served_in_the_order_they_came(make):
    q = make()
    served, before = [], waiters(q)
    for number in range(4):
        Background(lambda n=number: served.append((n, q.get())))
        until(lambda n=number: waiters(q) == before + n + 1)
    for item in "abcd":
        q.put(item)
        until(lambda item=item: len(served) > "abcd".index(item))
    assert served == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]


def test_a_blocked_get_does_not_delay_a_put_on_the_same_handle(make):
    q = make()
    before = waiters(q)
    getting = Background(q.get)
    until(lambda: waiters(q) > before)
    q.put("x")
    assert getting.result() == "x"


def test_shutdown_ends_a_waiting_put_and_lets_the_rest_be_drained(make):
    q = make(1)
    q.put("last")
    putting = Background(q.put, "never")
    q.shutdown()
    with pytest.raises(pressure_mp.ShutDown):
        putting.result()
    assert q.get() == "last"
    with pytest.raises(pressure_mp.ShutDown):
        q.get()
    assert q.is_shutdown


@pytest.mark.usefixtures("no_ticks")
def test_shutdown_reaches_every_blocked_get_at_once(make):
    q = make(lease=3 * HOURS)
    before = waiters(q)
    getting = [Background(q.get) for _ in range(8)]
    until(lambda: waiters(q) == before + 8)
    q.shutdown()
    for get in getting:
        with pytest.raises(pressure_mp.ShutDown):
            get.result()


@pytest.mark.levels(Level.DELIVERIES)
def test_immediate_shutdown_drops_the_items_and_counts_them_as_done(make):
    q = make()
    q.put(1)
    q.put(2)
    joining = Background(q.join)
    q.shutdown(immediate=True)
    joining.result()
    assert q.qsize() == 0
    with pytest.raises(pressure_mp.ShutDown):
        q.get()


@pytest.mark.levels(Level.DELIVERIES)
def test_join_returns_when_every_item_is_done(make):
    q = make()
    q.put(1)
    q.put(2)
    joining = Background(q.join)
    q.get()
    q.task_done()
    assert q.unfinished_tasks == 1
    assert joining.is_alive()
    q.get()
    q.task_done()
    joining.result()
    with pytest.raises(ValueError, match="too many times"):
        q.task_done()


def test_iteration_ends_when_the_queue_is_shut_down_and_drained(make):
    q = make()
    for item in range(3):
        q.put(item)
    q.shutdown()
    assert list(q) == make.served([0, 1, 2])


def test_a_closed_handle_is_done_and_others_go_on(make):
    q, other = make(), make()
    q.close()
    for call in (lambda: q.put(1), q.get):
        with pytest.raises(ValueError, match="is closed"):
            call()
    other.put(1)
    assert other.get() == 1


def test_a_pickled_handle_refers_to_the_same_queue(make):
    q = make(3)
    copy = pickle.loads(pickle.dumps(q))
    q.put("there")
    assert copy.get() == "there"
    assert copy.maxsize == 3


def test_stats_are_one_consistent_picture(make):
    q = make(5, serializer="raw")
    for item in make.served([b"abc", b"de"]):
        q.put(item)
    assert q.get() == b"abc"
    assert q.stats() == pressure_mp.Stats(
        length=1,
        maxsize=5,
        closed=False,
        produced_messages=2,
        produced_bytes=5,
        consumed_messages=1,
        consumed_bytes=3,
        producer=q.client_id,
        consumer=q.client_id,
        unfinished=2,
        rejected=0,
        in_flight=0,
    )


def test_maxsize_can_be_changed_for_all_handles(make):
    q, other = make(1), make()
    q.put(1)
    putting = Background(other.put, 2)
    q.maxsize = 2
    putting.result()
    assert other.full()
    q.maxsize = 1
    with pytest.raises(pressure_mp.Full):
        other.put_nowait(3)


def test_a_handle_that_asks_whether_its_queue_exists_does_not_create_it(make):
    q, other = make(), make()
    assert not q.exists()
    assert not other.exists()
    q.open()
    assert q.exists()
    assert other.exists()


def test_attach_create_and_their_errors(make, name):
    with pytest.raises(pressure_mp.QueueDoesNotExistError, match=name):
        make.attach()
    assert make.create(7).maxsize == 7
    with pytest.raises(pressure_mp.QueueAlreadyExistsError, match=name):
        make.create()
    with pytest.raises(pressure_mp.QueueMismatchError, match="maxsize 7, not 8"):
        make(8).open()
    assert make().maxsize == make(7).maxsize == 7


def test_after_delete_waiting_and_later_calls_raise_that_the_queue_does_not_exist(make):
    q = make()
    q.open()
    getting = Background(q.get)
    make().delete()
    with pytest.raises(pressure_mp.QueueDoesNotExistError):
        getting.result()
    with pytest.raises(pressure_mp.QueueDoesNotExistError):
        q.put(1)
    assert not q.exists()


def test_many_threads_lose_and_invent_nothing(make):
    q = make(5)
    got, lock = [], threading.Lock()

    def consume():
        for item in q:
            with lock:
                got.append(item)

    consumers = [Background(consume) for _ in range(4)]
    producers = [Background(lambda p=p: [q.put((p, n)) for n in range(100)]) for p in range(4)]
    for producer in producers:
        producer.result()
    q.shutdown()
    for consumer in consumers:
        consumer.result()
    assert sorted(got) == [(p, n) for p in range(4) for n in range(100)]
    assert q.stats().consumed_messages == 400
