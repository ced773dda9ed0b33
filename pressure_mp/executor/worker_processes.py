"""The worker processes that one process has started: begun when they are needed, replaced when they
die, told to end."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from ..effects import WaitEnded
from ..exceptions import PressureError, QueueDoesNotExistError
from ..identity.processes import user
from . import worker
from .call_queue import CallQueue

#: How many workers in a row may be killed before they are ready, until that is not chance any more.
_MOST_KILLED_EARLY = 10

_log = logging.getLogger("pressure_mp")


class WorkerProcess:
    """One worker process, as the process knows it that started it."""

    def __init__(self, process: BaseProcess, wire: connection.Connection) -> None:
        self.process = process
        self.wire = wire
        #: Who it is to the broker; None before it is ready.
        self.incarnation: str | None = None
        #: Why its initializer failed, as soon as it has said so.
        self.failure: str | None = None
        self.is_told = False

    def tell_to_end(self) -> None:
        """It ends when what it has in hand is done."""
        self.is_told = True
        with contextlib.suppress(OSError):  # it has ended
            self.wire.send(worker.STOP)

    def how_it_ended(self) -> str:
        """In words."""
        code = self.process.exitcode or 0
        if code == worker.REMOVED:
            return f"worker process {self.process.pid} ended: its call was removed"
        if code >= 0:
            return f"worker process {self.process.pid} ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"worker process {self.process.pid} was killed by {name}"


class WorkerProcesses:
    """Up to ``size`` worker processes on one queue of calls."""

    def __init__(
        self, queue: CallQueue, size: int, context: BaseContext, setup: worker.Setup
    ) -> None:
        self._queue = queue
        #: How many workers there may be.
        self.size = size
        self._context: Any = context
        self._setup = setup
        self._lock = threading.RLock()
        self._workers: dict[int, WorkerProcess] = {}  # by sentinel
        self._killed_early = 0
        self._is_ending = False
        self._is_left = False
        self._wakes, self._woken = socket.socketpair()
        self._wakes.setblocking(False)
        self._woken.setblocking(False)
        #: Whether a worker has ended since somebody asked.
        self._has_lost_some = False
        #: Why there can be no workers.
        self.broken: str | None = None

    @property
    def processes(self) -> dict[int | None, BaseProcess]:
        """Those that live, by pid."""
        with self._lock:
            return {one.process.pid: one.process for one in self._workers.values()}

    def fill(self, wanted: int) -> None:
        """Start workers, until there are so many, or as many as there may be."""
        with self._lock:
            while len(self._workers) < min(wanted, self.size) and not self._is_ending:
                self._start()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=worker.main, args=(self._queue, self._setup, theirs, user())
        )
        process.start()
        theirs.close()
        self._workers[process.sentinel] = WorkerProcess(process, ours)
        self.wake()

    @property
    def has_lost_some(self) -> bool:
        """Whether a worker has ended since this was asked before."""
        lost, self._has_lost_some = self._has_lost_some, False
        return lost

    def wake(self) -> None:
        """Who waits in :meth:`wait` looks again. May be called anywhere, also by a finalizer."""
        with contextlib.suppress(OSError):  # it is full, or closed: nobody need be woken
            self._wakes.send(b".")

    def wait(self, timeout: float | None = None) -> None:
        """Wait until woken, or something has become of a worker, and see to that. Raises WaitEnded
        in a process that was forked meanwhile."""
        with self._lock:
            members = dict(self._workers)
        starting = {one.wire: one for one in members.values() if one.incarnation is None}
        ready = connection.wait([self._woken, *members, *starting], timeout)
        if self._is_left:
            raise WaitEnded
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                self._woken.recv(4096)
        for wire in ready:
            if wire in starting:
                self._hear(starting[wire])
        for sentinel in ready:
            if sentinel in members:
                self._bury(members[sentinel], sentinel)

    def _hear(self, member: WorkerProcess) -> None:
        """A worker's first message, if it sent one."""
        try:
            what, text = member.wire.recv() if member.wire.poll() else (None, "")
        except (EOFError, OSError):
            return
        if what == worker.READY:
            member.incarnation = text
            self._killed_early = 0
        elif what == worker.FAILED:
            member.failure = text

    def _bury(self, member: WorkerProcess, sentinel: int) -> None:
        """A worker has ended."""
        member.process.join()
        self._has_lost_some = True
        if member.incarnation is None:
            self._hear(member)
        with self._lock:
            self._workers.pop(sentinel, None)
        code = member.process.exitcode
        how = member.how_it_ended()
        if member.incarnation is not None and (code or not member.is_told):
            # A call may end its process as if all were well.
            number = self._give_back(member.incarnation, how)
            if code or number:
                _log.warning("%s; what it was doing is given to another", how)
        elif member.failure is not None:
            # Only now: what it logged to a queue of multiprocessing is there once it has ended.
            self._break(f"the initializer of a worker process failed:\n{member.failure}")
        elif member.incarnation is None and not self._is_ending and self.broken is None:
            self._killed_early += 1
            if code is None or code >= 0:
                self._break(f"{how}, before it was ready")
            elif self._killed_early >= _MOST_KILLED_EARLY:
                self._break(f"{how} before it was ready, as {self._killed_early - 1} before it")
        member.wire.close()

    def _break(self, why: str) -> None:
        if self.broken is None:
            self.broken = why

    def _give_back(self, who: str, how: str) -> int:
        """What a dead worker had in hand goes back to the queue at once; how many calls, as far as
        is known."""
        try:
            return self._queue.give_back(who, how)
        except QueueDoesNotExistError:
            pass  # nor do its calls
        except PressureError as error:
            # Whoever takes calls next finds that it is dead.
            _log.warning("what a worker had could not be given back at once: %s", error)
        return 0

    def kill(self, incarnation: str) -> bool:
        """Kill the worker that the broker knows as this; whether it is one of these."""
        with self._lock:
            for member in self._workers.values():
                if member.incarnation == incarnation:
                    member.process.kill()
                    return True
        return False

    def stop(
        self, grace: float | None = None, is_urgent: Callable[[], bool] = lambda: False
    ) -> int:
        """End all workers: each does what it has in hand first, for ``grace`` seconds at most, None
        is no limit, and not once it ``is_urgent``. The others are killed, and what they had is
        given back; returns how many these are, without those that were not ready yet."""
        end = None if grace is None else time.monotonic() + grace
        self._is_ending = True
        killed: int | None = None
        with self._lock:
            for member in self._workers.values():
                member.tell_to_end()
        while self._workers:
            left = None if end is None else end - time.monotonic()
            if (left is not None and left <= 0) or (is_urgent() and killed is None):
                killed = self._kill_all()
                left = end = None
            self.wait(left)
        return killed or 0

    def _kill_all(self) -> int:
        with self._lock:
            for member in self._workers.values():
                member.process.kill()
            return sum(member.incarnation is not None for member in self._workers.values())

    def leave_to_parent(self) -> None:
        """This process was forked: nothing here hears of the workers."""
        self._is_left = True

    def close(self) -> None:
        """Nobody waits any more."""
        self._wakes.close()
        self._woken.close()
