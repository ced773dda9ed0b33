"""A window's table of transitions: each of them happens, and no other does."""

from __future__ import annotations

import sys

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pressure_mp.buffering.pace import Pace, StatedPace
from pressure_mp.buffering.window import EMPTY, OPEN, TRANSITIONS, Window, WindowState
from pressure_mp.engines.contract.items import EndPrefetch, HandedOut, Taken
from pressure_mp.engines.contract.replies import NoItem, Outcome

HOUR = 3_600_000
METHODS = {row.operation for row in TRANSITIONS}


class Noting(Window[bytes]):
    """Notes each change of its state, and the method that makes it."""

    seen: set[tuple[WindowState, WindowState, str]]

    def __setattr__(self, name, value):
        before = vars(self).get(name, value)
        super().__setattr__(name, value)
        if name == "state" and before is not value:
            frame = sys._getframe(1)
            while frame.f_code.co_name not in METHODS:
                frame = frame.f_back
            self.seen.add((before, value, frame.f_code.co_name))


class Reader(RuleBasedStateMachine):
    """A reader and a broker with a list of items: the reader hands out each of them once, in order.

    A request may be ended before its reply comes, and the reply to an end may be lost.
    """

    @initialize(alone=st.booleans())
    def begin(self, alone):
        self.window = Noting(Pace() if alone else StatedPace(5), alone)
        self.queued, self.number_put = [], 0
        self.got = 0
        self.removed = 0  # by the broker
        self.reply = None  # is on its way

    @rule(number=st.integers(1, 5))
    def put(self, number):
        self.queued += [b"%d" % (self.number_put + one) for one in range(number)]
        self.number_put += number

    @precondition(lambda self: self.window.state in (EMPTY, OPEN) and self.reply is None)
    @rule(number=st.integers(1, 6))
    def ask(self, number):
        if self.window.must_end(0.0):
            self.end(True)
        request = self.window.next_request(number)
        self.remove(request.handed)
        found = self.queued[request.kept : request.kept + request.limit]
        none = NoItem() if self.number_put % 2 else Outcome.SHARED
        self.reply = Taken(found) if found else none

    def remove(self, handed):
        assert handed == self.got
        del self.queued[: handed - self.removed]
        self.removed = handed

    @precondition(lambda self: self.reply is not None)
    @rule()
    def hear(self):
        reply, self.reply = self.reply, None
        items = reply.items if isinstance(reply, Taken) else []
        found = self.window.feed(reply, items, HOUR)
        assert found == (self.window.state is OPEN)
        if not found and self.window.holds:
            self.end(True)

    @rule()
    def take(self):
        item = self.window.take()
        if item is not None:
            assert item == b"%d" % self.got
            self.got += 1
        assert self.window.cell[0] == self.window.place == self.got

    @rule(is_answered=st.booleans())
    def end(self, is_answered):
        for request in (ending := self.window.end()):
            assert self.window.take() is None
            self.remove(request.handed)
            if not is_answered:
                return
            with pytest.raises(StopIteration):
                ending.send(HandedOut(request.handed))

    @precondition(lambda self: self.window.state is OPEN and self.reply is None)
    @rule(is_late=st.booleans())
    def renew(self, is_late):
        renewing = self.window.renew()
        request = next(renewing)
        assert (request.limit, request.call) == (0, self.window.last.call)
        if self.window.alone:
            reply = Taken([])
        else:
            self.remove(request.handed)
            reply = Outcome.LATE if is_late else Taken([])
        try:
            request = renewing.send(reply)
        except StopIteration:
            is_over = self.window.until == 0.0  # a reservation that is renewed is not begun again
            assert self.window.is_ready(0.0) == (bool(self.window.ahead) and not is_over)
            assert self.window.alone or not is_over
            return
        assert isinstance(request, EndPrefetch)
        assert reply is Outcome.LATE
        with pytest.raises(StopIteration):
            renewing.send(HandedOut(request.handed))
        assert self.window.state is EMPTY

    @precondition(lambda self: self.window.holds)
    @rule()
    def lapse(self):
        self.window.until = 0.0
        assert self.window.take() is None
        assert self.window.must_end(0.0)


def test_the_table_has_every_transition_and_no_other():
    Noting.seen = set()
    run_state_machine_as_test(
        Reader, settings=settings(max_examples=100, derandomize=True, deadline=None)
    )
    assert Noting.seen == {row[:3] for row in TRANSITIONS}


def test_items_that_others_got_meanwhile_do_not_count_as_handed_out():
    window = Window[bytes](Pace(), alone=True)
    window.next_request(3)
    assert window.feed(Taken([b"0", b"1", b"2"]), [b"0", b"1", b"2"], HOUR)
    assert [window.take(), window.take()] == [b"0", b"1"]
    ending = window.end()
    assert next(ending).handed == 2
    with pytest.raises(StopIteration):
        ending.send(HandedOut(1))
    assert (window.counts(0), window.counts(1)) == (True, False)
    assert window.state is EMPTY


def test_an_item_that_is_taken_out_too_late_is_left():
    window = Window[bytes](Pace(), alone=True)
    window.next_request(3)
    window.feed(Taken([b"0"]), [b"0"], HOUR)

    class Late(float):
        """A time that is over when it is looked at again."""

        looks = 0

        def __le__(self, now):
            Late.looks += 1
            return Late.looks > 1

    window.until = Late()
    assert window.take() is None
    assert window.left == [(b"0", 0, window.told)]
