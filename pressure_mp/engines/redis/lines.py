"""Those of one event loop who wait for the same: the first of them waits at the server, the others
here, first come, first served."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from itertools import islice

#: One who is served at once lets so many others ask too, of so many who are the first in line.
_MORE, _TOGETHER = 2, 16


class Lines:
    """Each line that somebody stands in, by what is waited for."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, OrderedDict[Place, None]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lines

    def __len__(self) -> int:
        """How many stand in a line and are not the first."""
        return sum(len(line) - 1 for line in list(self._lines.values()))

    def join(self, key: Hashable) -> Place:
        """A place at the end."""
        line = self._lines.setdefault(key, OrderedDict())
        place = Place(self, key, line)
        line[place] = None
        return place

    def drop(self, key: Hashable) -> None:
        """Nobody stands there any more."""
        del self._lines[key]


class Place:
    """One operation's, which leaves it when it is over."""

    def __init__(self, lines: Lines, key: Hashable, line: OrderedDict[Place, None]) -> None:
        self._lines, self._key, self._line = lines, key, line
        self._turn: asyncio.Future[bool] | None = None
        #: Whether this one asks the server, or is about to: as the first, or as one who may too.
        self.asks = False

    @property
    def is_first(self) -> bool:
        """Whether it is this one's turn to go to the server."""
        return next(iter(self._line)) is self

    @property
    def is_left(self) -> bool:
        """Whether it was left, or all were let go."""
        return self not in self._line

    async def wait(self, timeout: float) -> bool:
        """Wait until this is the first one; False after so many seconds."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._turn = turn
        timer = loop.call_later(timeout, self._come, False)
        try:
            return await turn
        finally:
            timer.cancel()
            self._turn = None

    def leave(self) -> None:
        """It is the next one's turn, if it was this one's."""
        if self.is_left:
            return
        was_first = self.is_first
        del self._line[self]
        if not self._line:
            self._lines.drop(self._key)
        elif was_first:
            next(iter(self._line))._come(True)

    def let_others_ask(self) -> None:
        """There seems to be enough for several: those who are now the first in line may ask for it
        at the same time. Each keeps its place meanwhile; but one may be told that there is nothing
        just before something comes, which the next one gets."""
        more = [place for place in islice(self._line, _TOGETHER) if not place.asks]
        for place in more[:_MORE]:
            place.asks = True
            place._come(False)

    def let_all_go(self) -> None:
        """What all of them wait for has come."""
        all_of_them = list(self._line)
        self._line.clear()
        self._lines.drop(self._key)
        for place in all_of_them:
            place._come(True)

    def _come(self, is_turn: bool) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(is_turn)
