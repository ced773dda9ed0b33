"""Lines of the operations of one event loop that wait for the same, first come, first served.

The first operation in a line makes its call at once, and the others wait here. When there seem to
be enough items for several operations, the first ones in line make their calls together: in one
transaction, so that none is refused while one behind it is served. The next ones call when all of
these have their replies. When there is nothing left, the first one waits at the server.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterator

from .contract.forwarding import Forward
from .contract.items import Put, Take
from .contract.queues import Join
from .contract.replies import InUse, Later, NoTask, Unfinished
from .contract.requests import Request
from .contract.tasks import PutTasks, TakeTasks

#: Bytes of arguments from which on a call is not made together with others, nor over a shared
#: connection: the other calls would wait for it, and it could not be cancelled half way.
LARGE = 1 << 16
#: The most calls that are made together: meanwhile the server does nothing else.
_TOGETHER = 32


class Shortcut:
    """A call that is tried before a full call. After a try that did not help, it is not tried again
    until some full calls in a row were served at once: so a caller that often has to wait makes one
    call less."""

    #: How many full calls. A declined try costs about as much time as it saves in so many calls.
    PROBATION = 5

    def __init__(self) -> None:
        self.is_open = True
        self._missing = 0

    def close(self) -> None:
        """Note that the last call, smaller or full, was not served at once."""
        self.is_open = False
        self._missing = self.PROBATION

    def note(self, served: bool) -> None:
        """Note whether a full call was served at once."""
        if not served:
            self.close()
            return
        self._missing -= 1
        self.is_open = self._missing <= 0


class Lines:
    """The lines that have places, by what their operations wait for."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lines

    def __len__(self) -> int:
        """Count the places that are not the first of their line."""
        return sum(len(line.places) - 1 for line in list(self._lines.values()))

    def join(self, key: Hashable, enough: Shortcut | None, is_alone: bool = False) -> Place:
        """Add a place at the end of a line. ``enough`` decides whether several operations call
        together; with None they never do. An operation that ``is_alone`` calls alone."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(self, key, enough)
        place = Place(line, is_alone)
        line.add(place)
        return place

    def drop(self, key: Hashable) -> None:
        """Remove a line that has no places."""
        del self._lines[key]


class Place:
    """The place of one operation in a line, until the operation is over."""

    __slots__ = ("_called", "_line", "asks", "has_turn", "is_alone", "together")

    def __init__(self, line: _Line, is_alone: bool) -> None:
        self._line = line
        self._called: asyncio.Future[bool] | None = None
        #: Whether the operation may make its call, and has no reply yet.
        self.asks = False
        #: Whether the operation, the first in line, waits at the server, and no other one calls.
        self.has_turn = False
        self.is_alone = is_alone
        #: The key of the line, if other operations call together with this one.
        self.together: Hashable = None

    @property
    def is_left(self) -> bool:
        """Whether the place was left, or the line was cleared."""
        return self not in self._line.places

    async def wait(self, timeout: float | None) -> bool:
        """Wait until the operation may call, or has the turn; return False after ``timeout``
        seconds."""
        if self.asks or self.has_turn or self.is_left:
            return True
        loop = asyncio.get_running_loop()
        called: asyncio.Future[bool] = loop.create_future()
        self._called = called
        timer = None if timeout is None else loop.call_later(timeout, set_once, called, False)
        try:
            return await called
        finally:
            if timer is not None:
                timer.cancel()
            self._called = None

    def call(self) -> None:
        """End the wait of the operation."""
        if self._called is not None:
            set_once(self._called, True)

    def was_refused(self) -> None:
        """Note that the call was not served. The place stays; the first in line has the turn when
        all replies are there."""
        self._line.refuse(self)

    def leave(self) -> None:
        """Leave the line. If no other operation calls, or has the turn, the next ones do."""
        self._line.remove(self)

    def clear(self) -> None:
        """Clear the line: the event that all its operations wait for has come."""
        self._line.clear()


class _Line:
    def __init__(self, lines: Lines, key: Hashable, enough: Shortcut | None) -> None:
        self._lines = lines
        self.key = key
        self.places: OrderedDict[Place, None] = OrderedDict()
        self._enough = enough
        self._asking = 0
        #: How many operations call together the next time.
        self._together = 2
        #: Whether a call was not served: then the first operation waits at the server.
        self._is_dry = False

    def add(self, place: Place) -> None:
        is_first = not self.places
        self.places[place] = None
        if is_first and self._enough is None:
            place.has_turn = True
        elif is_first:
            place.asks, self._asking = True, 1

    def refuse(self, place: Place) -> None:
        # The next one calls alone: perhaps with another script, which the server must have before
        # several calls can be in one transaction.
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
        place.together = None

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


def set_once(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():
        future.set_result(value)


#: Requests with ``waits``. Without it they give up their place.
MAY_WAIT = frozenset((Put, Take, PutTasks, TakeTasks, Forward))


def line_of(request: Request) -> tuple[Hashable, Later] | None:
    """Return the line in which a request waits, and the reply when it is not the first there; None
    if it does not wait."""
    if isinstance(request, Put):
        return ("producer", _PRODUCER) if request.waits else None
    if isinstance(request, Take):
        return ("consumer", _CONSUMER) if request.waits else None
    if isinstance(request, Join):
        return "finished", _UNFINISHED
    if isinstance(request, TakeTasks) and request.waits and not request.acks:
        return ("task", request.tube), NoTask(request.tube)
    return line_of(request.put) if isinstance(request, Forward) else None


_PRODUCER, _CONSUMER, _UNFINISHED = InUse("producer"), InUse("consumer"), Unfinished()
