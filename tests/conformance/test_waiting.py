"""The order in which waiting calls are served: of every engine, by its sessions' verbs."""

from __future__ import annotations

import time

import pytest
from engines import Can
from sessions import Looped, ask, bind
from waiting import LIMIT, Background

from pressure_mp.engines.contract.items import (
    Added,
    Hold,
    Put,
    Renew,
    Requeue,
    Retire,
    Take,
    Taken,
)
from pressure_mp.engines.contract.levels import Level
from pressure_mp.engines.contract.queues import (
    Close,
    CountDone,
    Delete,
    GetLength,
    How,
    Join,
    Open,
    SetBound,
)
from pressure_mp.engines.contract.replies import InUse, NoItem, NoSpace, Outcome, Unfinished

pytestmark = pytest.mark.levels(Level.ITEMS)

LATER = (NoSpace, NoItem, InUse, Unfinished)
OWNER = "elsewhere/1/1/aaaaaaaa"


@pytest.fixture
def binding(url, name):
    """A queue with space for one item."""
    found = bind(url, name)
    ask(found, Open(How.CREATE, 1))
    yield found
    ask(found, Delete(waits=False))


@pytest.fixture(params=["thread", "asyncio"])
def begin(request, binding):
    """Begins operations; they are ended with the test."""
    begun = []

    def begin(first):
        """A session that was not served at its first call, and what it was told."""
        session = binding.session() if request.param == "thread" else Looped(binding)
        begun.append(session)
        later = session.call(first)
        assert isinstance(later, LATER)
        return session, later

    def end(session):
        begun.remove(session)
        session.end()

    begin.end = end
    yield begin
    for session in begun:
        session.end()


def served(session, later, request):
    """The reply that serves a waiting call, when it can be served."""
    deadline = time.monotonic() + LIMIT
    while isinstance(later, LATER):
        assert time.monotonic() < deadline
        session.wait(later, None)
        later = session.call(request)
    return later


def test_takes_are_served_in_order_and_a_take_that_does_not_wait_gets_a_queued_item(binding, begin):
    first, later = begin(Take())
    ask(binding, Put([b"1"]))
    second, _ = begin(Take())
    assert ask(binding, Take(waits=False)) == Taken([b"1"])
    ask(binding, Put([b"2"]))
    assert isinstance(second.call(Take()), LATER)
    assert served(first, later, Take()) == Taken([b"2"])


def test_puts_are_served_in_order_and_a_put_that_does_not_wait_gets_free_space(binding, begin):
    ask(binding, Put([b"1"]))
    first, later = begin(Put([b"first"]))
    ask(binding, Take())
    second, _ = begin(Put([b"second"]))
    assert ask(binding, Put([b"2"], waits=False)) == Added(1)
    ask(binding, Take(waits=False))
    assert isinstance(second.call(Put([b"second"])), LATER)
    assert served(first, later, Put([b"first"])) == Added(1)
    assert ask(binding, Take(waits=False)) == Taken([b"first"])


@pytest.mark.needs(Can.LINE)
def test_a_take_that_looks_again_keeps_its_place_also_when_there_are_items_for_all(binding, begin):
    """A waiting call looks again if it was told nothing for about a second. A call that comes only
    now may pass it. Where there are roles, one take has the role, and the others are told so."""
    ask(binding, SetBound(0))
    waiting = [begin(Take())[0] for _ in range(3)]
    for number in range(4):
        ask(binding, Put([b"%d" % number]))
    for session in reversed(waiting[1:]):
        assert session.call(Take()) == NoItem()
    assert ask(binding, Take()) == Taken([b"0"])
    for number, session in enumerate(waiting, 1):
        assert session.call(Take()) == Taken([b"%d" % number])


@pytest.mark.parametrize("gives_up", [False, True], ids=["end", "a last call"])
def test_a_take_that_leaves_the_line_lets_the_next_take_go_on(binding, begin, gives_up):
    first, _ = begin(Take())
    second, later = begin(Take())
    waiting = Background(served, second, later, Take())
    if gives_up:
        assert isinstance(first.call(Take(waits=False)), LATER)
    else:
        begin.end(first)
    ask(binding, Put([b"1"]))
    assert waiting.result() == Taken([b"1"])


def test_a_take_that_was_woken_and_leaves_lets_the_next_take_go_on(binding, begin):
    first, told_first = begin(Take())
    second, told_second = begin(Take())
    waiting = Background(served, second, told_second, Take())
    ask(binding, Put([b"1"]))
    deadline = time.monotonic() + LIMIT
    while not first.wait(told_first, None):
        assert time.monotonic() < deadline
    begin.end(first)
    assert waiting.result() == Taken([b"1"])


def test_a_cancelled_wait_lets_the_next_take_go_on(binding):
    first, second = Looped(binding), Looped(binding)
    first.cancel_wait(first.call(Take()))
    later = second.call(Take())
    waiting = Background(served, second, later, Take())
    first.end()
    ask(binding, Put([b"1"]))
    assert waiting.result() == Taken([b"1"])
    second.end()


def test_a_wait_lasts_as_long_as_it_says_or_about_a_second(begin):
    session, later = begin(Take())
    begun = time.monotonic()
    assert not session.wait(later, 0.05)
    assert time.monotonic() - begun >= 0.05
    for _ in range(3):
        session.wait(later, None)
    assert time.monotonic() - begun < LIMIT / 2


# The events that serve a waiting call


def comes_back(binding):
    """Prepares an item in flight; what brings it back."""
    ask(binding, Put([b"1"]))
    ask(binding, Take(hold=Hold(OWNER, 1)))
    return Requeue(OWNER)


def is_dealt_with(binding):
    ask(binding, Put([b"1"]))
    ask(binding, Take())
    return CountDone()


def is_full(binding, *requests):
    ask(binding, Put([b"1"]))
    return requests[0] if requests else Take()


def has_producer(binding):
    ask(binding, Renew(OWNER, False, True))
    return Retire(OWNER)


SERVED = {
    "an item": (lambda binding: Put([b"1"]), Take(), Taken([b"1"])),
    "an item that comes back": (comes_back, Take(), Taken([b"1"])),
    "space": (is_full, Put([b"2"]), Added(1)),
    "a larger bound": (lambda binding: is_full(binding, SetBound(2)), Put([b"2"]), Added(1)),
    "the end of all work": (is_dealt_with, Join(), Outcome.DONE),
    "the end of all producers": (has_producer, Take(until_ended=True), Outcome.ENDED),
    "a shutdown without items": (lambda binding: Close(), Take(), Outcome.CLOSED),
    "a shutdown, for space": (
        lambda binding: is_full(binding, Close()),
        Put([b"2"]),
        Outcome.CLOSED,
    ),
    "a deletion": (lambda binding: Delete(waits=False), Take(), Outcome.MISSING),
}


#: Which of these need another level.
FURTHER = {
    "an item that comes back": Level.DELIVERIES,
    "the end of all work": Level.DELIVERIES,
    "the end of all producers": Level.DELIVERIES,
}


def case(what):
    level = FURTHER.get(what)
    return pytest.param(what, marks=pytest.mark.levels(level) if level else ())


@pytest.mark.parametrize("what", [*map(case, SERVED)])
def test_each_event_that_serves_a_waiting_call(binding, begin, what):
    prepare, request, reply = SERVED[what]
    event = prepare(binding)
    session, later = begin(request)
    waiting = Background(served, session, later, request)
    waiting.join(0.1)
    assert waiting.is_alive()
    ask(binding, event)
    assert waiting.result() == reply


@pytest.mark.parametrize(
    ("request_", "event", "reply"),
    [
        (Take(), Close(), Outcome.CLOSED),
        (Take(), Delete(waits=False), Outcome.MISSING),
        pytest.param(
            *(Join(), Close(immediate=True), Outcome.DONE),
            marks=pytest.mark.levels(Level.DELIVERIES),
        ),
    ],
)
def test_all_waiting_calls_are_told_of_an_event_that_concerns_all(
    binding, begin, request_, event, reply
):
    if isinstance(request_, Join):
        ask(binding, Put([b"1"]))
    waiting = [Background(served, *begin(request_), request_) for _ in range(3)]
    ask(binding, event)
    assert [one.result() for one in waiting] == [reply] * 3


@pytest.mark.levels(Level.DELIVERIES)
def test_a_waiting_join_does_not_delay_takes_and_puts(binding, begin):
    ask(binding, Put([b"1"]))
    begin(Join())
    assert ask(binding, Take()) == Taken([b"1"])
    assert ask(binding, Put([b"2"])) == Added(1)
    assert ask(binding, GetLength()) == 1
