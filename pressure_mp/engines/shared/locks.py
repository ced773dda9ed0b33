"""Locks of a file (fcntl(2)), which the kernel releases when their process ends."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ... import interrupts
from ...exceptions import BrokerError
from ...identity.descriptors import Descriptor

T = TypeVar("T")

#: The value that :meth:`FileLock.run` returns when another thread had the lock for too long.
BUSY: Any = object()

#: A thread that does not get the lock first yields the processor and tries again, so many times:
#: mostly that is enough. Then it sleeps before each try, at first for so many seconds, and each
#: time for twice as long, so many times.
_YIELDS, _PAUSE, _DOUBLINGS = 6, 2e-5, 6

#: Errors of the kernel for a lock when the number belongs to another descriptor now.
_NOT_OURS = (errno.EBADF, errno.EINVAL)
#: The file position of each kept descriptor: larger than that of any other descriptor, and smaller
#: than the numbers of all kept descriptors that were opened before.
_places = itertools.count(1 << 40, -8)
#: The first argument of each call that acquires a lock.
_BLOCKING = itertools.repeat(True)


class LockFile:
    """The locks of a file, by a descriptor that this process keeps. All processes that use the file
    share the lock of one of its bytes.

    The program may close that descriptor without notice, and open a file of its own under the same
    number. That file must not be locked in place of this one. So a byte is given by its distance
    from the descriptor's place: in any file that was opened later, that is before the beginning of
    the file. The kernel refuses such a lock, so the check takes no further call.
    """

    def __init__(self, path: str, flags: int, shared: int) -> None:
        """``shared``: the byte whose lock all processes that use the file share. Raises OSError."""
        self.path = path
        self._shared = shared
        self._opening = threading.RLock()
        self._descriptor, self.place = self._open(flags)

    def _open(self, flags: int) -> tuple[Descriptor, int]:
        opened = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
        place = next(_places)
        os.lseek(opened, place, os.SEEK_SET)
        return Descriptor(opened), place

    @property
    def number(self) -> int:
        """The number of the descriptor. It surely belongs to this file only just after a lock by
        it."""
        return self._descriptor.number

    def use(self) -> None:
        """Share the lock of the byte that all processes that use the file lock. Raises
        BrokerError."""
        place = self.place
        try:
            fcntl.lockf(self.number, fcntl.LOCK_SH, 1, self._shared - place, os.SEEK_CUR)
        except OSError as error:
            if interrupts.is_from_outside(error) or error.errno not in _NOT_OURS:
                raise
            self.open_again(place)

    def open_again(self, lost: int) -> None:
        """Open the file again, unless another thread has: the program closed the descriptor with
        the position ``lost``, which ended all locks of this process. Raises BrokerError."""
        with self._opening:
            if self.place != lost:
                return
            try:
                descriptor, place = self._open(0)
            except OSError as error:
                if interrupts.is_from_outside(error):
                    raise
                raise self._gone(str(error)) from error
            if not descriptor.is_same(self._descriptor):
                descriptor.close()
                raise self._gone("there is another file in its place")
            self._descriptor, self.place = descriptor, place
            self.use()

    def _gone(self, why: str) -> BrokerError:
        return BrokerError(
            f"this program closed the descriptor of {self.path}, where the items of a queue are "
            f"that its processes share, and the file cannot be opened again: {why}. Close what is "
            "inherited before the process first uses the queue"
        )

    def after_fork(self) -> None:
        """Use the file in a forked child too. Raises BrokerError."""
        self._opening = threading.RLock()
        self.use()

    def close(self) -> None:
        """Close the file, which ends all locks of this process in it."""
        self._descriptor.close()


class FileLock:
    """The lock of one byte of a file, for threads and processes. A signal handler may take it while
    its thread has it.

    This never waits in the kernel, which would report a deadlock of two processes that each have
    two threads waiting for different locks.
    """

    def __init__(self, file: LockFile, byte: int) -> None:
        self._file = file
        self._byte = byte
        self._aim()
        self.reset()

    def _aim(self) -> None:
        """Use the descriptor that the file has now."""
        self._place, self._fd = self._file.place, self._file.number
        start = self._byte - self._place
        self._lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_CUR, start, 1, 0)
        self._unlock = struct.pack("hhqqi4x", fcntl.F_UNLCK, os.SEEK_CUR, start, 1, 0)

    def reset(self) -> None:
        """Mark the lock as free, when it is new or in a forked child."""
        self._threads = threading.RLock()
        self._is_held = False
        self._releases = 0

    def run(self, body: Callable[[], T], end: float | None = None) -> T:
        """Run ``body`` with the lock, and return its result; or BUSY, when others have the lock at
        ``end`` on the monotonic clock. Tries once at least; 0.0 is once only."""
        seconds = -1.0 if end is None else max(end - time.monotonic(), 0.0) if end else 0.0
        for held in map(self._threads.acquire, _BLOCKING, (seconds,)):
            if held:
                try:
                    if self._is_held:
                        return body()
                    try:
                        return body() if self._acquire() or self._acquire_until(end) else BUSY
                    finally:
                        self._is_held = False
                        self._releases += 1
                        try:
                            fcntl.fcntl(self._fd, fcntl.F_SETLK, self._unlock)
                        except OSError as error:
                            if interrupts.is_from_outside(error) or error.errno not in _NOT_OURS:
                                raise  # otherwise the closing of the descriptor has released it
                finally:
                    self._threads.release()
        busy: T = BUSY
        return busy

    def _acquire_until(self, end: float | None) -> bool:
        for tries in itertools.count():
            if end is not None and time.monotonic() >= end:
                return False
            _pause(tries)
            if self._acquire():
                return True
        raise AssertionError("it counts without end")

    def _acquire(self) -> bool:
        releases = self._releases
        try:
            fcntl.fcntl(self._fd, fcntl.F_SETLK, self._lock)
            self._is_held = True
        except OSError as error:
            self._see_to(error)
        # A signal handler that came in between has used the lock, and released it.
        if self._releases != releases:
            self._is_held = False
        return self._is_held

    def _see_to(self, error: OSError) -> None:
        """Deal with an error of a try to acquire the lock: others have it, or the descriptor is
        gone. Raises the error of a signal handler."""
        if interrupts.is_from_outside(error):
            raise error
        if isinstance(error, (BlockingIOError, PermissionError)):
            return
        if error.errno not in _NOT_OURS:
            raise error
        self._file.open_again(self._place)
        self._aim()
        self._acquire()


def _pause(tries: int) -> None:
    if tries < _YIELDS:
        os.sched_yield()
    else:
        time.sleep(_PAUSE * 2 ** min(tries - _YIELDS, _DOUBLINGS))
