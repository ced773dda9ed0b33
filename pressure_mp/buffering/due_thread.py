"""The thread that ends what a handle has reserved, or renews it, in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty as NothingNew
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any

from .. import interrupts
from .window import Window

#: Seconds to wait for the next reservation before the thread ends.
_LINGER = 1.0
#: Seconds to sleep at least.
_PAUSE = 0.002


class DueThread:
    """A thread, as long as anything is reserved. Only the thread has a reference to what it calls,
    which has one to this: so no cycle outlives the thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None  # which notes itself
        self._idle = False  # the thread waits for the next reservation
        self._more: SimpleQueue[None] = SimpleQueue()

    @property
    def is_there(self) -> bool:
        """Whether the thread is."""
        return self._thread is not None

    def see_to(self, window: Window[Any], come_due: Callable[[], None]) -> None:
        """Call ``come_due()`` when the window is due, while it holds anything."""
        if self._idle:
            self._idle = False
            self._more.put(None)
        elif self._thread is None:
            thread = threading.Thread(
                target=self._wait, args=(window, come_due), name="pressure_mp reader", daemon=True
            )
            try:
                interrupts.start(thread)
            except RuntimeError:  # the process ends, and so does the reservation
                pass

    def _wait(self, window: Window[Any], come_due: Callable[[], None]) -> None:
        me = threading.current_thread()
        if self._thread is not None:
            return
        self._thread = me
        while self._thread is me:
            if window.holds:
                sleep(max(window.due - monotonic(), _PAUSE))
                if monotonic() >= window.due:
                    come_due()
                continue
            self._idle = True
            try:
                if not window.holds:
                    self._more.get(timeout=_LINGER)
            except NothingNew:
                self._thread = None
                if window.holds:
                    self._thread = me
            self._idle = False
