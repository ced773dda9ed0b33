"""Items that were put and not sent: the table of states, the order over handles, room, errors."""

from __future__ import annotations

import sys

import pytest

from pressure_mp.buffering.outbox import (
    MOST_BYTES,
    SMALL,
    TRANSITIONS,
    Event,
    Flow,
    Intake,
    Outbox,
    Pending,
)
from pressure_mp.exceptions import Full, ShutDown

NO_BOUND = float("inf")


class Books:
    """An outbox, and the handles that put into it."""

    def __init__(self) -> None:
        self.outbox = Outbox()

    def handle(self, name: str, size: int = 100, space: float = NO_BOUND) -> Pending:
        pending = Pending(name, size, self.outbox)
        pending.looked(space)
        return pending

    def put(self, pending: Pending, *items: bytes) -> None:
        """What a handle does for each put."""
        for item in items:
            assert pending.has_room
            assert pending.may_add(len(item))
            pending.items.append(item)
            if pending.outbox.last is not pending:
                pending.outbox.add_run(pending, pending.queue)
                pending.outbox.last = pending

    def send_all(self, outbox: Outbox | None = None) -> list[tuple[str, bytes]]:
        """What a sender does, with a broker that has space."""
        sent = []
        outbox = outbox or self.outbox
        while (run := outbox.next_run()) is not None:
            batch = run.next_batch()
            sent += [(run.owner, item) for item in batch]
            run.pending.sent(run.pending.items, len(batch))
        assert outbox.rest()
        return sent


@pytest.fixture
def books():
    return Books()


def test_the_table_has_each_way_once_and_leads_out_of_each_state_that_does_not_last():
    ways = [(one.before, one.operation) for one in TRANSITIONS]
    assert len(set(ways)) == len(ways)
    assert {before for before, _ in ways} == {*Intake, *Flow} - {Intake.OFF}
    assert {event for _, event in ways} == set(Event)
    for before, after, _, _ in TRANSITIONS:
        assert type(before) is type(after)
        assert before is not after


def test_a_handle_goes_only_ways_of_the_table(books):
    """Each thing that can happen, in each state that can be reached."""
    happens = [
        lambda one: one.looked(3),
        lambda one: one.forget_space(),
        lambda one: one.note_waiting(True),
        lambda one: one.note_waiting(False),
        lambda one: one.fail(one.items, ShutDown("it is shut down")),
        lambda one: one.take_failure(),
        lambda one: one.discard(),
        lambda one: one.turn_off(),
    ]
    known = {(one.before, one.after) for one in TRANSITIONS}
    reached, paths = set(), [()]
    while paths:
        path = paths.pop()
        for act in happens:
            one = Pending("queue", 5, books.outbox)
            for before in path:
                before(one)
            intake, flow = one.intake, one.flow
            act(one)
            assert one.intake is intake or (intake, one.intake) in known
            assert one.flow is flow or (flow, one.flow) in known
            assert (one.limit > 0) == (one.intake is Intake.OPEN)
            if (one.intake, one.flow) not in reached:
                reached.add((one.intake, one.flow))
                paths.append((*path, act))
    assert {intake for intake, _ in reached} == set(Intake)
    assert {flow for _, flow in reached} == set(Flow)


def test_items_are_sent_in_the_order_of_the_puts_over_all_handles(books):
    one, two = books.handle("one"), books.handle("two")
    books.put(one, b"1", b"2")
    books.put(two, b"3")
    books.put(one, b"4")
    books.put(two, b"5", b"6")
    assert books.send_all() == [
        ("one", b"1"),
        ("one", b"2"),
        ("two", b"3"),
        ("one", b"4"),
        ("two", b"5"),
        ("two", b"6"),
    ]
    assert (one.number_sent, two.number_sent) == (3, 3)


def test_an_item_that_is_put_while_a_batch_is_sent_stays(books):
    one = books.handle("one")
    books.put(one, b"1", b"2")
    run = books.outbox.next_run()
    batch = run.next_batch()
    books.put(one, b"3")
    one.sent(one.items, len(batch))
    assert not books.outbox.rest()
    assert books.send_all() == [("one", b"3")]


def test_a_queue_that_is_full_is_out_of_the_way_of_others_and_comes_back(books):
    full, other = books.handle("full"), books.handle("other")
    books.put(full, b"1", b"2")
    books.put(other, b"3")
    apart = Outbox(is_apart=True)
    full.note_waiting(True)
    books.outbox.set_apart(full, apart)
    apart.add_run(full, "full")
    apart.last = full
    assert books.send_all() == [("other", b"3")]
    books.put(full, b"4")
    full.note_waiting(False)
    assert books.send_all(apart) == [("full", b"1"), ("full", b"2"), ("full", b"4")]
    books.put(full, b"5")
    assert books.send_all() == [("full", b"5")]


def test_as_many_items_wait_as_the_buffer_and_the_queue_have_room_for(books):
    assert books.handle("short", size=2).limit == 2
    one = books.handle("bounded", size=5, space=3)
    books.put(one, b"1", b"2", b"3")
    assert not one.has_room
    assert not one.may_have_room  # a put looks at the queue again
    one.sent(one.items, 2)
    assert one.limit == 1  # what was sent took its place in the queue
    one.looked(NO_BOUND)
    books.put(one, b"4", b"5", b"6", b"7")
    assert one.is_crowded(1)
    assert one.may_have_room
    with pytest.raises(Full, match="'bounded' is full, and 5 items"):
        raise one.full()


def test_items_that_are_not_small_wait_up_to_so_many_bytes_or_one_of_them(books):
    one = books.handle("one")
    assert one.may_add(2 * MOST_BYTES)
    one.items.append(bytes(2 * MOST_BYTES))
    assert not one.may_add(SMALL)
    assert one.is_crowded(SMALL)
    assert one.may_add(SMALL - 1)
    one.sent(one.items, 1)
    assert one.may_add(SMALL)


def test_after_an_error_nothing_is_sent_until_a_call_was_told(books):
    one, error = books.handle("one"), ShutDown("it is shut down")
    books.put(one, b"1", b"2")
    assert one.fail(one.items, error)
    assert one.has_failed
    assert one.limit == 0
    assert "2 items" in one.left_behind()
    assert "it is shut down" in one.left_behind()
    assert books.send_all() == []
    assert one.take_failure() == (error, [b"1", b"2"])
    assert one.take_failure() == (None, [])
    assert not one.has_failed


def test_an_item_that_a_thread_adds_while_others_fail_is_not_lost(books):
    """A put that has found room appends its item without a lock, at any moment."""
    for moment in range(40):
        one = books.handle("one")
        books.put(one, b"1", b"2")
        steps: list[str] = []

        def add(frame, event, argument, one=one, moment=moment, steps=steps):
            steps.append(event)
            if len(steps) == moment:
                one.items.append(b"3")

        sys.setprofile(add)
        try:
            one.fail(one.items, ShutDown("it is shut down"))
        finally:
            sys.setprofile(None)
        _, failed = one.take_failure()
        expected = [b"1", b"2", b"3"] if len(steps) >= moment > 0 else [b"1", b"2"]
        assert failed + one.items == expected
        assert one.number_put == len(expected)


def test_an_error_that_is_none_of_ours_says_for_which_queue(books):
    one = books.handle("one")
    books.put(one, b"1")
    one.fail(one.items, ValueError("odd"))
    failure, _ = one.take_failure()
    assert "queue 'one': ValueError('odd')" in str(failure)
    assert isinstance(failure.__cause__, ValueError)


def test_items_that_were_discarded_while_they_were_sent_are_not_counted_again(books):
    one = books.handle("one")
    books.put(one, b"1", b"2")
    under_way = one.items
    one.discard()
    assert one.number_sent == 2
    books.put(one, b"3")
    one.sent(under_way, 2)
    assert not one.fail(under_way, ShutDown("late"))
    assert (one.items, one.number_sent, one.has_failed) == ([b"3"], 2, False)
