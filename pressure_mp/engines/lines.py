"""Those of one event loop who wait for the same, first come, first served.

One who comes when nobody is in line asks the server at once. The others wait here. When there seems
to be enough for several, the first in line ask together: in one transaction, in which none is told
that there is nothing while one behind it gets something. The next ones ask when all of these have
their replies. When there is nothing, the first goes to the server and waits there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterator

from .contract.items import Prefetch, Put, Take
from .contract.queues import Join
from .contract.replies import InUse, Later, NoTask, Unfinished
from .contract.requests import Request
from .contract.tasks import TakeTasks
from .shortcut import Shortcut

#: Bytes of arguments, from which on a call is not made together with others, nor over a connection
#: that they share: they would wait for it; and a call that is cancelled half way is not done.
LARGE = 1 << 16
#: So many ask together at most: meanwhile the server does nothing else.
_TOGETHER = 32


class Lines:
    """Each line that somebody stands in, by what is waited for."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lines

    def __len__(self) -> int:
        """How many stand in a line and are not the first."""
        return sum(len(line.places) - 1 for line in list(self._lines.values()))

    def join(self, key: Hashable, enough: Shortcut | None, is_alone: bool = False) -> Place:
        """A place at the end. ``enough`` tells whether several may ask, None that they never do;
        one that ``is_alone`` asks together with nobody."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(self, key, enough)
        place = Place(line, is_alone)
        line.add(place)
        return place

    def drop(self, key: Hashable) -> None:
        """Nobody stands there any more."""
        del self._lines[key]


class Place:
    """One operation's, which leaves it when it is over."""

    __slots__ = ("_called", "_line", "asks", "has_turn", "is_alone", "together")

    def __init__(self, line: _Line, is_alone: bool) -> None:
        self._line = line
        self._called: asyncio.Future[bool] | None = None
        #: Whether this one may ask, and has no reply yet.
        self.asks = False
        #: Whether this one, the first in line, goes to the server, and nobody else asks.
        self.has_turn = False
        self.is_alone = is_alone
        #: The line, if others ask together with this one.
        self.together: Hashable = None

    @property
    def is_left(self) -> bool:
        """Whether it was left, or all were let go."""
        return self not in self._line.places

    async def wait(self, timeout: float | None) -> bool:
        """Wait until this one may ask, or has the turn; False after so many seconds."""
        if self.asks or self.has_turn or self.is_left:
            return True
        loop = asyncio.get_running_loop()
        called: asyncio.Future[bool] = loop.create_future()
        self._called = called
        timer = None if timeout is None else loop.call_later(timeout, _set, called, False)
        try:
            return await called
        finally:
            if timer is not None:
                timer.cancel()
            self._called = None

    def call(self) -> None:
        """End its wait."""
        if self._called is not None:
            _set(self._called, True)

    def was_told_nothing(self) -> None:
        """It asked, and keeps its place. The first in line has the turn when all have asked."""
        self._line.told_nothing(self)

    def leave(self) -> None:
        """If nobody else asks, or has the turn, the next ones do."""
        self._line.remove(self)

    def let_all_go(self) -> None:
        """What all of them wait for has come."""
        self._line.clear()


class _Line:
    def __init__(self, lines: Lines, key: Hashable, enough: Shortcut | None) -> None:
        self._lines = lines
        self.key = key
        self.places: OrderedDict[Place, None] = OrderedDict()
        self._enough = enough
        self._asking = 0
        #: How many ask together, the next time.
        self._together = 2
        #: Whether one who asked was told that there is nothing: then the first goes to the server.
        self._is_dry = False

    def add(self, place: Place) -> None:
        is_first = not self.places
        self.places[place] = None
        if is_first and self._enough is None:
            place.has_turn = True
        elif is_first:
            place.asks, self._asking = True, 1

    def told_nothing(self, place: Place) -> None:
        # The next one asks alone: perhaps with another script, which the server has to be given
        # before several can ask in one transaction.
        self._together, self._is_dry = 1, True
        self._end(place)
        self._go_on()

    def remove(self, place: Place) -> None:
        if place not in self.places:
            return
        del self.places[place]
        self._end(place)
        if self.places:
            self._go_on()
        else:
            self._lines.drop(self.key)

    def clear(self) -> None:
        places, self.places = self.places, OrderedDict()
        self._lines.drop(self.key)
        for place in places:
            place.call()

    def _end(self, place: Place) -> None:
        if place.asks:
            self._asking -= 1
        place.asks = place.has_turn = False

    @property
    def _first(self) -> Place:
        return next(iter(self.places))

    def _go_on(self) -> None:
        if self._asking or self._first.has_turn:
            return
        if self._is_dry or self._enough is None or not self._enough.is_open:
            self._is_dry, self._first.has_turn = False, True
            self._first.call()
            return
        chosen = list(self._next())
        self._asking = len(chosen)
        self._together = min(2 * self._together, _TOGETHER)
        for place in chosen:
            place.asks = True
            place.together = self.key if len(chosen) > 1 else None
            place.call()

    def _next(self) -> Iterator[Place]:
        for number, place in enumerate(self.places):
            if number == self._together or (place.is_alone and number):
                return
            yield place
            if place.is_alone:
                return


def _set(called: asyncio.Future[bool], is_called: bool) -> None:
    if not called.done():
        called.set_result(is_called)


#: Requests that may wait. Without ``waits`` they give up their place.
MAY_WAIT = frozenset((Put, Take, Prefetch, TakeTasks))


def line_of(request: Request) -> tuple[Hashable, Later] | None:
    """What a request waits for, and the reply to one who is not the first; None if it does not
    wait."""
    if isinstance(request, Put):
        return ("producer", _PRODUCER) if request.waits else None
    if isinstance(request, (Take, Prefetch)):
        return ("consumer", _CONSUMER) if request.waits else None
    if isinstance(request, Join):
        return "finished", _UNFINISHED
    if isinstance(request, TakeTasks) and request.waits and request.ack is None:
        return ("task", request.tube), NoTask(request.tube)
    return None


_PRODUCER, _CONSUMER, _UNFINISHED = InUse("producer"), InUse("consumer"), Unfinished()
