"""``buffering=N``: what every engine and server has of it, in threads."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import threading
import time

import inside
import pytest
from waiting import LIMIT, Background, until

import pressure_mp
from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    DecodingError,
    Empty,
    EncodingError,
    FairQueue,
    Full,
    HandleClosedError,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    QueueDoesNotExistError,
    ShutDown,
    SimpleQueue,
)
from pressure_mp.buffering.prefetching import Prefetching

KINDS = [Queue, SimpleQueue, JoinableQueue]


@pytest.fixture
def make(url, name):
    """Handles to one queue; those with buffers are closed at the end, as programs do."""
    made = []

    def make(kind=Queue, buffering=64, **options):
        made.append(kind(name=name, url=url, buffering=buffering, prefetch=buffering, **options))
        return made[-1]

    yield make
    for handle in made:
        try:
            handle.close()
        except pressure_mp.PressureError:
            pass  # what a test made to fail


def plain(make, **options):
    return make(buffering=0, **options)


# Puts


@pytest.mark.parametrize("kind", KINDS)
def test_items_come_out_in_the_order_they_went_in(make, kind):
    q = make(kind)
    for number in range(1000):
        q.put(number)
    assert q.qsize() == 1000
    assert [q.get() for _ in range(1000)] == list(range(1000))
    assert q.empty()
    stats = q.stats()
    assert (stats.produced_messages, stats.consumed_messages) == (1000, 1000)


def test_a_lone_item_goes_at_once(make):
    q, other = make(), plain(make)
    q.put("lone")
    assert other.get(timeout=LIMIT) == "lone"


def test_flush_returns_when_the_broker_has_everything(make):
    q, other = make(), plain(make)
    for number in range(200):
        q.put(number)
    q.flush()
    assert other.qsize() == 200
    plain(make).flush()


def test_close_and_join_thread_wait_for_what_was_put(make):
    q, other = make(), plain(make)
    for number in range(100):
        q.put(number)
    q.join_thread()
    assert other.qsize() == 100
    q.put("last")
    q.close()
    assert other.qsize() == 101
    with pytest.raises(HandleClosedError):
        q.put("late")
    with pytest.raises(HandleClosedError):
        q.get()


def test_a_handle_that_is_dropped_sends_what_was_put(make, url, name):
    other = plain(make)
    q = Queue(name=name, url=url, buffering=64, prefetch=64)
    q.put("kept")
    del q
    gc.collect()
    assert other.get(timeout=LIMIT) == "kept"


def test_put_many_comes_after_what_was_put_before(make):
    q, other = make(), plain(make)
    q.put(1)
    q.put_many([2, 3])
    assert other.get_many(9) == [1, 2, 3]


def test_a_put_of_an_item_that_cannot_be_encoded_raises_in_the_caller(make):
    q = make()
    for _ in range(2):
        with pytest.raises(EncodingError):
            q.put(lambda: None)
        q.put(1)
    assert [q.get(), q.get()] == [1, 1]


# A bounded queue


def test_a_prefetched_item_counts_while_another_thread_looks_after_it(make):
    q = make(maxsize=2)
    q.put(1)
    q.put(2)
    assert q.get() == 1  # and 2 was fetched with it
    q.put(3)
    q.flush()
    holds = threading.Event()

    def hold():
        with q._gets._lock:
            holds.set()
            time.sleep(0.2)

    holding = Background(hold)
    assert holds.wait(LIMIT)
    with pytest.raises(Full):
        q.put(4, False)
    holding.result()
    assert [q.get(), q.get()] == [2, 3]


def test_a_full_queue_refuses_a_put_as_it_does_without_a_buffer(make):
    q = make(maxsize=3)
    for number in range(3):
        q.put_nowait(number)
    assert q.full()
    with pytest.raises(Full) as caught:
        q.put_nowait(3)
    assert caught.value.item == 3
    begin = time.monotonic()
    with pytest.raises(Full):
        q.put(3, timeout=0.05)
    assert 0.05 <= time.monotonic() - begin < LIMIT
    assert q.get() == 0
    q.put_nowait(3)
    assert q.full()
    with pytest.raises(Full):
        q.put_nowait(4)
    assert [q.get() for _ in range(3)] == [1, 2, 3]


def test_a_put_that_waits_for_space_goes_on_when_there_is_some(make):
    q, other = make(maxsize=2), plain(make)
    q.put(1)
    q.put(2)
    putting = Background(q.put, 3)
    putting.join(0.05)
    assert putting.is_alive()
    assert other.get() == 1
    putting.result()
    assert [other.get(), other.get()] == [2, 3]


def test_a_full_buffer_blocks_a_put(make):
    """Others took the space that the queue had when this handle looked."""
    q, other = make(buffering=3, maxsize=100), plain(make)
    q.put("first")
    q.flush()
    other.put_many(range(99))
    for number in range(3):
        q.put(number, timeout=LIMIT)
    with pytest.raises(Full, match="3 items of this handle wait"):
        q.put_nowait(3)
    with pytest.raises(Full):
        q.put(3, timeout=0.05)
    putting = Background(q.put, 3)
    flushing = Background(q.flush)
    flushing.join(0.05)
    assert putting.is_alive()
    assert flushing.is_alive()
    assert q.qsize() == 103
    other.get_many(50)
    putting.result()
    flushing.result()
    rest = [other.get() for _ in range(54)]
    assert rest[-4:] == [0, 1, 2, 3]


@pytest.fixture
def stuck(make):
    """A handle with an item in its buffer that finds no space, and one without a buffer."""
    q, other = make(maxsize=5), plain(make)
    q.put("first")
    q.flush()
    other.put_many(range(4))
    q.put("stuck")
    return q, other


def test_put_many_waits_no_longer_than_its_timeout_for_the_space_that_a_buffer_needs(stuck):
    q, other = stuck
    begin = time.monotonic()
    with pytest.raises(Full) as refused:
        q.put_many([1, 2], timeout=0.05)
    assert 0.05 <= time.monotonic() - begin < LIMIT
    assert (refused.value.accepted, refused.value.rest) == (0, [1, 2])
    with pytest.raises(Full) as refused:
        q.put_many([1, 2], block=False)
    assert (refused.value.accepted, refused.value.rest) == (0, [1, 2])
    other.get_many(5)
    q.put_many([1, 2], timeout=LIMIT)
    assert other.get_many(9) == ["stuck", 1, 2]


def test_a_new_bound_makes_space_for_what_waits_in_a_buffer(stuck):
    q, other = stuck
    setting = Background(setattr, q, "maxsize", 10)
    setting.result()
    q.flush()
    assert other.get_many(9) == ["first", 0, 1, 2, 3, "stuck"]


def test_get_does_not_wait_for_a_buffer_that_cannot_be_sent(make):
    q, other = make(buffering=3, maxsize=5), plain(make)
    q.put("first")
    q.flush()
    other.put_many(range(4))
    q.put("stuck")
    assert q.get() == "first"
    assert q.get(timeout=LIMIT) == 0


def test_a_new_bound_counts(make):
    q = make(maxsize=1)
    q.put(1)
    q.maxsize = 3
    q.put_nowait(2)
    q.put_nowait(3)
    with pytest.raises(Full):
        q.put_nowait(4)


# Errors in the background


def test_a_failure_is_raised_by_the_next_call_with_the_items(make):
    q, other = make(), plain(make)
    q.put("sent")
    q.flush()
    other.shutdown()
    q.put("a")
    q.put("b")
    with pytest.raises(ShutDown) as caught:
        q.flush()
    assert list(caught.value.rest) == ["a", "b"]
    q.flush()  # it was said
    with pytest.raises(ShutDown):
        q.put("c")
    assert q.get() == "sent"


@pytest.mark.parametrize("call", ["put", "put_many", "join_thread", "join", "close", "task_done"])
def test_every_call_tells_of_a_failure(make, call):
    q = make()
    q.put("sent")
    q.flush()
    q.get()
    plain(make).delete()
    q.put("lost")
    until(lambda: q._puts.pending.has_failed)
    arguments = {"put": ["x"], "put_many": [["x"]]}.get(call, [])
    with pytest.raises(QueueDoesNotExistError) as caught:
        getattr(q, call)(*arguments)
    assert caught.value.rest == ["lost"]


def test_gets_return_the_queued_items_also_after_a_put_failed(make):
    q, other = make(), plain(make)
    q.put("a")
    q.put("b")
    q.flush()
    other.shutdown()
    q.put("lost")
    until(lambda: q._puts.pending.has_failed)
    assert list(q) == ["a", "b"]
    with pytest.raises(ShutDown) as caught:
        q.flush()
    assert caught.value.rest == ["lost"]


def test_an_item_that_cannot_be_read_back_is_in_the_rest_as_it_was_queued(make):
    q, other = make(), plain(make)
    q.put("sent")
    q.flush()
    other.shutdown()
    q.put("good")
    q.put(Unreadable())
    with pytest.raises(ShutDown) as caught:
        q.flush()
    assert caught.value.rest[0] == "good"
    assert isinstance(caught.value.rest[1], bytes)


class Unreadable:
    def __reduce__(self):
        return int, ("not a number",)


def test_nothing_is_lost_or_twice_when_some_of_a_batch_was_accepted(make):
    q, other = make(maxsize=10), plain(make)
    q.put(0)
    q.flush()
    other.put_many(range(100, 107))
    for number in range(1, 6):  # there is space for two
        q.put(number)
    until(lambda: other.qsize() == 10)
    other.shutdown()
    with pytest.raises(ShutDown) as caught:
        q.flush()
    got = list(other)
    assert [0, *got[8:], *caught.value.rest] == [0, 1, 2, 3, 4, 5]


# Gets


@pytest.mark.parametrize("kind", KINDS)
def test_prefetched_items_that_were_not_handed_out_go_back_in_order(make, kind):
    q, other = make(kind, buffering=10), plain(make)
    other.put_many(range(20))
    assert [q.get(), q.get()] == [0, 1]
    assert (q.qsize(), other.qsize()) == (18, 10)
    q.close()
    assert other.qsize() == 18
    assert [other.get() for _ in range(18)] == list(range(2, 20))


def test_the_first_prefetch_is_no_late_renewal_of_a_lease(make, caplog):
    q = make(lease=10)
    plain(make).put_many([1, 2])
    assert q.get() == 1  # at once: before a wait, too, the lease is kept
    lease, looked = inside.presence(q).lease, set()
    until(lambda: looked.add(lease.looked) or len(looked) > 2)
    assert not [told for told in caplog.messages if f"in queue {q.name!r} had run out" in told]


def test_two_readers_give_back_in_order(make):
    one, two, other = make(buffering=5), make(buffering=5), plain(make)
    other.put_many(range(30))
    assert [one.get(), two.get(), one.get()] == [0, 5, 1]
    one.close()
    two.close()
    assert [other.get() for _ in range(27)] == [2, 3, 4, *range(6, 30)]


def test_each_thread_gets_in_order_one_by_one_or_many(make):
    q, other = make(buffering=10), plain(make)
    numbers = list(range(1000))

    def one_by_one():
        return list(iter(q.get, None))

    def many():
        got = []
        while None not in got:
            got += q.get_many(7)
        for _ in range(got.count(None) - 1):
            q.put(None)
        return [number for number in got if number is not None]

    getting = [Background(one_by_one), Background(many)]
    other.put_many([*numbers, None, None])
    found = [one.result() for one in getting]
    assert [sorted(each) for each in found] == found
    assert sorted([*found[0], *found[1]]) == numbers


def test_get_many_hands_out_what_was_fetched_first(make):
    q, other = make(buffering=10), plain(make)
    other.put_many(range(15))
    assert q.get() == 0
    assert q.get_many(4) == [1, 2, 3, 4]
    assert q.get_many(100) == [5, 6, 7, 8, 9]
    assert q.get_many(100) == [10, 11, 12, 13, 14]
    with pytest.raises(Empty):
        q.get_many(1, block=False)


def test_a_get_waits_for_its_time(make):
    q = make()
    begin = time.monotonic()
    with pytest.raises(Empty):
        q.get(timeout=0.05)
    assert 0.05 <= time.monotonic() - begin < LIMIT
    with pytest.raises(Empty):
        q.get_nowait()
    getting = Background(q.get)
    getting.join(0.05)
    plain(make).put("late")
    assert getting.result() == "late"


def test_threads_of_one_handle_share_what_it_fetched(make):
    q, other = make(), plain(make)
    getting = [Background(q.get, timeout=LIMIT) for _ in range(5)]
    with pytest.raises(Empty):
        q.get(timeout=0.05)
    with pytest.raises(Empty):
        q.get_nowait()
    other.put_many(range(8))
    assert sorted([one.result() for one in getting] + [q.get() for _ in range(3)]) == list(range(8))


def test_a_get_that_does_not_wait_is_served_before_a_get_that_is_woken_meanwhile(make, monkeypatch):
    q, other, take = make(), plain(make), Prefetching._take_one
    waiter = Background(q.get)
    until(lambda: q._gets._waits)

    def take_late(*args):
        other.put_many([1, 2, 3])
        waiter.join(0.2)  # it is woken, and must not go on before this get has its item
        return take(*args)

    monkeypatch.setattr(Prefetching, "_take_one", take_late)
    assert q.get(block=False) == 1
    assert waiter.result() == 2
    assert q.get() == 3


def test_a_slow_consumer_keeps_no_more_than_its_share(make):
    slow, fast, other = make(buffering=1000), make(buffering=1000), plain(make)
    other.put_many(range(10))
    assert (slow.get(), len(slow.get_many(100))) == (0, 9)  # it was alone
    other.put_many(range(100))
    assert slow.get() == 0
    assert other.qsize() == 0  # it is still alone
    slow.get_many(1000)
    with pytest.raises(Empty):
        fast.get_nowait()
    other.put_many(range(100))
    fast.get()  # a single item, since it found none before
    fast.get()
    other.put_many(range(100, 200))
    slow.get()
    fetched = 200 - other.qsize()
    got = fast.get_many(1000)
    while other.qsize():
        got += fast.get_many(1000)
    assert len(got) + 2 >= 100
    assert fetched <= 200


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_that_cannot_be_decoded_is_set_aside_and_the_others_come(make, kind):
    q, other = make(kind), plain(make, serializer="raw")
    items = [pickle.dumps(0), b"no pickle", pickle.dumps(2)]
    other.put_many(items)
    assert q.get() == 0
    with pytest.raises(DecodingError):
        q.get()
    assert q.get() == 2
    assert (q.rejected(), q.stats().unfinished) == ([b"no pickle"], 2)


def test_signed_items_go_through_buffers(make):
    q = make(authkey="secret")
    for number in range(100):
        q.put(number)
    assert [q.get() for _ in range(100)] == list(range(100))
    plain(make, authkey="other").put("forged")
    with pytest.raises(pressure_mp.AuthenticationError):
        q.get()


# Tasks, shutdown, the rest


def test_tasks_count_what_waits_in_buffers(make):
    q = make()
    for number in range(10):
        q.put(number)
    assert q.unfinished_tasks == 10
    joining = Background(q.join)
    joining.join(0.05)
    assert joining.is_alive()
    for _ in range(10):
        q.get()
        q.task_done()
    joining.result()
    with pytest.raises(ValueError, match="too many"):
        q.task_done()


def test_an_item_that_a_joinable_queue_handed_out_is_in_flight_until_task_done(make):
    q = make(JoinableQueue)
    for number in range(5):
        q.put(number)
    assert [q.get(), q.get()] == [0, 1]
    q.task_done()
    q.close()
    assert (q.stats().in_flight, q.stats().length) == (1, 3)
    q.task_done()
    assert q.stats().in_flight == 0


def test_shutdown_sends_first_what_was_put(make):
    q, other = make(), plain(make)
    for number in range(100):
        q.put(number)
    q.shutdown()
    with pytest.raises(ShutDown):
        q.put("late")
    assert list(other) == list(range(100))
    with pytest.raises(ShutDown):
        q.get()


def test_an_immediate_shutdown_drops_the_items_in_buffers(make):
    q, other = make(), plain(make)
    for number in range(100):
        q.put(number)
    assert q.get() == 0
    q.shutdown(immediate=True)
    with pytest.raises(ShutDown):
        q.get()
    q.task_done()
    other.join()
    assert (q.qsize(), q.stats().in_flight) == (0, 0)


@pytest.mark.parametrize("immediate", [True, False])
def test_only_a_shutdown_that_drops_what_is_queued_lets_task_done_leave_out_a_refused_put(
    make, immediate
):
    q, other = make(JoinableQueue), plain(make)
    q.put("job")
    assert q.get() == "job"
    other.shutdown(immediate=immediate)
    q.put("job of the job")
    if not immediate:
        with pytest.raises(ShutDown) as raised:
            q.task_done()
        assert q.unfinished_tasks == 1
    q.task_done()
    assert other.unfinished_tasks == 0
    if immediate:
        with pytest.raises(ShutDown) as raised:
            q.flush()
    assert raised.value.immediate == immediate
    assert raised.value.rest == ["job of the job"]


def test_the_end_of_all_producers_comes_after_what_was_put(make):
    q, other = make(eof="producers"), plain(make, eof="producers")
    for number in range(100):
        q.put(number)
    q.close()
    assert list(other) == list(range(100))


def test_a_handle_with_buffers_reads_to_the_end_of_all_producers(make):
    producer, consumer = plain(make, eof="producers"), make(eof="producers")
    producer.put_many(range(10))
    producer.close()
    assert list(consumer) == list(range(10))


@pytest.mark.parametrize("kind", [LifoQueue, PriorityQueue])
def test_other_orders_refuse_buffers(kind, url, name):
    with pytest.raises(ArgumentError, match="buffering"):
        kind(name=name, url=url, buffering=5)
    with pytest.raises(ArgumentError, match="prefetch"):
        FairQueue(str, name=name, url=url, prefetch=5)
    assert not Queue(name=name, url=url).qsize()


def test_a_limit_of_deliveries_refuses_to_fetch_ahead():
    with pytest.raises(ArgumentError, match="prefetch"):
        JoinableQueue(url="memory://", max_deliveries=3, prefetch=5)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(-1, ArgumentError), (1.5, ArgumentTypeError), (True, ArgumentTypeError), ("5", TypeError)],
)
def test_a_buffer_is_a_number_of_items(wrong, error):
    with pytest.raises(error, match="buffering"):
        Queue(url="memory://", buffering=wrong)


def test_a_handle_that_was_pickled_has_buffers_of_its_own(make):
    q = make()
    q.put(1)
    copy = pickle.loads(pickle.dumps(q))
    copy.put(2)
    copy.close()
    q.flush()
    assert sorted([q.get(), q.get()]) == [1, 2]


def test_a_handle_that_is_dropped_gives_back_what_it_fetched(make, url, name):
    other = plain(make)
    other.put_many(range(5))
    q = Queue(name=name, url=url, buffering=5, prefetch=5)
    assert q.get() == 0
    del q
    gc.collect()
    until(lambda: other.qsize() == 4)
    assert other.get() == 1


def test_the_thread_ends_when_there_is_nothing_to_send(make, monkeypatch):
    monkeypatch.setattr("pressure_mp.buffering.sender._LINGER", 0.05)
    q = make()
    q.put(1)
    until(lambda: not any(q.url in thread.name for thread in threading.enumerate()))
    q.put(2)
    assert [q.get(), q.get()] == [1, 2]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_starts_empty(server, name):
    q = Queue(name=name, url=server.url, maxsize=12, buffering=64, prefetch=64)
    q.open()
    other = Queue(name=name, url=server.url)
    other.put_many(range(100, 110))
    assert q.get() == 100  # and fetched the others
    q.put("first")
    q.flush()
    other.put_many(range(11))
    q.put("parent")
    process = multiprocessing.get_context("fork").Process(target=put_and_count, args=(q,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert [q.get() for _ in range(9)] == list(range(101, 110))
    rest = [q.get() for _ in range(14)]
    assert rest[0] == "first"
    assert rest[1:12] == list(range(11))
    assert sorted(rest[12:]) == ["child", "parent"]
    q.close()
    assert other.empty()


def put_and_count(q):
    if inside.buffered(q):
        os._exit(3)
    Queue(name=q.name, url=q.url).maxsize = 100
    q.put("child")
