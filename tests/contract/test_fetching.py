"""Items that leave the queue in batches and stay in flight: taken, and fetched ahead."""

from __future__ import annotations

import contents
import pytest
from oracle.delivery_clients import Broker

from pressure_mp import JoinableQueue
from pressure_mp.engines.contract.items import NextIsLarge, Take
from pressure_mp.engines.contract.replies import NoItem, Outcome

A, B = "elsewhere/1/1/aaaaaaaa", "elsewhere/2/1/bbbbbbbb"
A1, A2, B1 = f"{A}#1", f"{A}#2", f"{B}#1"


@pytest.fixture(params=[3, 1000], ids=["small", "larger"])
def broker(url, name, request):
    """Small items that were fetched are kept together, larger ones apart."""
    made = Broker(url, name, request.param)
    made.open()
    return made


# Many items of a JoinableQueue


def test_many_items_are_in_flight_each_until_its_task_done(url, name):
    q = JoinableQueue(name=name, url=url)
    q.put_many(range(5))
    assert q.get_many(3) == [0, 1, 2]
    for left in (2, 1, 0):
        q.task_done()
        assert q.stats().in_flight == left
    assert q.get_many(3) == [3, 4]
    q.task_done()
    q.task_done()
    q.join()


def test_many_items_come_back_in_their_order(broker):
    items = broker.fill(10)
    first = broker.take(A, 3)
    assert [delivery.item for delivery in first] == items[:3]
    broker.take(B, 4)
    broker.requeue(B)
    broker.requeue(A)
    assert broker.drain() == items


def test_an_item_that_no_call_returned_comes_back_without_a_delivery(broker):
    items = broker.fill(4)
    deliveries = broker.take(A, 3)
    broker.requeue(A, seqs=[delivery.seq for delivery in deliveries[1:]])
    assert (broker.length(), broker.stats().in_flight) == (3, 1)
    (once,) = broker.run(broker.operations.take_many(B, 1000, 1, 1, False, None))
    assert once.item == items[1]
    broker.requeue(B)  # it was delivered once now, which was the limit
    assert broker.stats().rejected == 1


def test_only_the_batch_that_one_call_took_comes_back(broker):
    items = broker.fill(6)
    broker.take(A, 2)
    broker.take(A, 2)
    broker.requeue(A, call=2)
    assert broker.drain() == items[2:]


# Fetched ahead


def test_a_prefetched_item_is_in_flight_until_it_was_handed_out(broker):
    items = broker.fill(5)
    assert broker.fetch(A1, 3) == items[:3]
    assert (broker.length(), broker.stats().in_flight) == (2, 3)
    assert broker.handed(A1, 2)
    assert broker.stats().in_flight == 1
    assert broker.fetch(A1) == items[3:]
    stats = broker.stats()
    assert (stats.in_flight, stats.consumed_messages, stats.unfinished) == (2, 5, 5)


def test_kept_items_stay_in_flight_before_the_items_of_the_next_prefetch(broker):
    items = broker.fill(12)
    assert broker.fetch(A1, 4) == items[:4]
    assert broker.fetch(A1, 4, kept=3) == items[4:8]
    assert broker.stats().in_flight == 7
    assert broker.handed(A1, 1)
    assert broker.fetch(A1, 2, kept=6) == items[8:10]
    assert broker.stats().in_flight == 8
    assert broker.handed(A1, 5)  # of all three calls
    assert broker.put_back(A1, 0) == 7
    assert broker.stats().in_flight == 0
    assert broker.drain() == items[7:]


REFUSALS = {
    "empty": NoItem(),
    "closed": Outcome.CLOSED,
    "ended": Outcome.ENDED,
    "large": NextIsLarge(),
}


@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize("why", REFUSALS)
def test_kept_items_stay_in_flight_whatever_the_reply(broker, kept, why):
    items = broker.fill(3)
    assert broker.fetch(A1) == items
    if why == "closed":
        broker.run(broker.operations.close(True, None, once=False))
    elif why == "ended":
        broker.run(broker.operations.renew(A, False, True))
        broker.run(broker.operations.retire(A))
    elif why == "large":
        broker.run(broker.operations.put(contents.sample(1), True, None))
    reply = broker.prefetch(A1, kept=kept, eof=True)
    assert reply == REFUSALS[why]
    assert broker.stats().in_flight == kept
    assert broker.put_back(A1) == 3 - kept
    assert broker.length() == kept + (why == "large")
    assert [broker.get(False) for _ in range(kept)] == items[3 - kept :]


def test_items_that_were_not_handed_out_go_back_to_the_front(broker):
    items = broker.fill(6)
    broker.fetch(A1, 4)
    assert broker.put_back(A1, 1) == 1
    stats = broker.stats()
    assert (stats.length, stats.in_flight, stats.consumed_messages) == (5, 0, 1)
    assert stats.consumed_bytes == len(items[0])
    assert broker.drain() == items[1:]


def test_a_call_that_comes_after_its_end_does_nothing(broker):
    items = broker.fill(6)
    assert broker.put_back(A1, more_calls=1) == 0  # of a reader that no call was done for
    broker.calls -= 1
    assert broker.prefetch(A1) is Outcome.LATE
    broker.fetch(A2, 4)
    assert broker.put_back(A2, 1, more_calls=1) == 1
    broker.calls -= 1
    assert broker.prefetch(A2) is Outcome.LATE
    assert broker.fetch(A2, 1) == items[1:2]  # a later one does
    assert broker.put_back(A2) == 1
    assert broker.drain() == items[1:]


@pytest.mark.parametrize("is_heard", [True, False])
def test_the_record_of_an_end_goes_when_the_process_has_ended(broker, is_heard):
    broker.fill(2)
    if is_heard:
        broker.fetch(A1)
    broker.put_back(A1, more_calls=1)
    consumers = broker.run(broker.operations.renew(B, False, False)).consumers
    assert broker.requeue(A, seen=consumers[A])
    assert broker.run(broker.operations.renew(B, False, False)).consumers == {}
    broker.calls -= 1
    assert len(broker.fetch(A1)) == 2


@pytest.mark.parametrize("first", [A, B])
def test_the_items_of_processes_that_ended_stand_where_they_stood(broker, first):
    items = broker.fill(30)
    broker.fetch(A1, 4)
    broker.fetch(B1, 4)
    broker.fetch(A2, 4)
    broker.handed(A1, 2)
    for owner in (first, B if first == A else A):
        broker.requeue(owner)
    assert broker.stats().in_flight == 0
    assert broker.drain() == items[2:]


def test_a_requeue_leaves_out_items_that_others_saw_handed_out(broker):
    items = broker.fill(16)
    broker.fetch(A1, 4)
    broker.fetch(A1, 4, kept=2)
    broker.handed(A1, 1)
    broker.fetch(A2, 4)
    seen = [(A1, 5), (A2, 9), (B1, 1)]
    assert broker.requeue(A, handed=seen)
    stats = broker.stats()
    assert (stats.in_flight, stats.consumed_messages) == (0, 5 + 4)
    assert broker.put_back(A1) == 5
    assert broker.put_back(A2) == 4
    assert broker.drain() == [*items[5:8], *items[12:]]


def test_an_old_count_of_handed_out_items_does_not_replace_a_later_one(broker):
    items = broker.fill(4)
    broker.fetch(A1)
    broker.handed(A1, 3)
    assert broker.requeue(A, handed=[(A1, 1)])
    assert broker.drain() == items[3:]


def test_items_that_came_back_are_fetched_and_come_back_again(broker):
    items = broker.fill(8)
    broker.take(A, 2)
    broker.fetch(B1, 3)
    broker.requeue(A)
    assert broker.fetch(A1, 1) == items[:1]
    broker.requeue(B)
    assert broker.fetch(B1, 2) == items[1:3]
    broker.requeue(A)
    broker.requeue(B)
    assert broker.drain() == items


def test_items_that_were_taken_away_can_neither_be_handed_out_nor_put_back(broker):
    broker.fill(3)
    broker.fetch(A1)
    broker.handed(A1, 1)
    broker.requeue(A)
    assert not broker.handed(A1, 0)
    assert broker.prefetch(A1, kept=1) is Outcome.LATE
    assert broker.put_back(A1, 1) == 1
    assert broker.length() == 2


def test_a_reader_whose_items_were_taken_away_can_begin_anew(broker):
    items = broker.fill(3)
    broker.fetch(A1)
    broker.requeue(A)
    assert broker.fetch(A1, 2) == items[:2]
    assert broker.put_back(A1, 1) == 4  # also those that it handed out too late
    assert broker.drain() == items[1:]


def test_the_count_of_items_that_were_taken_away_is_kept_for_a_lease(broker):
    broker.fill(3)
    broker.fetch(A1)
    broker.handed(A1, 1)
    renew = broker.operations.renew
    for counted, left in ((1, [A]), (0, [])):
        consumers = broker.run(renew(B, False, False)).consumers
        assert broker.requeue(A, seen=consumers[A])
        assert [*broker.run(renew(B, False, False)).consumers] == left
        assert broker.put_back(A1) == counted


def test_no_consumer_prefetches_more_than_its_fair_share(broker):
    broker.fill(120)
    assert len(broker.fetch(A1)) == 120  # it is alone
    broker.fill(120)
    assert len(broker.fetch(B1)) == 60
    assert len(broker.fetch(A2)) == 20
    assert len(broker.fetch(A1, 5)) == 5
    taken = broker.take(B, 1000, reader=f"{B}#2")
    assert len(taken) == 35 // 4
    assert len(broker.take(B, 1000)) == 35 - 35 // 4  # asked for, and not ahead of a need


def test_waiting_consumers_have_a_share_of_the_items(broker):
    sessions = [broker.binding.session() for _ in range(3)]
    for session in sessions:
        session.call(Take())
    broker.fill(40)
    assert len(broker.fetch(A1)) == 10
    for session in sessions:
        session.end()
    assert len(broker.fetch(A1)) == 30


def test_the_end_of_a_stream_waits_for_items_that_were_fetched_elsewhere(broker):
    broker.fill(2)
    broker.run(broker.operations.renew(A, False, True))
    broker.run(broker.operations.retire(A))
    broker.fetch(A1)
    broker.handed(A1, 1)
    assert broker.prefetch(B1, eof=True) == NoItem()
    broker.handed(A1, 1)
    assert broker.prefetch(B1, eof=True) is Outcome.ENDED


def test_after_an_immediate_shutdown_items_that_come_back_are_dropped(broker):
    broker.fill(6)
    broker.fetch(A1, 2)
    broker.fetch(B1, 2)
    broker.run(broker.operations.close(True, None, once=False, immediate=True))
    broker.put_back(A1, 1)
    broker.requeue(B)
    stats = broker.stats()
    assert (stats.length, stats.in_flight, stats.unfinished) == (0, 0, 1)
