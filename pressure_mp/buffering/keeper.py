"""The thread that sees to it that what a handle has reserved goes back in time."""

from __future__ import annotations

import threading
from queue import Empty as NothingNew
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Protocol

from .. import interrupts

#: Seconds for which it waits for the next reservation before it ends.
_LINGER = 1.0
#: Seconds for which it sleeps at least.
_PAUSE = 0.002


class Kept(Protocol):
    """What is to go back."""

    @property
    def holds(self) -> bool:
        """Whether there is anything."""

    def come_due(self) -> None:
        """It has been kept for as long as it may be: it goes back, or is kept for longer, until
        another :attr:`Keeper.due`."""


class Keeper:
    """A thread, as long as there is anything. Only the thread has a reference to that, which has
    one to this: so there is no cycle that outlives the thread."""

    def __init__(self) -> None:
        self.due = 0.0  #: on the monotonic clock
        self._thread: threading.Thread | None = None  # which notes itself
        self._idle = False  # the thread waits for more
        self._more: SimpleQueue[None] = SimpleQueue()

    @property
    def is_there(self) -> bool:
        """Whether the thread is."""
        return self._thread is not None

    def see_to(self, kept: Kept, due: float) -> None:
        """See to what was reserved, at that time."""
        self.due = due
        if self._idle:
            self._idle = False
            self._more.put(None)
        elif self._thread is None:
            thread = threading.Thread(
                target=self._wait, args=(kept,), name="pressure_mp reader", daemon=True
            )
            try:
                interrupts.start(thread)
            except RuntimeError:  # the process ends, and so does the reservation
                pass

    def _wait(self, kept: Kept) -> None:
        me = threading.current_thread()
        if self._thread is not None:
            return
        self._thread = me
        while self._thread is me:
            if kept.holds:
                sleep(max(self.due - monotonic(), _PAUSE))
                if monotonic() >= self.due:
                    kept.come_due()
                continue
            self._idle = True
            try:
                if not kept.holds:
                    self._more.get(timeout=_LINGER)
            except NothingNew:
                self._thread = None
                if kept.holds:
                    self._thread = me
            self._idle = False
