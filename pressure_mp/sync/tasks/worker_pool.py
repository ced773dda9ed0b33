"""A worker pool: threads that take tasks, run a handler on each, and say what became of it."""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from ... import interrupts
from ...drivers import waits_end_when
from ...effects import WaitEnded
from ...engines.blocking_coroutines import finish
from ...exceptions import Empty, ShutDown, TaskError
from ...exhaustive import assert_never
from ...states import TAKEN
from . import overdue
from .dispatch import Acknowledge, Begin, Dispatch, Rest, Step, Take, Wake, tasks_of
from .jobs import Handler, Job
from .outages import PASSING, PAUSE
from .overdue import Work
from .pool_calls import Calling, PoolCalls, Run, not_acknowledged, say_late
from .task import Task

#: Seconds between two looks at the event that stops a run.
_LOOK = 0.5

_log = logging.getLogger("pressure_mp")


class WorkerPool(PoolCalls[Task[Any]]):
    """The threads of one run."""

    def __init__(self, run: Run[Job], stop: threading.Event) -> None:
        self._run = run
        self._name = run.name
        self._stop = stop
        self._left = run.max_tasks
        self._ending = threading.Event()
        self._is_told = False  # to end: by a signal, or after max_tasks
        # Of the threads that ended (None), and signals. A signal's handler may put into it, even
        # while the thread that it interrupts gets from it.
        self._news: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._handled: dict[int, Work[Task[Any]]] = {}  # by thread
        self._lock = threading.Lock()  # of all books; the run itself takes it only at its end
        self._books: list[Dispatch[Task[Any]]] = []
        #: Held while tasks are given back that no thread has begun.
        self._leaving = threading.Lock()
        self._bells: list[queue.SimpleQueue[None]] = []
        self._until_the_end = waits_end_when(lambda: self._is_ending)
        self._error: BaseException | None = None

    def run(self) -> None:
        """Work until stopped; raises what ended a thread."""
        overdue.leave_by(self._leave_ready)
        threads = [thread for job in self._run.jobs for thread in self._threads_of(job)]
        with self._signals():
            try:
                for thread in threads:
                    interrupts.start(thread)
                self._wait_for_threads(len(threads))
                self._give_back_rest()
            except BaseException:  # the run no longer waits for the threads: they finish and end
                self._is_told = True
                self._ring()
                raise
        if self._error is not None:
            raise self._error

    def _threads_of(self, job: Job) -> Iterator[threading.Thread]:
        """Make the threads of a handler, which share a book."""
        book: Dispatch[Task[Any]] = Dispatch(
            job.concurrency, self._run.takes_at_a_time, job.prefetch
        )
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
        """Wait until all threads have ended, or the tasks in hand have no more time. Give back what
        no thread has begun as soon as the run takes no more."""
        deadline, has_rung = None, False
        while working and (deadline is None or time.monotonic() < deadline):
            for work in list(self._handled.values()):
                work.look()
            if self._is_ending and not has_rung:
                has_rung = True
                self._ring()
                # This thread hears signals, and looks at the handlers.
                leaving = threading.Thread(target=self._leave_ready, daemon=True)
                interrupts.start(leaving)
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
            if deadline is None and self._run.grace is not None and self._is_ending:
                deadline = time.monotonic() + self._run.grace

    @property
    def _is_ending(self) -> bool:
        return self._is_told or self._ending.is_set() or self._stop.is_set()

    def _give_back_rest(self) -> None:
        """Release the tasks whose handlers go on: their next call for the task fails; and the tasks
        that no thread has begun."""
        finish(self._give_back([work.task for work in list(self._handled.values())]))
        self._leave_ready()

    def _leave_ready(self) -> None:
        """Give back the tasks that no thread has begun."""
        with self._leaving:
            with self._lock:
                ready = [task for book in self._books for task in book.leave_ready()]
            finish(self._give_back([], ready))

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
        step: Step[Task[Any]] = Rest.WAIT
        try:
            while True:
                with self._lock:
                    step = book.next(wake, self._is_ending, time.monotonic())
                match step:
                    case Begin():
                        is_done = self._process(step, job)
                        with self._lock:
                            book.finished(step.task) if is_done else book.drop(step.task)
                            self._left -= 1
                            self._is_told = self._is_told or self._left <= 0
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
            with self._lock:
                done = book.leave_done()
            finish(self._give_back([*tasks_of(step), *done]))
        finally:
            self._news.put(None)

    # The calls, see :class:`PoolCalls`

    async def _call(self, call: Calling) -> Any:
        return call()

    _finish = _call

    async def _pause(self) -> None:
        time.sleep(PAUSE)

    def _take(self, job: Job, book: Dispatch[Task[Any]], step: Take[Task[Any]], wake: Wake) -> None:
        """Acknowledge what is done, and take the next tasks: in one round trip, if there are
        any."""

        def note(is_waiting: bool) -> None:
            self._run.outages.answered()
            with self._lock:
                book.waits(is_waiting)

        try:
            with self._until_the_end:
                tasks = finish(self._take_after(job, step, None if step.waits else 0, note))
        except (WaitEnded, Empty):
            tasks = []
        except PASSING:
            if not self._is_ending or not_acknowledged(step.done):
                raise
            tasks = []
        except ShutDown:  # of this queue; or of another one, into which a handler had put
            finish(self._give_back(step.done))
            with self._lock:
                book.shut(step, wake)
            return
        if job.prefetch:
            for task in tasks:
                task.watch_loss()
        with self._lock:
            book.took(step, tasks, time.monotonic())

    def _acknowledge(self, book: Dispatch[Task[Any]], step: Acknowledge[Task[Any]]) -> None:
        try:
            finish(self._acknowledge_all(step.done))
        finally:
            with self._lock:
                book.acknowledged(len(step.done))

    def _process(self, step: Begin[Task[Any]], job: Job) -> bool:
        """Run the handler; returns whether the task is to be acknowledged."""
        me, task = threading.get_ident(), step.task
        work = Work(self._name, self._run.worker, task, step.taken, job.time_limit)
        if self._is_ending:
            finish(self._give_back([], [task]))
            return False
        work.ends_with_process(task)
        self._handled[me] = work
        try:
            if work.may_begin():
                return self._handle(task, job.handler)
            with self._lock:
                self._left += 1  # no handler ends
            return False
        except TaskError as error:
            say_late(error)
            return False
        finally:
            work.end()
            del self._handled[me]

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
                finish(self._settle_failed(task, error))
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


def _until_look(deadline: float | None) -> float:
    if deadline is None:
        return _LOOK
    return min(_LOOK, max(deadline - time.monotonic(), 0.0))
