"""How many items to read ahead of their need."""

from __future__ import annotations

import math
from time import monotonic

from ..engines.contract.items import MOST_ITEMS

#: Seconds in which the items of one request are to be handed out.
_WINDOW = 0.01
#: A gap counts as one of so many seconds at most.
_LONGEST_GAP = 0.05
#: After a call that found no more than one item, so many get one by one; then twice as many.
_FEWEST, _MOST_SINGLE = 8, 1024
#: Fewer items, handed out in fewer seconds, are not worth a request ahead of their need.
_LEAST_AHEAD, _LONG = 32, 0.005
#: Seconds of getting one by one after another client took items, or counted them; then twice as
#: many; and seconds after which that is forgotten.
_SHORTEST, _LONGEST, _FORGOTTEN = 0.5, 8.0, 60.0


class Pace:
    """Decides how many items to ask for, unasked: twice as many as before, and no more than the
    consumer will soon need."""

    def __init__(self) -> None:
        self._visited = -math.inf
        #: The seconds from one item to the next: the mean of the last few, because two items of a
        #: slow process may happen to come one soon after the other.
        self._gap = math.inf
        self._handed = 0
        self._number = 1
        self._singles = self._single = _FEWEST
        self._has_missed = True
        #: Until when nothing is reserved, as other consumers were seen; how long the next time.
        self._paused_until, self._pause = -math.inf, _SHORTEST

    def next_number(self, handed: int) -> int:
        """Return how many items to ask for now, when ``handed`` of the items that were read ahead
        were ever handed out."""
        now = monotonic()
        passed, self._visited = now - self._visited, now
        if now < self._paused_until:
            return 1
        number, self._handed = max(handed - self._handed, 1), handed
        if passed < math.inf:  # else there was no item before
            gap = min(passed / number, _LONGEST_GAP)
            self._gap = gap if self._gap == math.inf else self._gap + (gap - self._gap) / 4
        if self._single > 0:
            self._single -= 1
            return 1
        soon = int(_WINDOW / max(self._gap, 1e-6))
        self._number = max(1, min(soon, self._number * 2, MOST_ITEMS))
        return self._number

    def next_ahead(self, number: int, here: int) -> int:
        """Return how many items to ask for before they are needed, when ``number`` were asked for
        last; 0 for none."""
        is_long = number > 1 and number * self._gap > _LONG
        return number if number >= _LEAST_AHEAD or is_long else 0

    def note(self, found: int) -> None:
        """Note how many items a request for several found."""
        if found > 1:
            self._singles, self._has_missed = _FEWEST, False
            self._number = min(self._number, found * 2)
            return
        if not self._has_missed:
            # The producer may have filled the queue, and goes on now.
            self._single, self._has_missed = 1, True
            return
        # To reserve takes longer than to get.
        self._number, self._single = 1, self._singles
        self._singles = min(self._singles * 2, _MOST_SINGLE)

    def share(self) -> None:
        """Note that another client takes items too, or counts them."""
        now = monotonic()
        if now > self._paused_until + _FORGOTTEN:
            self._pause = _SHORTEST
        self._paused_until = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST)
        self._number, self._single = 1, _FEWEST


class StatedPace:
    """Asks for as many items as the program said, ``prefetch=size``. After a request that found
    none it asks for one item, because a get that waits is one call more."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._has_missed = False

    def next_number(self, handed: int) -> int:
        """Return how many items to ask for now."""
        if self._has_missed:
            self._has_missed = False
            return 1
        return min(self._size, MOST_ITEMS)

    def next_ahead(self, number: int, here: int) -> int:
        """Return how many items to ask for while so many are here; 0 for none: fewer than these
        are not worth a request."""
        more = min(self._size - here, MOST_ITEMS)
        return more if more >= here else 0

    def note(self, found: int) -> None:
        """Note how many items a request found."""
        self._has_missed = found == 0

    def share(self) -> None:
        """Note that the request was refused."""
        self._has_missed = True
