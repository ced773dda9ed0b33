"""The worker processes that one process has started: it starts them when they are needed, replaces
them when they die, and tells them to end."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from ..background.takers import Takers
from ..effects import WaitEnded
from ..exceptions import PressureError, QueueDoesNotExistError
from ..identity.processes import user
from ..sync.handles import attachment_of
from ..sync.tasks.task_queue import TaskQueue
from . import worker

#: How many workers in a row may be killed before they are ready; after more, no workers are
#: started.
_MOST_KILLED_EARLY = 10
#: Seconds after which a stop looks for silent workers.
_LOOK = 1.0

_log = logging.getLogger("pressure_mp")


class WorkerProcess:
    """One worker process, seen from its starter."""

    def __init__(self, process: BaseProcess, wire: connection.Connection, asked: Any) -> None:
        self.process = process
        self.wire = wire
        #: In shared memory: when it last asked whether it is to end; None if that is not needed.
        self.asked = asked
        self.was_silent = False
        #: Its name at the broker; None before it is ready.
        self.incarnation: str | None = None
        #: Why its initializer failed, once it has reported so.
        self.failure: str | None = None
        self.is_told = False

    def tell_to_end(self) -> None:
        """Tell the worker to end after the tasks that it has in hand."""
        self.is_told = True
        with contextlib.suppress(OSError):  # it has ended
            self.wire.send(worker.STOP)

    def how_it_ended(self) -> str:
        """Say in words how it ended."""
        code = self.process.exitcode or 0
        if code == worker.REMOVED:
            return f"worker process {self.process.pid} ended: its call or task was removed"
        if code == worker.LATE or self.was_silent:
            return f"worker process {self.process.pid} ended: a handler exceeded its time_limit"
        if code >= 0:
            return f"worker process {self.process.pid} ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"worker process {self.process.pid} was killed by {name}"


class WorkerProcesses:
    """Up to ``size`` worker processes on one queue of tasks."""

    def __init__(
        self,
        queue: TaskQueue[Any],
        service: worker.Service,
        size: int,
        context: BaseContext,
        setup: worker.Setup,
    ) -> None:
        self._queue = queue
        self._service = service
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
        #: Whether a worker has ended since the last question.
        self._has_lost_some = False
        #: The reason why there can be no workers.
        self.broken: str | None = None

    @property
    def processes(self) -> dict[int | None, BaseProcess]:
        """The living workers, by pid."""
        with self._lock:
            return {one.process.pid: one.process for one in self._workers.values()}

    def fill(self, wanted: int) -> None:
        """Start workers, until there are ``wanted``, or as many as there may be."""
        with self._lock:
            while len(self._workers) < min(wanted, self.size) and not self._is_ending:
                self._start()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        is_watched = self._setup.longest_silence is not None
        asked = self._context.RawValue("d", 0.0) if is_watched else None
        process = self._context.Process(
            target=worker.main, args=(self._service, self._setup, theirs, user(), asked)
        )
        process.start()
        theirs.close()
        self._workers[_end_of(process)] = WorkerProcess(process, ours, asked)
        self.wake()

    @property
    def has_lost_some(self) -> bool:
        """Tell whether a worker has ended since the last call."""
        lost, self._has_lost_some = self._has_lost_some, False
        return lost

    def wake(self) -> None:
        """Have a thread in :meth:`wait` look again. May be called anywhere, also by a finalizer."""
        with contextlib.suppress(OSError):  # it is full, or closed: no thread need be woken
            self._wakes.send(b".")

    def wait(self, timeout: float | None = None) -> None:
        """Wait until woken, or until a worker is ready or has ended, and handle that. Raises
        WaitEnded in a process that was forked meanwhile."""
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
        """Read a worker's first message, if it sent one."""
        try:
            what, text = member.wire.recv() if member.wire.poll() else (None, "")
        except (EOFError, OSError):
            return
        if what == worker.READY:
            member.incarnation = text
            self._killed_early = 0
            self._here.look_after(text)
        elif what == worker.FAILED:
            member.failure = text

    @property
    def _here(self) -> Takers:
        """This process in the queue."""
        here: Takers = attachment_of(self._queue).here
        return here

    def _bury(self, member: WorkerProcess, sentinel: int) -> None:
        """Handle the end of a worker."""
        member.process.join()
        self._has_lost_some = True
        if member.incarnation is None:
            self._hear(member)
        with self._lock:
            self._workers.pop(sentinel, None)
        if member.incarnation is not None:
            self._here.leave_alone(member.incarnation)
        code = member.process.exitcode
        how = member.how_it_ended()
        if member.incarnation is not None and (code or not member.is_told):
            # A call, or a handler, may end its process as if all were well.
            number = self._give_back(member.incarnation, how)
            if code or number:
                _log.warning("%s; its tasks are given to another", how)
        elif member.failure is not None:
            # Not before its end: then all that it logged to a queue of multiprocessing is there.
            self._break(f"the initializer of a worker process failed:\n{member.failure}")
        elif member.incarnation is None and not self._is_ending and self.broken is None:
            self._killed_early += 1
            if code is None or code >= 0:
                self._break(f"{how}, before it was ready")
            elif self._killed_early >= _MOST_KILLED_EARLY:
                self._break(f"{how} before it was ready, as {self._killed_early - 1} before it")
        member.wire.close()
        if sentinel != member.process.sentinel:
            os.close(sentinel)

    def _break(self, why: str) -> None:
        if self.broken is None:
            self.broken = why

    def _give_back(self, worker: str, how: str) -> int:
        """Requeue the tasks of a dead worker at once; return how many, as far as is known."""
        try:
            return self._here.give_back(worker, how)
        except QueueDoesNotExistError:
            pass  # nor do its tasks
        except PressureError as error:
            # The next process that takes tasks finds that it is dead.
            _log.warning("the tasks of a worker could not be given back at once: %s", error)
        return 0

    def kill_silent(self) -> None:
        """Kill the workers that have not asked for too long whether they are to end: a handler
        keeps all their threads from running, or their event loop."""
        longest, now = self._setup.longest_silence, time.monotonic()
        if longest is None:
            return
        with self._lock:
            ready = [one for one in self._workers.values() if one.incarnation is not None]
            for member in [one for one in ready if now - one.asked.value > longest]:
                member.was_silent = True
                member.process.kill()

    def kill(self, incarnation: str) -> bool:
        """Kill the worker with this incarnation; return whether it is one of these."""
        with self._lock:
            named = [one for one in self._workers.values() if one.incarnation == incarnation]
            for member in named:
                member.process.kill()
            return bool(named)

    def stop(
        self, grace: float | None = None, is_urgent: Callable[[], bool] = lambda: False
    ) -> int:
        """End all workers: each first does the tasks that it has in hand, for ``grace`` seconds at
        most, None is no limit, and not once it ``is_urgent``. The others are killed, and their
        tasks are given back; returns how many these are, without workers that were not ready
        yet."""
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
            self.wait(_LOOK if left is None else min(left, _LOOK))
            self.kill_silent()
        return killed or 0

    def _kill_all(self) -> int:
        with self._lock:
            for member in self._workers.values():
                member.process.kill()
            return sum(member.incarnation is not None for member in self._workers.values())

    def leave_to_parent(self) -> None:
        """Leave the workers to the parent, as this process was forked."""
        self._is_left = True

    def close(self) -> None:
        """Close the pipes: no thread waits any more."""
        self._wakes.close()
        self._woken.close()


def _end_of(process: BaseProcess) -> int:
    """Return a file that can be read when the process has ended. The sentinel of multiprocessing is
    a pipe, which children that the process forks keep open: it is for systems without a pidfd."""
    try:
        return os.pidfd_open(process.pid or 0)
    except (AttributeError, OSError):
        return process.sentinel
