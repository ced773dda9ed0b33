"""The signs of a file by which threads, and the event loops of asyncio, wait for other processes.

Threads sleep in futex(2). An event loop has a socket of its own (see :mod:`..wake_sockets`), and a
place in a table of the file while a task of it waits. Both are woken in turn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from mmap import mmap
from time import monotonic, monotonic_ns
from typing import NamedTuple

from ... import interrupts
from .. import wake_sockets
from . import linux
from .layout import (
    ITEMS,
    ITEMS_AWAITED,
    ITEMS_LOOPS,
    JOIN,
    JOIN_AWAITED,
    JOIN_LOOPS,
    LOOPS,
    PAGE,
    SPACE,
    SPACE_AWAITED,
    SPACE_LOOPS,
    TABLE,
    TURN,
)
from .locks import BUSY, FileLock, LockFile

_fence = threading.Lock()
#: Seconds to wait for the lock when a process begins to wait, or wakes another one.
_MOMENT = 0.05
#: More waiting threads than there can be.
ALL = 1 << 30
#: How many event loops can wait for one sign of a file.
MOST_LOOPS = LOOPS // 48


class Sign(NamedTuple):
    """What is waited for: the numbers of the sign, of whether it is awaited, and of how many places
    in the table of event loops were ever used; and where these begin."""

    sign: int
    awaited: int
    loops: int
    places: int


FOR_ITEMS = Sign(ITEMS, ITEMS_AWAITED, ITEMS_LOOPS, 0)
FOR_SPACE = Sign(SPACE, SPACE_AWAITED, SPACE_LOOPS, 2 * MOST_LOOPS)
#: Until all items are done.
FOR_JOIN = Sign(JOIN, JOIN_AWAITED, JOIN_LOOPS, 4 * MOST_LOOPS)


def name_of(loop: int) -> str:
    """The name of the socket of an event loop, which has this number in the table."""
    return f"{loop:016x}"


class Waking:
    """The part of a mapped file that is for waiting."""

    taking: FileLock
    _file: LockFile
    _map: mmap
    _cells: memoryview
    _size: int
    _address: int
    _has_loops = False

    # Telling

    def tell_items(self, number: int) -> None:
        """Wake ``number`` threads or event loops that wait for items."""
        if self._cells[ITEMS_AWAITED]:
            self.tell(FOR_ITEMS, number)

    def tell_space(self, number: int) -> None:
        """Wake ``number`` threads or event loops that wait for space."""
        if self._cells[SPACE_AWAITED]:
            self.tell(FOR_SPACE, number)

    @property
    def is_join_awaited(self) -> bool:
        """Whether a thread or an event loop may wait until all items are done."""
        return self._cells[JOIN_AWAITED] > 0

    def tell_done(self) -> None:
        """Wake all that wait until all items are done."""
        if self._cells[JOIN_AWAITED]:
            self.tell(FOR_JOIN, ALL)

    def tell_all(self) -> None:
        """Wake all threads and event loops that wait."""
        self.tell_items(ALL)
        self.tell_space(ALL)
        self.tell_done()

    def tell(self, sign: Sign, number: int) -> None:
        """Wake ``number`` threads or event loops that wait for ``sign``."""
        if linux.IS_ORDERED:
            self._tell_now(sign, number)
        else:
            self.taking.run(partial(self._tell_now, sign, number), monotonic() + _MOMENT)

    def _tell_now(self, sign: Sign, number: int) -> None:
        cells = self._cells
        cells[sign.sign] = monotonic_ns()
        if self._wake(sign, number):
            return
        # Nobody waited. In this order: a thread or a loop that began to wait meanwhile, and counts
        # as not awaited now, sees the new sign, or is woken.
        cells[sign.awaited] = 0
        cells[sign.sign] = monotonic_ns()
        if self._wake(sign, ALL):
            cells[sign.awaited] = 1

    def _wake(self, sign: Sign, number: int) -> bool:
        """Wake up to ``number`` threads or event loops. Returns whether any waited."""
        address = self._address + sign.sign * 8
        if self._cells[sign.loops]:
            return self._wake_both(sign, address, number)
        return linux.wake(address, number) > 0

    def _wake_both(self, sign: Sign, address: int, number: int) -> bool:
        """Wake threads first, and then event loops, or the other way round, in turn."""
        cells, places = self._cells, self._places
        cells[TURN] = threads_first = 1 - cells[TURN]
        woken = linux.wake(address, number) if threads_first else 0
        first, end = sign.places, sign.places + 2 * cells[sign.loops]
        waiting = sorted((places[at + 1], at) for at in range(first, end, 2) if places[at])
        told = 0
        for _, at in waiting:
            if told == number - woken:
                break
            loop = places[at]
            places[at + 1] = monotonic_ns()  # before: another process wakes the next one
            if loop and wake_sockets.wake(name_of(loop)):
                told += 1
            elif loop:  # it has ended; with the lock no other one takes the place meanwhile
                self.taking.run(partial(self.leave_place, at, loop), 0.0)
        if not threads_first:
            woken = linux.wake(address, number - told)
        return bool(waiting) or woken > 0

    # Waiting in a thread

    def wait(self, sign: Sign, is_over: Callable[[], bool], seconds: float) -> bool:
        """Wait until :meth:`tell` wakes this thread, unless the wait ``is_over`` before. Returns
        whether it may be over."""
        if linux.IS_ORDERED:
            seen = self._begin_to_wait(sign)
            with _fence:  # the processor writes that before it reads the ring
                pass
        else:
            beginning = partial(self._begin_to_wait, sign)
            seen = self.taking.run(beginning, monotonic() + min(seconds, _MOMENT))
            if seen is BUSY:
                return True  # the repeated call has the same time limit
        return is_over() or linux.wait(self._address + sign.sign * 8, seen, seconds) or is_over()

    def _begin_to_wait(self, sign: Sign) -> int:
        seen = self._cells[sign.sign]
        self._cells[sign.awaited] = 1
        return seen

    # Waiting in an event loop

    @property
    def _places(self) -> memoryview:
        begin = PAGE + self._size + TABLE
        return memoryview(self._map)[begin : begin + LOOPS].cast("Q")

    def take_place(self, sign: Sign, loop: int) -> int:
        """Note, with the lock for takes, that the loop of this number waits. Returns its place; -1
        if there is no room."""
        if not self._allocate_places():
            return -1
        places, cells = self._places, self._cells
        for number in range(MOST_LOOPS):
            at = sign.places + 2 * number
            if not places[at]:
                places[at + 1], places[at] = monotonic_ns(), loop
                cells[sign.loops] = max(cells[sign.loops], number + 1)
                cells[sign.awaited] = 1
                return at
        return -1

    def leave_place(self, at: int, loop: int) -> None:
        """Note that no task of the loop waits there any more."""
        places = self._places
        if places[at] == loop:
            places[at] = 0

    def _allocate_places(self) -> bool:
        if not self._has_loops:
            try:
                begin = PAGE + self._size + TABLE
                os.posix_fallocate(self._file.number, begin, LOOPS)
            except OSError as error:
                if interrupts.is_from_outside(error):
                    raise
                return False
            self._has_loops = True
        return True
