"""The thread of an executor that starts workers when there are calls, and ends everything."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

from .. import lifecycle
from ..exceptions import PressureError, QueueDoesNotExistError
from .call_queue import CallQueue
from .client import Client
from .worker_processes import WorkerProcesses

_INTERPRETER = "interpreter shutdown"
_all: weakref.WeakSet[Manager] = weakref.WeakSet()
_interpreter_ends = False

_log = logging.getLogger("pressure_mp")


class Manager:
    """The parts of an executor, without the executor itself, which may become garbage."""

    def __init__(
        self, queue: CallQueue, client: Client, workers: WorkerProcesses, is_anonymous: bool
    ) -> None:
        self._queue = queue
        self.client = client
        self.workers = workers
        self._is_anonymous = is_anonymous
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        client.tell = workers.wake
        if _interpreter_ends:
            client.close(_INTERPRETER)
        _all.add(self)

    def start(self, wanted: int) -> None:
        """Start workers, and listen for the outcomes of calls."""
        with self._starting:
            if self._thread is not None:
                return
            self.client.check_open()
            self.workers.fill(wanted)  # before there are threads, which a fork does not copy
            self.client.start()
            self._thread = threading.Thread(
                target=self._run, name=f"{self._queue.name} workers", daemon=True
            )
            self._thread.start()

    def leave_to_parent(self) -> None:
        """Leave the executor to the parent, as this process was forked: nothing here ends it."""
        self._starting = threading.Lock()  # a thread of the parent may have had the other
        self.client.leave_to_parent()
        self.workers.leave_to_parent()

    def close(self, when: str = "shutdown") -> None:
        """Accept no more calls; accepted calls will be done."""
        if self.client.is_left:
            return
        self.client.close(when)
        with self._starting:
            if self._thread is not None:
                self.workers.wake()
            elif self.workers.processes:  # it has them, but could not begin to listen
                self._begin_end()
            else:
                self.workers.close()  # it never had workers

    def join(self) -> None:
        """Wait until all calls are done, and all threads and workers have ended."""
        if self.client.is_left:
            return
        with self._starting:
            thread = self._thread or self._begin_end()
        thread.join()

    def _begin_end(self) -> threading.Thread:
        self._thread = threading.Thread(target=self._end, name=f"{self._queue.name} end")
        self._thread.start()
        return self._thread

    def leave(self) -> None:
        """Leave the executor as the interpreter ends. With workers here, wait until all calls are
        done; else the calls stay at the broker, for workers elsewhere."""
        if self.workers.size:
            self.join()
        else:
            self.client.end()

    def _run(self) -> None:
        try:
            while not self.client.is_over:
                self._check()
        except Exception as error:  # such as: no more processes can be started
            if not self.client.is_left:
                _log.exception("executor %r cannot have workers", self._queue.name)
                self.client.break_off(f"it cannot have workers: {error!r}")
        if not self.client.is_left:
            self._end()

    def _check(self) -> None:
        client, workers = self.client, self.workers
        workers.wait()
        if workers.broken is not None and client.broken is None:
            client.break_off(workers.broken)
        if client.broken is None:
            workers.fill(client.pending)

    def _end(self) -> None:
        self.client.end()
        if self._is_anonymous:
            self._say(self._queue.shutdown)  # its workers see that at once
        self.workers.stop()
        if self._is_anonymous:
            self._say(self._queue.delete)
        self.workers.close()
        self._queue.close()

    def _say(self, verb: Callable[[], None]) -> None:
        try:
            verb()
        except QueueDoesNotExistError:
            pass
        except PressureError as error:  # the next program on this host clears up
            _log.warning("executor %r leaves its queue behind: %s", self._queue.name, error)


def _end_all() -> None:
    """Leave all executors as the interpreter ends."""
    global _interpreter_ends
    _interpreter_ends = True
    managers = list(_all)
    for manager in managers:
        manager.close(_INTERPRETER)
    for manager in managers:
        manager.leave()


def _after_fork_in_child() -> None:
    """Leave the executors to the parent; this process has none of their threads."""
    for manager in list(_all):
        manager.leave_to_parent()
    _all.clear()


lifecycle.register("leave executors", _after_fork_in_child)
lifecycle.register("end executors", _end_all)
