"""The items that one reader has prefetched and not yet handed out: a state machine without I/O.

The threads of a process and an event loop drive it: they make the requests, and call one method of
a window at a time. Only taking an item out needs no lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from itertools import repeat
from time import monotonic
from typing import Generic, TypeVar

from .. import interrupts
from ..effects import Operation
from ..engines.contract.items import (
    MOST_BYTES,
    EndPrefetch,
    HandedOut,
    Prefetch,
    PrefetchReply,
    Taken,
)
from ..engines.contract.replies import NoItem, Outcome
from ..states import Transition
from .pace import Pace, StatedPace

#: Seconds after which reserved items that were not handed out are for other consumers again.
KEPT = 0.02
#: Seconds after which to renew the lease of the items, while one of them is being decoded.
_RENEWED = 0.05
#: Seconds after which to try again to end a prefetch.
RETRY = 0.5

T = TypeVar("T")


class WindowState(str, Enum):
    """The items that the broker may keep for the reader."""

    #: None.
    EMPTY = "empty"
    #: The items of a request whose reply is not known, and the items here.
    ASKED = "asked"
    #: The items that are here.
    OPEN = "open"
    #: Items that are handed out no more.
    CLOSING = "closing"


EMPTY, ASKED, OPEN, CLOSING = WindowState


#: Every way there is. No other transition ever happens.
TRANSITIONS = (
    Transition(EMPTY, ASKED, "next_request"),
    Transition(OPEN, ASKED, "next_request"),
    Transition(ASKED, OPEN, "feed", "if there are items"),
    Transition(ASKED, EMPTY, "feed", "if there are none, and no item is here"),
    Transition(EMPTY, CLOSING, "feed", "if there are items, and the end was told before them"),
    Transition(OPEN, CLOSING, "stop"),
    Transition(ASKED, CLOSING, "stop"),
    Transition(CLOSING, EMPTY, "end", "when the broker has replied"),
)

#: An item that was taken out, its place among all that were handed out, and :attr:`Window.told`
#: of that moment.
TakenOut = tuple[T, int, int]


class Window(Generic[T]):
    """The items, in the order of the queue. The broker keeps them, too: no other consumer gets them
    before it is told how many were handed out.

    With ``alone`` they are reserved, see :class:`Prefetch`.
    """

    def __init__(self, pace: Pace | StatedPace, alone: bool, until_ended: bool = False) -> None:
        self.state = EMPTY
        self.pace = pace
        self.alone = alone
        self.reader = ""
        self.ahead: deque[T] = deque()
        self.pops = interrupts.pops(self.ahead)
        self.left: list[TakenOut[T]] = []  # by calls that did not return them: they come first
        #: On the monotonic clock: until when items may be handed out, and when they go back.
        self.until = self.due = 0.0
        self.place = 0  # the number of items that were ever handed out
        self.cell = memoryview(bytearray(8)).cast("Q")  # the same number, for other processes
        self.told = 0  # how often the broker was told, or is being told, that number
        self.last = Prefetch("", 0, 0, 0, 0, until_ended, alone)
        self._asked_at = 0.0
        self._may_be_more = False  # behind the items of the last reply
        self._read = 0  # the number of items that were ever read, without those that went back
        self.back: list[T] = []  # of these, what was here when the end began, the last item first
        self.lasting = 0.0  # seconds for which they may be handed out after a request
        #: The number and the bytes of the items of each reply, if the broker was not told that they
        #: were handed out; None for unknown bytes.
        self._batches: list[tuple[int, int | None]] = []
        self._lost: list[tuple[int, int]] = []  # from one place to another, others have the items

    @property
    def holds(self) -> bool:
        """Whether the broker may keep anything for the reader."""
        return self.state is not EMPTY

    # Handing out

    def take(self) -> T | None:
        """Take the next item out, if one may be handed out. One that comes too late is left."""
        if not self.ahead or monotonic() >= self.until:
            return None
        item = self.ahead.popleft()
        self.place = self.cell[0] = self.place + 1
        if monotonic() < self.until:
            return item
        self.left += ((item, self.place - 1, self.told),)
        return None

    def hand_out(self, number: int) -> None:
        """Take the next items out, for a caller that has used them."""
        for _ in range(number):
            self.ahead.popleft()
            self.place = self.cell[0] = self.place + 1

    def counts(self, place: int) -> bool:
        """Whether the item at a place counts as handed out, though it was taken out too late. The
        prefetch was ended since: by others, if this process was stopped meanwhile."""
        return not any(first <= place < end for first, end in self._lost)

    def is_ready(self, now: float) -> bool:
        """Whether an item may be handed out."""
        return bool(self.ahead) and now < self.until

    # Reading

    def must_end(self, now: float, hears: bool = False) -> bool:
        """Whether the prefetch is to be ended before the next request: other consumers may have
        ended it, or no call ``hears`` the reply to the last request."""
        return self.holds and (now >= self.until or (self.state is ASKED and not hears))

    def next_request(self, number: int) -> Prefetch:
        """Ask for ``number`` items behind those that are here."""
        self.told += 1  # before any item is counted
        now, kept = monotonic(), len(self.ahead)
        handed = self._read - kept
        (out, size), batches = self._tell(handed - self.last.handed)
        call = self.last.call + 1
        request = self.last._replace(
            reader=self.reader,
            call=call,
            handed=handed,
            kept=kept,
            limit=number,
            out=out,
            size=size,
        )
        due = now + KEPT
        # From here on there is no call.
        self.state, self.last, self._batches = ASKED, request, batches
        self._asked_at, self.due = now, due
        return request

    def _tell(self, number: int) -> tuple[tuple[int, int], list[tuple[int, int | None]]]:
        """The number of items that were handed out since the last request, and their bytes, or
        zeros if the bytes are unknown; and the batches that are left."""
        left, rest = number, self._batches
        size: int | None = 0
        while left > 0 and rest:
            (items, of_batch), rest = rest[0], rest[1:]
            if items > left:  # the bytes of a part of a batch are unknown
                items, of_batch, rest = left, None, [(items - left, None), *rest]
            left -= items
            size = None if size is None or of_batch is None else size + of_batch
        return ((0, 0) if left or size is None else (number, size)), rest

    def feed(self, reply: PrefetchReply, ready: Sequence[T], lease: int) -> bool:
        """Note the reply to the last request, whose items are ``ready``; the lease is milliseconds.
        Returns whether there are items to hand out. If there are none and the window still holds
        any, its prefetch is to be ended."""
        if isinstance(reply, (Taken, NoItem)):
            self.pace.note(len(ready))
        else:
            self.pace.share()
        if not isinstance(reply, Taken) or not ready:
            if self.state is ASKED and not self.last.kept:
                self.forget()
            return False
        number, size, now = len(ready), sum(map(len, reply.items)), monotonic()
        self._may_be_more = number == self.last.limit or size > MOST_BYTES / 2
        # The broker keeps them for a lease from when it was asked.
        lasting = lease / (3000 if self.alone else 2000)
        until, due = self._asked_at + lasting, now + KEPT
        # From here on there is no call.
        if self.state is not ASKED:
            self.state = CLOSING  # a signal handler told the end before the broker read these
            return False
        self.state, self.lasting = OPEN, lasting
        self._read += number
        self._batches += ((number, size),)
        self.due, self.until = due, until
        self.ahead += ready
        return True

    def next_ahead(self, number: int) -> int:
        """How many items to ask for behind those of the last reply before they are needed; 0 for
        none. ``number`` is how many were asked for."""
        if not self._may_be_more:
            return 0
        return self.pace.next_ahead(number, len(self.ahead))

    def renew(self) -> Operation[None]:
        """Have the broker keep the items for another lease. Unless they are reserved, tell it how
        many were handed out, and drop them if others have them."""
        if self.holds and self.alone:
            yield self.last._replace(limit=0)
        elif self.holds:
            self.told += 1
            now, kept = monotonic(), len(self.ahead)
            handed = self._read - kept
            reply: PrefetchReply = yield self.last._replace(handed=handed, kept=kept, limit=0)
            if reply is Outcome.LATE:
                yield from self.end()
            else:
                self.until = now + self.lasting
        self.due = monotonic() + _RENEWED

    # Ending the prefetch

    def stop(self) -> int:
        """Hand out nothing more; return how many items were ever handed out. The last item is taken
        out first: what another thread takes meanwhile is the first."""
        self.until = 0.0
        try:
            for item in map(deque.pop, repeat(self.ahead)):
                self.back += (item,)
        except IndexError:
            pass
        self.told += 1
        if self.state is not EMPTY:
            self.state = CLOSING
        return self._read - len(self.back)

    def end(self) -> Operation[None]:
        """Stop, and tell the broker; does nothing if it keeps nothing."""
        if self.state is EMPTY:
            return
        handed = self.stop()
        counted: HandedOut = yield EndPrefetch(self.reader, self.last.call, handed, self.alone)
        if counted.number < handed:
            self._lost += ((counted.number, handed),)
        self.forget()

    def forget(self) -> None:
        """Note that the broker keeps nothing."""
        self._read, self.back, self.state = self._read - len(self.back), [], EMPTY
        self._batches = []
