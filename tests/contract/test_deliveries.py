"""Items in flight: what every JoinableQueue does, on every engine and server.

Here the processes that have items in flight are only names: owners of another host, which the
operations are told. Real ones are in tests/redis/test_presence.py.
"""

from __future__ import annotations

import random
import threading
import warnings

import inside
import pytest
from oracle import clients
from waiting import LIMIT, Background

import pressure_mp
from pressure_mp import DecodingError, JoinableQueue, LateTaskDoneWarning, Queue, ShutDown
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.operations.deliveries import DeliveryOperations

pytestmark = pytest.mark.usefixtures("world")

A, B = "elsewhere/1/1/aaaaaaaa", "elsewhere/2/1/bbbbbbbb"


class Broker(clients.Client):
    """Operations in the name of any owner."""

    def __init__(self, url, name, lease=clients.LEASE):
        super().__init__(url, name, lease)
        self.operations = DeliveryOperations(name, "fifo")
        self.calls = 0

    def take(self, owner, limit=0):
        self.calls += 1
        operation = self.operations.take_many(owner, self.calls, limit, 1, False, None)
        (delivery,) = self.run(operation)
        return delivery

    def acknowledge(self, owner, seq=None):
        return self.run(self.operations.acknowledge(owner, seq))

    def requeue(self, owner, **which):
        return self.run(self.operations.requeue(owner, **which))

    def fill(self, *items):
        for item in items:
            self.put(item)

    def drain(self):
        """The queued items, oldest first; they are got for good."""
        return [self.get(False) for _ in range(self.length())]


@pytest.fixture
def broker(url, name):
    made = Broker(url, name)
    made.open()
    return made


@pytest.fixture
def make(url, name):
    def make(maxsize=0, kind=JoinableQueue, **options):
        return kind(maxsize, name, url=url, **options)

    return make


# Items in flight


def test_an_item_that_was_got_is_in_flight_until_task_done(make):
    q = make()
    q.put("a")
    assert q.get() == "a"
    assert (q.qsize(), q.stats().in_flight, q.unfinished_tasks) == (0, 1, 1)
    q.task_done()
    assert (q.qsize(), q.stats().in_flight, q.unfinished_tasks) == (0, 0, 0)
    q.join()


def test_an_item_in_flight_does_not_fill_the_queue(make):
    q = make(1)
    q.put("a")
    assert q.get() == "a"
    q.put_nowait("b")
    assert q.get() == "b"
    assert q.stats().in_flight == 2


def test_a_plain_queue_has_nothing_in_flight(make):
    q = make(kind=Queue)
    q.put("a")
    q.get()
    assert q.stats().in_flight == 0
    q.task_done()
    q.join()


def test_task_done_too_often_is_an_error_and_changes_nothing(make):
    q = make()
    with pytest.raises(ValueError, match="too many times"):
        q.task_done()
    q.put("a")
    q.get()
    q.task_done()
    with pytest.raises(ValueError, match="too many times"):
        q.task_done()
    assert q.unfinished_tasks == 0


def test_join_waits_for_items_in_flight(make):
    q = make()
    q.put("a")
    q.get()
    joining = Background(make().join)
    joining.join(0.1)
    assert joining.is_alive()
    q.task_done()
    joining.result()


# Whose turn a task_done() is


def test_each_thread_acknowledges_its_own_items_oldest_first(make, broker):
    q = make(serializer="raw")
    broker.fill(b"mine 1", b"its 1", b"mine 2", b"its 2")
    assert q.get() == b"mine 1"
    steps = [threading.Event() for _ in range(2)]

    def other():
        q.get()
        steps[0].set()
        steps[1].wait(LIMIT)
        q.get()
        q.task_done()

    thread = Background(other)
    steps[0].wait(LIMIT)
    assert q.get() == b"mine 2"
    steps[1].set()
    thread.result()
    q.task_done()
    in_flight_came_back(q, [b"mine 2", b"its 2"])


def in_flight_came_back(q, items):
    """Requeue the items in flight of this process, and compare them with ``items``."""
    inside.run(
        q, DeliveryOperations(q.name, "fifo").requeue(pressure_mp.identity.processes.incarnation())
    )
    assert [inside.run(q, inside.operations(q).get(False, None)) for _ in range(q.qsize())] == items


def test_a_thread_with_nothing_in_flight_acknowledges_what_another_got_first(make, broker):
    q = make(serializer="raw")
    broker.fill(b"1", b"2")
    assert (q.get(), q.get()) == (b"1", b"2")
    Background(q.task_done).result()
    in_flight_came_back(q, [b"2"])


def test_a_thread_that_ended_leaves_its_items_to_the_process(make, broker):
    q = make(serializer="raw")
    broker.fill(b"1", b"2")
    for item in (b"1", b"2"):
        assert Background(q.get).result() == item
    assert q.stats().in_flight == 2
    q.task_done()
    in_flight_came_back(q, [b"2"])


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_a_process_with_nothing_in_flight_acknowledges_the_oldest(broker):
    broker.fill(b"1", b"2", b"3")
    first, second = broker.take(A), broker.take(A)
    assert broker.acknowledge(B) is Outcome.DONE
    assert broker.stats().in_flight == 1
    assert broker.acknowledge(A, first.seq) is Outcome.PASSED
    assert broker.acknowledge(A, second.seq) is Outcome.DONE
    assert broker.stats().unfinished == 1


def test_an_item_that_another_process_acknowledged_uses_up_no_task_done(make, broker):
    q = make(serializer="raw")
    broker.fill(b"1", b"2")
    q.get()
    q.get()
    assert broker.acknowledge(A) is Outcome.DONE  # of what it was handed by this process
    q.task_done()
    q.join()
    assert q.stats().in_flight == 0


def test_task_done_works_on_a_handle_that_was_closed(make):
    q, other = make(), make()
    q.put("a")
    q.get()
    q.close()
    assert other.stats().in_flight == 1
    q.task_done()
    other.join()


# Items that come back


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_items_come_back_to_the_front_in_their_order(broker):
    broker.fill(b"1", b"2", b"3", b"4")
    for _ in range(3):
        broker.take(A)
    assert broker.requeue(A)
    assert broker.stats().in_flight == 0
    assert broker.drain() == [b"1", b"2", b"3", b"4"]


@pytest.mark.only_threads("it uses no queue of the test's world")
@pytest.mark.parametrize("seed", range(5))
def test_whatever_comes_back_when_it_stands_where_it_stood(broker, seed):
    chance = random.Random(seed)
    owners = [f"elsewhere/{n}/1/0" for n in range(4)]
    items = [b"%03d" % n for n in range(60)]
    broker.fill(*items)
    done, in_flight = set(), {}
    for _ in range(150):
        owner = chance.choice(owners)
        mine = [delivery for delivery in in_flight.values() if delivery[0] == owner]
        act = chance.choice(["take", "take", "acknowledge", "requeue"])
        if act == "take" and broker.length():
            seq, item = broker.take(owner)
            in_flight[seq] = owner, item
            queued = set(items) - done - {item for _, item in in_flight.values()}
            assert all(item < other for other in queued)
        elif act == "acknowledge" and mine:
            seq = chance.choice([seq for seq, (taker, _) in in_flight.items() if taker == owner])
            assert broker.acknowledge(owner, seq) is Outcome.DONE
            done.add(in_flight.pop(seq)[1])
        elif act == "requeue" and len(mine) > 2:
            broker.requeue(owner)
            in_flight = {
                seq: delivery for seq, delivery in in_flight.items() if delivery[0] != owner
            }
        stats = broker.stats()
        assert (stats.in_flight, stats.unfinished) == (len(in_flight), len(items) - len(done))
        assert stats.length == stats.unfinished - stats.in_flight
    for owner in owners:
        broker.requeue(owner)
    assert broker.drain() == sorted(set(items) - done)


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_counts_are_as_if_the_item_had_not_been_got(broker):
    broker.fill(b"abc", b"de")
    before = broker.stats()
    broker.take(A)
    broker.requeue(A)
    after = broker.stats()
    for count in ("consumed_messages", "consumed_bytes", "unfinished", "length", "in_flight"):
        assert getattr(after, count) == getattr(before, count)


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_items_come_back_over_the_bound(url, name):
    broker = Broker(url, name)
    broker.open(1)
    broker.put(b"1")
    broker.take(A)
    broker.put(b"2")
    broker.requeue(A)
    assert broker.length() == 2
    for _ in range(2):
        with pytest.raises(pressure_mp.Full):
            broker.put(b"3", False)
        broker.get()
    broker.put(b"3", False)


def test_a_waiting_get_gets_an_item_that_comes_back(make, broker):
    broker.put(b"1")
    broker.take(A)
    q = make(serializer="raw")
    getting = Background(q.get)
    getting.join(0.1)
    broker.requeue(A)
    assert getting.result() == b"1"
    q.task_done()


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_items_of_plain_gets_in_between_do_not_come_back(broker):
    broker.fill(b"1", b"2", b"3", b"4", b"5")
    broker.take(A)
    broker.take(B)
    broker.requeue(A)
    broker.requeue(B)
    assert broker.get() == b"1"
    assert broker.take(A).item == b"2"
    assert broker.get() == b"3"
    broker.requeue(A)
    assert broker.drain() == [b"2", b"4", b"5"]


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_only_the_item_that_one_call_took_comes_back(broker):
    broker.fill(b"1", b"2", b"3")
    for _ in range(3):
        broker.take(A)
    broker.requeue(A, call=2)
    assert broker.stats().in_flight == 2
    assert broker.drain() == [b"2"]


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_a_renewed_lease_keeps_its_items(url, name, broker):
    broker.fill(b"1")
    broker.take(A)
    seen = broker.run(broker.operations.renew(B, False, False)).consumers[A]
    longer = Broker(url, name, lease=9000)
    longer.run(longer.operations.renew(A, True, False))
    assert not broker.requeue(A, seen=seen)
    assert broker.stats().in_flight == 1
    seen = broker.run(broker.operations.renew(B, False, False)).consumers[A]
    assert broker.requeue(A, seen=seen)
    assert broker.drain() == [b"1"]


# Too late


def test_a_task_done_that_comes_too_late_warns_and_does_not_count(make, broker):
    q = make(serializer="raw")
    broker.put(b"1")
    q.get()
    broker.requeue(pressure_mp.identity.processes.incarnation())
    delivery = broker.take(A)
    with pytest.warns(LateTaskDoneWarning, match=q.name):
        q.task_done()
    assert (q.unfinished_tasks, q.stats().in_flight) == (1, 1)
    assert broker.acknowledge(A, delivery.seq) is Outcome.DONE
    q.join()


def test_a_warning_of_a_late_task_done_that_is_an_error_is_raised_once(make, broker):
    q = make(serializer="raw")
    broker.fill(b"1", b"2")
    q.get()
    broker.requeue(pressure_mp.identity.processes.incarnation())
    delivery = broker.take(A)
    q.get()
    with warnings.catch_warnings():
        warnings.simplefilter("error", LateTaskDoneWarning)
        with pytest.raises(LateTaskDoneWarning):
            q.task_done()
        q.task_done()
    assert broker.acknowledge(A, delivery.seq) is Outcome.DONE
    q.join()


@pytest.mark.parametrize("buffering", [0, 10])
def test_an_item_that_is_got_again_is_acknowledged_by_the_second_task_done(make, broker, buffering):
    q = make(serializer="raw", buffering=buffering)
    broker.put(b"1")
    assert q.get() == b"1"
    broker.requeue(pressure_mp.identity.processes.incarnation())
    assert q.get() == b"1"
    broker.put(b"2")
    other = broker.take(A)
    with pytest.warns(LateTaskDoneWarning):
        q.task_done()
    assert q.stats().in_flight == 2
    q.task_done()
    assert (q.unfinished_tasks, q.stats().in_flight) == (1, 1)
    assert broker.acknowledge(A, other.seq) is Outcome.DONE
    q.join()


def test_an_item_that_another_thread_gets_again_is_acknowledged_by_that_one(make, broker):
    q = make(serializer="raw")
    broker.fill(b"1", b"2")
    assert q.get() == b"1"
    broker.requeue(pressure_mp.identity.processes.incarnation())
    got, is_late = threading.Event(), threading.Event()

    def get_again():
        item = q.get()
        got.set()
        assert is_late.wait(LIMIT)
        q.task_done()
        return item

    other = Background(get_again)
    assert got.wait(LIMIT)
    with pytest.warns(LateTaskDoneWarning):
        q.task_done()
    assert q.stats().in_flight == 1
    is_late.set()
    assert other.result() == b"1"
    assert (q.unfinished_tasks, q.stats().in_flight) == (1, 0)


def test_items_of_a_deleted_queue_are_not_taken_for_items_of_the_next(broker, make):
    broker.put(b"1")
    old = broker.take(A)
    make().delete()
    broker.open()
    broker.put(b"2")
    broker.take(B)
    assert broker.acknowledge(A, old.seq) is Outcome.LATE
    assert broker.requeue(A)
    assert broker.length() == 0


# Poison


def test_an_item_that_was_delivered_too_often_is_set_aside_and_done(make, broker):
    broker.fill(b"poison", b"good")
    for _ in range(2):
        assert broker.take(A, limit=2).item == b"poison"
        broker.requeue(A)
    q = make(serializer="raw")
    assert q.rejected() == [b"poison"]
    assert q.get() == b"good"
    q.task_done()
    q.join()


def test_items_that_are_set_aside_together_are_in_their_order(make, broker):
    broker.fill(b"1", b"2")
    broker.take(A)
    broker.take(B, limit=1)
    broker.requeue(A)
    broker.take(B, limit=1)
    broker.requeue(B)
    assert make(serializer="raw").rejected() == [b"1", b"2"]


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_the_delivery_count_travels_with_its_item_only(broker):
    broker.fill(b"1", b"2", b"3")
    broker.take(A, limit=2)
    broker.requeue(A)
    broker.take(A, limit=2)
    broker.take(A, limit=2)
    broker.requeue(A)
    stats = broker.stats()
    assert (stats.rejected, stats.unfinished) == (1, 2)
    assert broker.drain() == [b"2", b"3"]


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_without_a_limit_an_item_comes_back_for_ever(broker):
    broker.put(b"1")
    for _ in range(20):
        broker.take(A)
        broker.requeue(A)
    assert broker.drain() == [b"1"]


@pytest.mark.parametrize("wrong", [0, -1, "2", 1.5, True])
def test_a_limit_is_a_number_of_at_least_1(wrong):
    with pytest.raises((pressure_mp.ArgumentError, pressure_mp.ArgumentTypeError), match="max_d"):
        JoinableQueue(max_deliveries=wrong, url="memory://unused")


def test_an_item_that_cannot_be_decoded_is_no_longer_in_flight(make, broker):
    q = make(serializer="json")
    broker.fill(b"{", b"2")
    with pytest.raises(DecodingError):
        q.get()
    assert (q.rejected(), q.stats().in_flight, q.unfinished_tasks) == ([b"{"], 0, 1)
    assert q.get() == 2
    q.task_done()
    q.join()


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_an_item_that_was_taken_away_is_not_rejected_by_its_former_owner(broker):
    broker.put(b"1")
    delivery = broker.take(A)
    broker.requeue(A)
    broker.run(broker.operations.set_aside(b"1", A, delivery.seq))
    assert broker.stats().rejected == 0
    assert broker.drain() == [b"1"]


# Shut down


def test_a_shut_down_queue_gives_items_that_came_back(make, broker):
    q = make(serializer="raw")
    broker.put(b"1")
    broker.take(A)
    q.shutdown()
    with pytest.raises(ShutDown):
        q.get()
    broker.requeue(A)
    assert q.get() == b"1"
    q.task_done()
    q.join()
    with pytest.raises(ShutDown):
        q.get_nowait()


def test_after_an_immediate_shutdown_an_item_that_comes_back_is_dropped_and_done(make, broker):
    q = make(serializer="raw")
    broker.fill(b"1", b"2", b"3")
    broker.take(A)
    broker.take(B)
    q.shutdown(immediate=True)
    assert (q.qsize(), q.unfinished_tasks) == (0, 2)
    broker.requeue(A)
    assert (q.qsize(), q.unfinished_tasks, q.rejected()) == (0, 1, [])
    assert broker.acknowledge(B) is Outcome.DONE
    q.join()


def test_a_consumer_in_the_usual_form_needs_nothing_new(make):
    q = make(3)
    seen = []

    def worker():
        for item in q:
            seen.append(item)
            q.task_done()

    workers = [Background(worker) for _ in range(3)]
    for number in range(30):
        q.put(number)
    q.join()
    q.shutdown()
    for thread in workers:
        thread.result()
    assert sorted(seen) == list(range(30))
