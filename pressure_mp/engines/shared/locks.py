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

#: Seconds until the next try while others have the lock; then twice as many, up to the most.
_FIRST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3


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
        first = () if end is None else (max(end - time.monotonic(), 0.0),)
        for held in interrupts.attempts(self._threads, *first, more=60.0):
            if held:
                try:
                    return body() if self._is_held else self._run_alone(body, end)
                finally:
                    self._threads.release()
            if end is not None:
                break
        busy: T = BUSY
        return busy

    def _run_alone(self, body: Callable[[], T], end: float | None) -> T:
        pause = 0.0
        try:
            while not self._acquire():
                if end is not None and time.monotonic() >= end:
                    busy: T = BUSY
                    return busy
                time.sleep(pause)
                pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
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
