"""A lock of a file (fcntl(2)), which the kernel releases when the process ends that has it."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ... import interrupts

T = TypeVar("T")

#: What :meth:`FileLock.run` returns when others had the lock for too long.
BUSY: Any = object()

#: While others have the lock, one lets them have the processor and tries again, so many times: that
#: is mostly enough. Then it sleeps before each try, for so many seconds, and each time for twice as
#: many, so many times.
_YIELDS, _PAUSE, _DOUBLINGS = 6, 2e-5, 6


class FileLock:
    """One byte's, for the threads and the processes that use it. A signal handler may have it too
    that comes while its thread has it.

    The kernel is not asked to wait for it: it would take two processes for deadlocked each of which
    has two threads that wait for different locks.
    """

    def __init__(self, fd: int, byte: int) -> None:
        self._fd = fd
        self._lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        self._unlock = struct.pack("hhqqi4x", fcntl.F_UNLCK, os.SEEK_SET, byte, 1, 0)
        self.reset()

    def reset(self) -> None:
        """Nobody has it: it is new, or this is a forked child."""
        self._threads = threading.RLock()
        self._is_held = False
        self._releases = 0

    def run(self, body: Callable[[], T], end: float | None = None) -> T:
        """What ``body()`` returns, which has the lock; or BUSY, when others have it at ``end`` on
        the monotonic clock. Tries once at least."""
        seconds = -1.0 if end is None else max(end - time.monotonic(), 0.0)
        for held in interrupts.attempts(self._threads, seconds):
            if held:
                try:
                    return body() if self._is_held else self._run_alone(body, end)
                finally:
                    self._threads.release()
        busy: T = BUSY
        return busy

    def _run_alone(self, body: Callable[[], T], end: float | None) -> T:
        tries = 0
        try:
            while not self._acquire():
                if end is not None and time.monotonic() >= end:
                    busy: T = BUSY
                    return busy
                _pause(tries)
                tries += 1
            return body()
        finally:
            self._is_held = False
            self._releases += 1
            fcntl.fcntl(self._fd, fcntl.F_SETLK, self._unlock)

    def _acquire(self) -> bool:
        releases = self._releases
        try:
            fcntl.fcntl(self._fd, fcntl.F_SETLK, self._lock)
        except (BlockingIOError, PermissionError) as error:
            if interrupts.is_from_outside(error):
                raise
            return False
        self._is_held = True
        # A signal handler that came before that has used the lock, and released it.
        if self._releases != releases:
            self._is_held = False
        return self._is_held


def _pause(tries: int) -> None:
    if tries < _YIELDS:
        os.sched_yield()
    else:
        time.sleep(_PAUSE * 2 ** min(tries - _YIELDS, _DOUBLINGS))
