"""A worker pool: threads that take tasks, run a handler on each, and say what became of it."""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, TypeVar

from ... import interrupts
from ...drivers import waits_end_when
from ...effects import WaitEnded
from ...exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DecodingError,
    EncodingError,
    PressureError,
    ShutDown,
    TaskError,
)
from ...handles.base_task import Backoff, check_on_error
from ...numeric import integer
from ...states import TAKEN
from .overdue import Work
from .task import Task

#: Runs on a task. Its value is the task's result, if the result is to be kept.
Handler = Callable[[Any], object]

#: Seconds between two looks at the event that stops a run.
_LOOK = 0.5

#: The error of a task that is given back.
UNFINISHED = "its worker ended before it was finished"

_log = logging.getLogger("pressure_mp")


@dataclass(frozen=True)
class Job:
    """A handler, and how its threads take tasks."""

    handler: Handler
    concurrency: int = 1
    tube: str | None = None
    ttr: float | None = None
    on_error: Literal["release", "bury"] = "release"
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        if not callable(self.handler):
            raise ArgumentTypeError(
                f"a handler is called with a task; {type(self.handler).__name__} cannot be called"
            )
        integer("concurrency", self.concurrency, 1)
        check_on_error(self.on_error, self.backoff)


class Source(Protocol):
    """Where tasks come from."""

    @property
    def name(self) -> str: ...

    def take(
        self,
        *,
        ttr: float | None,
        tube: str | None,
        on_error: Literal["release", "bury"],
        backoff: Backoff | None,
        ack: Task[Any] | None,
    ) -> Task[Any]: ...


class WorkerPool:
    """The threads of one run."""

    def __init__(
        self, source: Source, jobs: Sequence[Job], grace: float | None, stop: threading.Event
    ) -> None:
        self._source = source
        self._jobs = jobs
        self._grace = grace
        self._stop = stop
        self._ending = threading.Event()
        self._is_told = False  # to end, by a signal
        self._is_over = False  # the run waits for the tasks in hand no longer
        # Of the threads that ended (None), and signals. A signal's handler may put into it, even
        # while the thread that it interrupts gets from it.
        self._news: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._in_hand: dict[int, Work[Task[Any]]] = {}  # by thread
        self._until_the_end = waits_end_when(self._is_ending)
        self._error: BaseException | None = None

    def run(self) -> None:
        """Work until stopped; raises what ended a thread."""
        threads = [
            threading.Thread(
                target=self._work, args=(job,), name=f"{self._source.name} worker", daemon=True
            )
            for job in self._jobs
            for _ in range(job.concurrency)
        ]
        with self._signals():
            try:
                for thread in threads:
                    interrupts.start(thread)
                self._wait_for_threads(len(threads))
                self._give_back()
            except BaseException:  # the run no longer waits for the threads: they finish and end
                self._is_told = True
                raise
        if self._error is not None:
            raise self._error

    def _wait_for_threads(self, working: int) -> None:
        """Wait until all threads have ended, or the tasks in hand have no more time."""
        deadline = None
        while working and (deadline is None or time.monotonic() < deadline):
            for work in list(self._in_hand.values()):
                work.look()
            try:
                news = self._news.get(timeout=_until_look(deadline))
            except queue.Empty:
                pass
            else:
                if news is None:
                    working -= 1
                elif self._ending.is_set() or self._stop.is_set():  # the second signal
                    return
                else:
                    self._ending.set()
                    _log.info("signal %d: %r takes no more tasks", news, self._source.name)
            if deadline is None and self._grace is not None and self._is_ending():
                deadline = time.monotonic() + self._grace

    def _is_ending(self) -> bool:
        return self._is_told or self._ending.is_set() or self._stop.is_set()

    def _give_back(self) -> None:
        """Release the tasks in hand. Their handlers go on; their next call for the task fails."""
        self._is_over = True
        for task in [work.task for work in self._in_hand.values()]:
            if task.state != TAKEN:  # it was acknowledged, and its thread waits for the next one
                continue
            _log.warning("task %r of %r is given back: %s", task.id, self._source.name, UNFINISHED)
            try:
                task.release(error=UNFINISHED)
            except TaskError:
                pass  # it was finished at this moment
            except PressureError:
                _log.exception("task %r could not be released", task.id)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the run, where this thread may handle them."""
        is_main = threading.current_thread() is threading.main_thread()
        previous = _handlers() if is_main else {}
        try:
            _set_handlers(dict.fromkeys(previous, self._hear))
            yield
        finally:
            try:
                _set_handlers(previous)
            except BaseException:  # of a handler that is set again
                _set_handlers(previous)
                raise

    def _hear(self, number: int, frame: object) -> None:
        self._is_told = True  # an Event may not be set here: it has a lock
        self._news.put(number)

    def _work(self, job: Job) -> None:
        """Take and process tasks. One round trip acknowledges a task and takes the next."""
        done = None
        try:
            while not self._is_ending():
                task = self._take(job, done)
                done = self._process(task, job.handler) if task is not None else None
            if done is not None:
                self._finish(done)
        except (WaitEnded, ShutDown):
            pass
        except BaseException as error:
            self._error = self._error or error
            self._ending.set()
        finally:
            self._news.put(None)

    def _take(self, job: Job, done: Task[Any] | None) -> Task[Any] | None:
        """Take the next task. None if it could not be decoded, or if this process no longer had
        the task that is ``done``."""
        me = threading.get_ident()
        try:
            with self._until_the_end:
                return self._source.take(
                    ttr=job.ttr, tube=job.tube, on_error=job.on_error, backoff=job.backoff, ack=done
                )
        except TaskError as error:
            say_late(error)
            del self._in_hand[me]
        except EncodingError as error:
            assert done is not None
            self._bury(done, error)  # or it was no longer ours
            del self._in_hand[me]
            done = None
        except PressureError as error:
            if not is_of_a_buried_task(error):
                raise
            _log.exception("a task of %r was buried", self._source.name)
        finally:
            if done is not None and done.state != TAKEN:
                del self._in_hand[me]
        return None

    def _finish(self, done: Task[Any]) -> None:
        """Acknowledge the last task."""
        try:
            done.ack()
        except TaskError as error:
            say_late(error)
        except EncodingError as error:
            self._bury(done, error)

    def _bury(self, done: Task[Any], error: EncodingError) -> None:
        """Bury a task whose result cannot be encoded, now or later."""
        say_unsaid(done.id, self._source.name, error)
        try:
            done.bury(error=error)
        except TaskError as late:
            say_late(late)

    def _process(self, task: Task[Any], handler: Handler) -> Task[Any] | None:
        """Run the handler; returns the task when it is to be acknowledged, in hand until then."""
        me = threading.get_ident()
        self._in_hand[me] = Work(self._source.name, task)
        try:
            if self._is_over:
                task.release()
            elif self._handle(task, handler):
                return task
        except TaskError as error:
            say_late(error)
        del self._in_hand[me]
        return None

    def _handle(self, task: Task[Any], handler: Handler) -> bool:
        """Run the handler, and say what became of the task if that failed; returns whether it is to
        be acknowledged."""
        try:
            with task.processing():
                task.have_returned(handler(task))
        except BaseException as error:
            _log.exception(
                "task %r of %r failed, delivery %d", task.id, self._source.name, task.deliveries
            )
            if task.state == TAKEN:
                task.fail(error)
            if not isinstance(error, Exception):
                raise
            return False
        return not task.is_settled


def _handlers() -> dict[signal.Signals, Any]:
    """Return the handlers of the signals that end a run, where they are not ignored."""
    found = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    return {number: handler for number, handler in found.items() if handler != signal.SIG_IGN}


def _set_handlers(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


AnyJob = TypeVar("AnyJob", bound=Job)


def choose(
    kind: type[AnyJob],
    handler: Handler | None,
    options: tuple[Any, ...],
    registered: Sequence[AnyJob],
) -> Sequence[AnyJob]:
    """The jobs of a run: the handler that it was given, with these options, else those that were
    registered, which have their own. Raises ArgumentError, ArgumentTypeError."""
    if handler is not None:
        return [kind(handler, *options)]
    if options != tuple(field.default for field in fields(kind)[1:]):
        raise ArgumentError("these options are a handler's: give them to worker()")
    if not registered:
        raise ArgumentError("there is no handler: give one, or register it with worker()")
    return registered


def check_grace(grace: float | None) -> None:
    """Raises ArgumentError."""
    if grace is not None and not grace >= 0:
        raise ArgumentError(f"grace is 0 or more seconds, or None; not {grace!r}")


def is_of_a_buried_task(error: PressureError) -> bool:
    """Whether a take raised it for a task that cannot be used."""
    from ...authentication import AuthenticationError

    return isinstance(error, (AuthenticationError, DecodingError))


def say_late(error: TaskError) -> None:
    """Log what a handler that came too late is told."""
    _log.warning("a handler came too late, and its task may run again: %s", error)


def say_unsaid(id: int | str, queue: str, error: EncodingError) -> None:
    """Log that a task is buried since its result cannot be encoded."""
    _log.error("task %r of %r is buried, its result cannot be kept", id, queue, exc_info=error)


def _until_look(deadline: float | None) -> float:
    if deadline is None:
        return _LOOK
    return min(_LOOK, max(deadline - time.monotonic(), 0.0))
