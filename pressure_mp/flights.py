"""What this process has in flight from one queue: whose turn the next ``task_done()`` is."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict


class _Thread(threading.local):
    """A mark that no other thread has or will have, which a thread id does not promise."""

    def __init__(self) -> None:
        self.mark = object()


_thread = _Thread()


class Held:
    """An item in flight."""

    __slots__ = ("arrival", "asked", "asker", "is_done", "seq")

    def __init__(self, seq: int, arrival: int) -> None:
        self.seq = seq
        self.arrival = arrival
        #: The thread that tells the broker that it is dealt with, and when it began to.
        self.asker: object = None
        self.asked = 0
        self.is_done = False


class Flights:
    """The numbers of the items in flight, each noted for the thread that got it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._clock = itertools.count(1)
        self._threads: dict[object, OrderedDict[int, Held]] = {}

    def __bool__(self) -> bool:
        with self._lock:
            return any(
                not held.is_done for theirs in self._threads.values() for held in theirs.values()
            )

    def add(self, seq: int) -> None:
        """The calling thread got an item."""
        mark = _thread.mark
        with self._lock:
            mine = self._threads.get(mark)
            if mine is None:
                mine = self._threads[mark] = OrderedDict()
            mine[seq] = Held(seq, next(self._clock))

    def ask(self) -> tuple[Held | None, bool, bool]:
        """The item that the calling thread got first, else the one that this process did, of those
        that no other thread asks about; whether somebody asked about it before; and whether the
        calling thread has got an item since then.

        An item stays in flight here until it is done, which an interrupted caller does not say, and
        so it asks again.
        """
        mark = _thread.mark
        with self._lock:
            held = self._first(self._threads.get(mark), mark)
            if held is None:
                held = self._first_of_others(mark)
            if held is None:
                return None, False, False
            before, now = held.asked, next(self._clock)
            has_newer = before > 0 and self._last_arrival(mark) > before
            held.asked, held.asker = now, mark
        return held, before > 0, has_newer

    def leave(self, held: Held) -> None:
        """The calling thread does not know what the broker did."""
        held.asker = None

    def _last_arrival(self, mark: object) -> int:
        mine = self._threads.get(mark)
        return next(reversed(mine.values())).arrival if mine else 0

    def last(self) -> int | None:
        """The number of the item that the calling thread got last."""
        with self._lock:
            mine = self._threads.get(_thread.mark)
            return None if mine is None else next(reversed(mine))

    def discard(self, seq: int | None) -> None:
        """An item is in flight no longer."""
        if seq is None:
            return
        with self._lock:
            self._discard(seq)

    def _discard(self, seq: int) -> None:
        for thread in (_thread.mark, *self._threads):
            theirs = self._threads.get(thread)
            if theirs is not None and theirs.pop(seq, None) is not None:
                if not theirs:
                    del self._threads[thread]
                return

    def _first_of_others(self, mark: object) -> Held | None:
        free = [self._first(theirs, mark) for theirs in list(self._threads.values())]
        return min((one for one in free if one), key=_arrival, default=None)

    @staticmethod
    def _first(some: OrderedDict[int, Held] | None, mark: object) -> Held | None:
        """The first that is neither done nor asked about; those before it that are done go."""
        found, done = None, []
        if some is None:
            return None
        for held in some.values():
            if held.is_done:
                done.append(held.seq)
            elif held.asker is None or held.asker is mark:
                found = held
                break
        for seq in done:
            some.pop(seq, None)
        return found


def _arrival(held: Held) -> int:
    return held.arrival
