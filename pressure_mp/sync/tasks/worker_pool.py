"""A worker pool: threads that take tasks, run a handler on each, and say what became of it."""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ... import interrupts
from ...drivers import waits_end_when
from ...effects import WaitEnded
from ...exceptions import (
    BrokerUnavailable,
    DecodingError,
    Empty,
    EncodingError,
    PressureError,
    ShutDown,
    TaskError,
    TaskNotFound,
)
from ...exhaustive import assert_never
from ...handles.task_verbs import AnyTask
from ...operations.task_taking import Delivery
from ...states import TAKEN
from .dispatch import Acknowledge, Begin, Dispatch, Rest, Take, Wake
from .jobs import Handler, Job
from .outages import PAUSE, Outages
from .overdue import Work, Worker
from .task import Task

#: Seconds between two looks at the event that stops a run.
_LOOK = 0.5

#: The error of a task that is given back.
UNFINISHED = "its worker ended before it was finished"

_log = logging.getLogger("pressure_mp")

T = TypeVar("T")

#: Acknowledges tasks; returns the errors of those that cannot be acknowledged, by their place.
Acknowledging = Callable[[list[Task[Any]]], dict[int, PressureError]]


class WorkerPool:
    """The threads of one run."""

    def __init__(
        self,
        name: str,
        worker: Worker,
        take: Callable[..., Delivery[Task[Any]]],
        acknowledge: Acknowledging,
        takes_at_a_time: int,
        jobs: Sequence[Job],
        grace: float | None,
        stop: threading.Event,
        outages: Outages,
        max_tasks: float,
    ) -> None:
        self._name = name
        self._worker = worker
        self._take_tasks = partial(take, worker.number)
        self._acknowledge_tasks = acknowledge
        self._takes_at_a_time = takes_at_a_time
        self._jobs = jobs
        self._grace = grace
        self._stop = stop
        self._outages = outages
        self._left = max_tasks  # to handle before the run ends
        self._ending = threading.Event()
        self._is_told = False  # to end: by a signal, or after max_tasks
        # Of the threads that ended (None), and signals. A signal's handler may put into it, even
        # while the thread that it interrupts gets from it.
        self._news: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._handled: dict[int, Work[Task[Any]]] = {}  # by thread
        self._lock = threading.Lock()  # of all books; the run itself takes it only at its end
        self._books: list[Dispatch[Task[Any]]] = []
        self._bells: list[queue.SimpleQueue[None]] = []
        self._until_the_end = waits_end_when(self._is_ending)
        self._error: BaseException | None = None

    def run(self) -> None:
        """Work until stopped; raises what ended a thread."""
        threads = [thread for job in self._jobs for thread in self._threads_of(job)]
        with self._signals():
            try:
                for thread in threads:
                    interrupts.start(thread)
                self._wait_for_threads(len(threads))
                self._give_back()
            except BaseException:  # the run no longer waits for the threads: they finish and end
                self._is_told = True
                self._ring()
                raise
        if self._error is not None:
            raise self._error

    def _threads_of(self, job: Job) -> Iterator[threading.Thread]:
        """Make the threads of a handler, which share a book."""
        book: Dispatch[Task[Any]] = Dispatch(job.concurrency, self._takes_at_a_time, job.prefetch)
        self._books.append(book)
        for _ in range(job.concurrency):
            bell: queue.SimpleQueue[None] = queue.SimpleQueue()
            self._bells.append(bell)
            args = job, book, bell
            yield threading.Thread(
                target=self._work, args=args, name=f"{self._name} worker", daemon=True
            )

    def _ring(self) -> None:
        """Wake all threads that wait for a step."""
        for bell in self._bells:
            bell.put(None)

    def _wait_for_threads(self, working: int) -> None:
        """Wait until all threads have ended, or the tasks in hand have no more time."""
        deadline, has_rung = None, False
        while working and (deadline is None or time.monotonic() < deadline):
            for work in list(self._handled.values()):
                work.look()
            if self._is_ending() and not has_rung:
                has_rung = True
                self._ring()
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
                    _log.info("signal %d: %r takes no more tasks", news, self._name)
            if deadline is None and self._grace is not None and self._is_ending():
                deadline = time.monotonic() + self._grace

    def _is_ending(self) -> bool:
        return self._is_told or self._ending.is_set() or self._stop.is_set()

    def _give_back(self) -> None:
        """Release the tasks whose handlers go on: their next call for the task fails; and the tasks
        that no thread has begun."""
        left = [work.task for work in list(self._handled.values())]
        for book in self._books:
            with self._lock:
                left += book.leave_ready()
        self._release(left)

    def _release(self, tasks: list[Task[Any]]) -> None:
        """Release the tasks that this process has and does not finish."""
        for task in tasks:
            if task.state != TAKEN:
                continue
            _log.warning("task %r of %r is given back: %s", task.id, self._name, UNFINISHED)
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

    def _work(self, job: Job, book: Dispatch[Task[Any]], bell: queue.SimpleQueue[None]) -> None:
        """Do the steps of one thread, until the run ends."""
        wake = partial(bell.put, None)
        try:
            while True:
                with self._lock:
                    step = book.next(wake, self._is_ending(), time.monotonic())
                match step:
                    case Begin():
                        is_done = self._process(step, job)
                        with self._lock:
                            book.finished(step.task) if is_done else book.drop(step.task)
                            self._left -= 1
                            self._is_told = self._is_told or self._left <= 0
                        del step  # the task is not kept while this thread waits
                    case Take():
                        self._take(job, book, step, wake)
                    case Acknowledge():
                        self._acknowledge(book, step)
                    case Rest.WAIT:
                        bell.get()
                    case Rest.END:
                        return
                    case _:
                        assert_never(step)
        except BaseException as error:
            self._error = self._error or error
            self._ending.set()
        finally:
            self._news.put(None)

    def _persist(self, call: Callable[[], T]) -> T:
        """Make a call again until the broker answers. When the run ends, raise BrokerUnavailable
        instead."""
        while True:
            tried = time.monotonic()
            try:
                found = call()
            except BrokerUnavailable as error:
                if self._is_ending():
                    raise
                self._outages.failed(error, tried)
                time.sleep(PAUSE)
            else:
                self._outages.answered()
                return found

    def _take(self, job: Job, book: Dispatch[Task[Any]], step: Take[Task[Any]], wake: Wake) -> None:
        """Acknowledge what is done, and take the next tasks: in one round trip, if there are
        any."""
        try:
            tasks = self._take_after(job, book, step)
        except (WaitEnded, Empty):
            tasks = []
        except BrokerUnavailable:
            if not self._is_ending() or not_acknowledged(step.done):
                raise
            tasks = []
        except ShutDown:  # of this queue; or of another one, into which a handler had put
            self._release(step.done)
            with self._lock:
                book.shut(step, wake)
            return
        with self._lock:
            book.took(step, tasks, time.monotonic())

    def _take_after(
        self, job: Job, book: Dispatch[Task[Any]], step: Take[Task[Any]]
    ) -> list[Task[Any]]:
        """Take tasks after acknowledging what is done."""

        def note(is_waiting: bool) -> None:
            self._outages.answered()
            with self._lock:
                book.waits(is_waiting)

        how = (None, note) if step.waits else (0, None)

        def take() -> tuple[list[Task[Any]], Delivery[Task[Any]]]:
            done = not_acknowledged(step.done)
            return done, self._take_tasks(step.number, done, *how, **job.taking)

        try:
            with self._until_the_end:
                done, taken = self._persist(take)
        except PressureError as error:
            if not is_of_a_buried_task(error):
                raise
            say_buried(self._name, error)
            return []
        tasks, problem, refused = taken
        if problem is not None:
            say_buried(self._name, problem)
        for task, unsaid in to_bury(done, refused):
            self._bury(task, unsaid)
        return tasks

    def _acknowledge(self, book: Dispatch[Task[Any]], step: Acknowledge[Task[Any]]) -> None:
        try:
            self._settle(step.done)
        except ShutDown:
            self._release(step.done)
        finally:
            with self._lock:
                book.acknowledged(len(step.done))

    def _settle(self, done: list[Task[Any]]) -> None:
        """Acknowledge tasks, in one call."""
        left, problems = self._persist(lambda: self._acknowledge_left(done))
        for task, error in to_bury(left, problems):
            self._bury(task, error)

    def _acknowledge_left(
        self, done: list[Task[Any]]
    ) -> tuple[list[Task[Any]], dict[int, PressureError]]:
        left = not_acknowledged(done)
        return left, self._acknowledge_tasks(left)

    def _bury(self, done: Task[Any], error: EncodingError) -> None:
        """Bury a task whose result cannot be encoded, now or later."""
        say_unsaid(done.id, self._name, error)
        try:
            self._persist(partial(done.bury, error=error))
        except TaskError as late:
            say_late(late)

    def _process(self, step: Begin[Task[Any]], job: Job) -> bool:
        """Run the handler; returns whether the task is to be acknowledged."""
        me, task, is_done = threading.get_ident(), step.task, False
        work = Work(self._name, self._worker, task, step.taken, job.time_limit)
        work.ends_with_process(task)
        self._handled[me] = work
        try:
            if self._is_ending():
                task.release()
            elif work.may_begin():
                is_done = self._handle(task, job.handler)
        except TaskError as error:
            say_late(error)
        work.end()
        del self._handled[me]
        return is_done

    def _handle(self, task: Task[Any], handler: Handler) -> bool:
        """Run the handler, and say what became of the task if that failed; returns whether it is to
        be acknowledged."""
        try:
            with task.processing():
                task.have_returned(handler(task))
        except BaseException as error:
            _log.exception(
                "task %r of %r failed, delivery %d", task.id, self._name, task.deliveries
            )
            if task.state == TAKEN:
                self._persist(partial(task.fail, error))
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


def is_of_a_buried_task(error: PressureError) -> bool:
    """Whether a take raised it for a task that cannot be used."""
    from ...authentication import AuthenticationError

    return isinstance(error, (AuthenticationError, DecodingError))


def not_acknowledged(done: Sequence[AnyTask]) -> list[AnyTask]:
    """Return the tasks that this process may still have: the calls before may have acknowledged
    some, before a call failed."""
    return [task for task in done if task.state == TAKEN]


def to_bury(
    done: Sequence[AnyTask], problems: Mapping[int, PressureError]
) -> Iterator[tuple[AnyTask, EncodingError]]:
    """Yield the tasks whose results cannot be encoded; log which tasks were acknowledged too late.
    Raises any other error."""
    for place, error in problems.items():
        if isinstance(error, EncodingError):
            yield done[place], error
        elif isinstance(error, TaskError):
            say_late(error)
        else:
            raise error


def say_buried(queue: str, error: PressureError) -> None:
    """Log that a task was buried since it cannot be decoded."""
    _log.error("a task of %r was buried", queue, exc_info=error)


def say_late(error: TaskError) -> None:
    """Log what a handler that came too late is told."""
    if isinstance(error, TaskNotFound):
        _log.warning("a handler worked on a task that was removed meanwhile: %s", error)
    else:
        _log.warning("a handler came too late, and its task may run again: %s", error)


def say_unsaid(id: int | str, queue: str, error: EncodingError) -> None:
    """Log that a task is buried since its result cannot be encoded."""
    _log.error("task %r of %r is buried, its result cannot be kept", id, queue, exc_info=error)


def _until_look(deadline: float | None) -> float:
    if deadline is None:
        return _LOOK
    return min(_LOOK, max(deadline - time.monotonic(), 0.0))
