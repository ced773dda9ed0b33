"""Larger items that were fetched ahead are each a field of ``:mp:fetched``: none is left over."""

from __future__ import annotations

import contents
import pytest
from oracle.delivery_clients import Broker

from pressure_mp.engines.contract.items import NextIsLarge, Prefetch, Take, Taken
from pressure_mp.engines.contract.replies import InUse, NoItem, Outcome

A, B = "elsewhere/1/1/aaaaaaaa", "elsewhere/2/1/bbbbbbbb"
A1, A2, B1 = f"{A}#1", f"{A}#2", f"{B}#1"
READERS = 3

SMALL, LARGER = 3, 1000


class Fields(Broker):
    """What a server keeps of what was fetched."""

    def fetched(self, reader, number, size=LARGER):
        """Fetch so many items, and answer the call's number. The queue is empty before and after;
        in between it has as much as makes this number the reader's share."""
        self.size = size
        items = self.fill(number * READERS)
        assert self.fetch(reader, number) == items[:number]
        self.drain()
        return self.calls

    def fields(self):
        """How many there are."""
        return self.observer.hlen(self.binding.key("fetched"))


@pytest.fixture
def broker(server, name):
    made = Fields(server.url, name)
    made.open()
    yield made
    made.observer.close()


def test_each_larger_item_has_a_field_and_small_ones_have_one_together(broker):
    broker.fetched(A1, 3)
    assert broker.fields() == 3 + 1
    broker.fetched(A2, 5, SMALL)
    assert broker.fields() == 3 + 1 + 1


@pytest.mark.parametrize("size", [SMALL, LARGER])
@pytest.mark.parametrize("kept", [0, 1])
def test_a_call_that_comes_twice_has_the_same_reply(broker, size, kept):
    broker.size = size
    items = broker.fill(5)
    operation = broker.operations.prefetch
    for _ in range(2):
        assert broker.run(operation(Prefetch(A1, 7, 0, 0, 2))) == Taken(items[:2])
    assert broker.stats().consumed_messages == 2
    for _ in range(2):
        assert broker.run(operation(Prefetch(A1, 8, 2 - kept, kept, 3))) == Taken(items[2:])
    for _ in range(2):
        assert broker.run(operation(Prefetch(A1, 9, 4, 1, 3))) == NoItem()
    assert broker.stats().in_flight == 1


def test_each_call_has_a_batch_until_all_of_it_is_handed_out(broker):
    broker.size = LARGER
    broker.fill(40)
    broker.fetch(A1, 3)
    broker.fetch(A1, 4, kept=1)
    assert broker.fields() == 4 + 5
    broker.fetch(A1, 5, kept=5)
    assert broker.fields() == 4 + 5 + 6
    broker.fetch(A1, 2, kept=5)
    assert broker.fields() == 6 + 3
    broker.fetch(A1, 4, kept=3)
    assert broker.fields() == 6 + 3 + 5
    assert broker.handed(A1, 1)
    assert broker.fields() == 3 + 5
    assert broker.put_back(A1, 3) == 15
    assert (broker.fields(), broker.length()) == (0, 40 - 15)


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        ((3, LARGER), (5, SMALL), 1),
        ((3, SMALL), (5, LARGER), 5 + 1),
        ((5, LARGER), (2, LARGER), 2 + 1),
        ((2, LARGER), (5, LARGER), 5 + 1),
        ((5, LARGER), (1, LARGER), 1 + 1),
    ],
)
def test_a_fetch_removes_the_fields_of_the_earlier_fetch_of_its_reader(broker, first, second, left):
    broker.fetched(B1, 4)
    broker.fetched(A1, *first)
    broker.fetched(A1, *second)
    assert broker.fields() == left + (4 + 1)
    broker.put_back(A1, 0)
    assert broker.fields() == 4 + 1
    assert broker.length() == second[0]


def test_when_all_is_handed_out_nothing_is_kept(broker):
    broker.fetched(A1, 3)
    assert broker.handed(A1, 2)
    assert broker.fields() == 3 + 1
    assert broker.handed(A1, 1)
    assert broker.fields() == 0
    assert broker.put_back(A1) == 3
    assert (broker.fields(), broker.length()) == (0, 0)
    broker.fetched(A1, 2)
    assert broker.fields() == 2 + 1


@pytest.mark.parametrize("handed", [0, 2, 3])
def test_items_that_are_put_back_leave_no_field(broker, handed):
    broker.fetched(A1, 3)
    broker.put_back(A1, handed)
    assert (broker.fields(), broker.length()) == (0, 3 - handed)


def empty(broker, kept):
    assert broker.prefetch(A1, kept=kept) == NoItem()


def closed(broker, kept):
    broker.run(broker.operations.close(True, None, once=False))
    assert broker.prefetch(A1, kept=kept) is Outcome.CLOSED


def busy(broker, kept):
    waiting = broker.binding.session()
    assert isinstance(waiting.call(Take()), NoItem)
    assert isinstance(broker.prefetch(A1, kept=kept), InUse)
    waiting.end()


def large(broker, kept):
    broker.run(broker.operations.put(contents.sample(1), True, None))
    assert broker.prefetch(A1, kept=kept) == NextIsLarge()


@pytest.mark.parametrize("refuse", [empty, closed, busy, large])
@pytest.mark.parametrize("size", [SMALL, LARGER])
def test_a_refused_call_leaves_only_what_the_reader_keeps(broker, refuse, size):
    broker.fetched(B1, 4)
    broker.fetched(A1, 3, size)
    refuse(broker, 2)
    assert broker.fields() == 4 + 1 + (3 + 1 if size == LARGER else 1)
    refuse(broker, 0)
    assert broker.fields() == 4 + 1


def test_items_of_an_ended_process_leave_no_field_when_they_are_requeued(broker):
    broker.fetched(A1, 3)
    broker.fetched(A2, 5)
    broker.fetched(B1, 2)
    assert broker.handed(A2, 1)
    assert broker.requeue(A)
    assert (broker.fields(), broker.length()) == (2 + 1, 3 + 4)
    assert broker.requeue(B)
    assert (broker.fields(), broker.length()) == (0, 3 + 4 + 2)


def test_items_dropped_after_a_shutdown_are_no_longer_kept(broker):
    broker.fetched(A1, 3)
    broker.fetched(B1, 2)
    broker.run(broker.operations.close(True, None, once=False, immediate=True))
    broker.put_back(A1, 1)
    assert broker.fields() == 2 + 1
    assert broker.requeue(B)
    assert (broker.fields(), broker.length()) == (0, 0)


def test_a_deleted_queue_keeps_nothing(broker):
    broker.fetched(A1, 3)
    broker.run(broker.operations.delete(True, None))
    assert broker.fields() == 0
    assert broker.put_back(A1) == 0
    broker.open()
    broker.fetched(A1, 2)
    assert broker.fields() == 2 + 1


def test_a_call_that_comes_late_takes_no_field_away(broker):
    first = broker.fetched(A1, 3)
    broker.fetched(A1, 2)
    for limit in (0, 9):
        late = Prefetch(A1, first, 3, 0, limit)
        assert broker.run(broker.operations.prefetch(late)) is Outcome.LATE
    assert (broker.fields(), broker.length()) == (2 + 1, 0)
