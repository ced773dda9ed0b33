"""A worker process of a queue of tasks: it runs the handlers that a module registered with it."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from ..exceptions import ArgumentError, PressureError, QueueDoesNotExistError
from ..sync.handles import attachment_of
from ..sync.tasks import overdue
from ..sync.tasks.jobs import resize
from ..sync.tasks.outages import PASSING, PAUSE, Outages
from ..sync.tasks.task import Task
from ..sync.tasks.task_queue import TaskQueue
from .worker import LATE, REMOVED

#: Seconds between two looks whether the process is to end.
_LOOK = 0.2
#: Seconds after a time limit in which a process ends its handler, before it is killed.
_LATER = 5.0
#: Seconds that the module's own handler of SIGTERM has before a process ends that is to end.
_LAST_SECONDS = 5.0

_log = logging.getLogger("pressure_mp")


def load(where: str) -> Any:
    """Import the queue ``MODULE:QUEUE``, a TaskQueue of either world that has handlers. Raises
    ArgumentError, and what the module raises."""
    name, _, path = where.partition(":")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # of a module that it imports
        raise ArgumentError(f"there is no module {name!r}") from error
    try:
        found: Any = functools.reduce(getattr, path.split("."), module)
    except AttributeError as error:
        raise ArgumentError(f"{where!r} names no queue: {error}") from error
    if not isinstance(getattr(found, "sync", found), TaskQueue):
        raise ArgumentError(f"{where!r} is no TaskQueue, but {type(found).__name__}")
    if not found._jobs:
        raise ArgumentError(f"{where!r} has no handler: register one with its worker()")
    at = attachment_of(found)
    if at.is_anonymous or at.address.capabilities.private:
        raise ArgumentError(
            f"{where!r} is a queue that no other process can find: give it a name, and the URL of "
            "a server"
        )
    return found


def opened(found: Any) -> TaskQueue[Any]:
    """Open the queue, and return a handle for threads. Raises what its class raises."""
    if isinstance(found, TaskQueue):
        found.open()
        return found
    asyncio.run(found.open())
    handle: TaskQueue[Any] = found.sync
    return handle


def longest_silence(queue: Any) -> float | None:
    """Return the seconds after which a process of the queue is killed, as a handler keeps it from
    ending that handler; None if a handler may do so for ever."""
    limits = [job.time_limit for job in queue._jobs]
    return None if None in limits else max(limits) + _LATER


class Handlers(NamedTuple):
    """The handlers of a queue of tasks, for one worker process."""

    #: ``MODULE:QUEUE``
    where: str
    #: How many tasks each handler processes at a time; None for what it was registered with.
    concurrency: int | None = None
    #: The process ends after about so many tasks; with None, after none.
    max_tasks: int | None = None

    def prepare(self, is_to_end: Callable[[], bool]) -> None:
        """Import the module here; wait for the broker, if that needs it."""
        outages = Outages(f"a worker of {self.where}")
        while not is_to_end():
            tried = time.monotonic()
            try:
                load(self.where)
            except PASSING as error:
                outages.failed(error, tried)
                time.sleep(PAUSE)
            else:
                outages.answered()
                return

    def serve(self, is_to_end: Callable[[], bool]) -> None:
        """Run the handlers in a thread of their own, whose run no signal ends: the starter hears
        them. Raises what ended the run."""
        if is_to_end():
            return
        queue = load(self.where)
        if self.concurrency is not None:
            resize(queue, self.concurrency)
        run = _LoopRun if inspect.iscoroutinefunction(type(queue).run) else _ThreadRun
        running = run(queue, {"grace": None, "max_tasks": self.max_tasks})
        overdue.end_of_process = end = _EndOfProcess(self.where, running.tell)
        running.start()
        while running.is_alive():
            running.join(_LOOK)
            end.carry_out()
            if running.is_responsive and is_to_end():
                running.tell()
        if running.error is not None:
            raise running.error


class _EndOfProcess:
    """See :class:`~..sync.tasks.overdue.EndOfProcess`. The starter gives back the tasks of other
    handlers."""

    def __init__(self, where: str, stop_taking: Callable[[], object]) -> None:
        self._where, self._stop_taking = where, stop_taking
        self._exit_code: int | None = None
        self.leave: Callable[[], object] = int

    def fail(self, task: Task[Any], error: TimeoutError) -> None:
        self._stop_taking()
        _log.error("task %r failed, delivery %d: %s", task.id, task.deliveries, error)
        try:
            task.fail(error)
        except PressureError as problem:  # the starter, or the lease, gives this one back too
            _log.warning("task %r could not be told that it failed: %s", task.id, problem)
        finally:
            self._end(LATE)

    def cancel(self, task: Task[Any]) -> None:
        self._stop_taking()
        try:
            _log.info("task %r of %s was removed, and its process ends", task.id, self._where)
        finally:
            self._end(REMOVED)

    def _end(self, exit_code: int) -> None:
        """Have the main thread end this process; end it from another one if that takes too long."""
        self._exit_code = exit_code
        last = threading.Timer(_LAST_SECONDS, os._exit, [exit_code])
        last.daemon = True
        last.start()

    def carry_out(self) -> None:
        """End this process if it is to end, after the module's own handler of SIGTERM. For the main
        thread, where Python runs such handlers."""
        if self._exit_code is not None:
            try:
                self.leave()
                signal.raise_signal(signal.SIGTERM)
            finally:
                os._exit(self._exit_code)


class _ThreadRun(threading.Thread):
    """A run of a TaskQueue."""

    def __init__(self, queue: Any, options: dict[str, Any]) -> None:
        super().__init__(name="pressure_mp run", daemon=True)
        self.queue, self.options = queue, options
        self.error: BaseException | None = None
        self._stop_run = threading.Event()

    @property
    def is_responsive(self) -> bool:
        """Whether its handlers can be ended in this process, when they take too long."""
        return True

    def run(self) -> None:
        try:
            with suppress(QueueDoesNotExistError):
                self.run_handlers()
        except BaseException as error:
            self.error = error

    def run_handlers(self) -> None:
        self.queue.run(stop=self._stop_run, **self.options)

    def tell(self) -> None:
        """Tell it to finish the tasks in hand, and to end."""
        self._stop_run.set()


class _LoopRun(_ThreadRun):
    """A run of an aio.TaskQueue, in an event loop of its own."""

    def __init__(self, queue: Any, options: dict[str, Any]) -> None:
        super().__init__(queue, options)
        self._tell_loop: Callable[[], object] = int
        self._turned = time.monotonic()

    @property
    def is_responsive(self) -> bool:
        return time.monotonic() - self._turned < 1

    def run_handlers(self) -> None:
        asyncio.run(self._run_in_loop())

    async def _run_in_loop(self) -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        self._tell_loop = functools.partial(loop.call_soon_threadsafe, stop.set)
        if self._stop_run.is_set():
            stop.set()
        self._turn(loop)
        await self.queue.run(stop=stop, **self.options)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Note that the loop still makes its calls in time."""
        self._turned = time.monotonic()
        loop.call_later(_LOOK, self._turn, loop)

    def tell(self) -> None:
        super().tell()
        with suppress(RuntimeError):  # the loop has ended
            self._tell_loop()
