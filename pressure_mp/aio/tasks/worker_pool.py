"""A worker pool in an event loop: asyncio tasks that take tasks, run a handler on each, and say
what became of it."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ...engines.cancelled_calls import LAST_SECONDS, to_its_end
from ...exceptions import Empty, ShutDown
from ...off_loop import begin_later
from ...states import TAKEN
from ...sync.tasks import overdue
from ...sync.tasks.dispatch import Acknowledge, Begin, Dispatch, Rest, Step, Take, Wake, tasks_of
from ...sync.tasks.outages import PASSING, PAUSE
from ...sync.tasks.overdue import Work, too_late
from ...sync.tasks.pool_calls import Calling, Note, PoolCalls, Run, not_acknowledged
from ...sync.tasks.task_queue import TaskQueue as QueueOfThreads
from .handlers import Job, for_threads, handle
from .signals import heard_by
from .task import Task
from .threads import Threads

#: Seconds that a handler has to clean up, after it was cancelled; and then its worker to give its
#: task back.
_CLEANING = 5.0

_log = logging.getLogger("pressure_mp")


class WorkerPool(PoolCalls[Task[Any]]):
    """The workers of one run."""

    _is_ending = False

    def __init__(
        self, queue: QueueOfThreads[Any], run: Run[Job], stop: asyncio.Event | None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue = queue
        self._run = run
        self._name = run.name
        self._stop = stop
        self._left = run.max_tasks
        self._threads = Threads(f"{queue.name} worker")
        self._workers: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[Any]] = set()  # takes, that may wait for long
        self._handling: set[asyncio.Task[Any]] = set()  # handlers at work
        self._books: list[Dispatch[Task[Any]]] = []
        #: Held while tasks are given back that no worker has begun.
        self._leaving = asyncio.Lock()
        self._bells: list[asyncio.Event] = []
        self._timers: list[asyncio.TimerHandle] = []
        self._is_over = False  # the run waits for the handlers no longer
        #: Done when the run no longer waits for cancelled handlers.
        self._abandoned: asyncio.Future[None] = self._loop.create_future()
        self._error: BaseException | None = None

    async def run(self) -> None:
        """Work until stopped; raises what ended a worker."""
        overdue.leave_by(self._leave_from_thread)
        heeding = begin_later(self._heed(self._stop)) if self._stop else None
        try:
            with heard_by(self._hear):
                self._workers = {one for job in self._run.jobs for one in self._workers_of(job)}
                cancelled = await self._outlast_workers()
        finally:
            if heeding is not None:
                heeding.cancel()
            for timer in self._timers:
                timer.cancel()
            self._threads.end()
        if cancelled is not None:
            raise cancelled
        if self._error is not None:
            raise self._error

    def _workers_of(self, job: Job) -> Iterator[asyncio.Task[None]]:
        """Begin the workers of a handler, which share a book."""
        book: Dispatch[Task[Any]] = Dispatch(
            job.concurrency, self._run.takes_at_a_time, job.prefetch
        )
        self._books.append(book)
        for _ in range(job.concurrency):
            bell = asyncio.Event()
            self._bells.append(bell)
            yield begin_later(self._work(job, book, bell))

    async def _outlast_workers(self) -> asyncio.CancelledError | None:
        """Wait until all workers have ended. A cancellation of the run meanwhile tells it to
        end."""
        cancelled = None
        while not all(worker.done() for worker in self._workers):
            try:
                await asyncio.wait(self._workers)
            except asyncio.CancelledError as error:
                cancelled = error
                self._tell()
        return cancelled

    # The end

    async def _heed(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._end()

    def _hear(self, number: int) -> None:
        if not self._is_ending:
            _log.info("signal %d: %r takes no more tasks", number, self._name)
        self._tell()

    def _tell(self) -> None:
        """End the run; if called again, at once."""
        if self._is_ending:
            self._give_up()
        else:
            self._end()

    def _end(self) -> None:
        """Begin no more tasks."""
        if self._is_ending:
            return
        self._is_ending = True
        for taking in self._waiting:
            taking.cancel()
        for bell in self._bells:
            bell.set()
        self._workers.add(asyncio.ensure_future(self._leave_ready()))
        if self._run.grace is not None:
            self._timers.append(self._loop.call_later(self._run.grace, self._give_up))

    def _give_up(self) -> None:
        """Cancel the handlers."""
        if self._is_over:
            return
        self._is_over = True
        for handling in self._handling:
            handling.cancel()
        self._timers.append(self._loop.call_later(_CLEANING, self._abandon))

    def _abandon(self) -> None:
        """Let cancelled handlers that did not end go on by themselves."""
        self._abandoned.set_result(None)
        self._timers.append(self._loop.call_later(_CLEANING, self._leave))

    def _leave(self) -> None:
        for worker in self._workers:
            worker.cancel()

    async def _leave_ready(self) -> None:
        """Give back the tasks that no worker has begun."""
        async with self._leaving:
            await self._give_back([], [task for book in self._books for task in book.leave_ready()])

    def _leave_from_thread(self) -> None:
        """Give back, from another thread, the tasks that no worker has begun."""
        asyncio.run_coroutine_threadsafe(self._leave_ready(), self._loop).result()

    # Workers

    async def _work(self, job: Job, book: Dispatch[Task[Any]], bell: asyncio.Event) -> None:
        """Do the steps of one worker, until the run ends."""
        wake = bell.set
        step: Step[Task[Any]] = Rest.WAIT
        try:
            while (step := book.next(wake, self._is_ending, time.monotonic())) is not Rest.END:
                match step:
                    case Begin():
                        is_done = await self._process(job, step)
                        book.finished(step.task) if is_done else book.drop(step.task)
                        self._left -= 1
                        if self._left <= 0:
                            self._end()
                    case Take():
                        await self._take(job, book, step, wake)
                    case Acknowledge():
                        try:
                            await self._acknowledge_all(step.done)
                        finally:
                            book.acknowledged(len(step.done))
                    case _:
                        await self._rest(bell)
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):  # as at the end of asyncio.run()
                self._error = self._error or error
            self._end()
            await self._give_back([*tasks_of(step), *book.leave_done()])
            await self._leave_ready()

    async def _rest(self, bell: asyncio.Event) -> None:
        """Wait to be woken."""
        try:
            await bell.wait()
        except asyncio.CancelledError:
            self._end()
        bell.clear()

    # The calls, see :class:`PoolCalls`

    async def _call(self, call: Calling) -> Any:
        return await call()

    async def _finish(self, call: Calling) -> Any:
        return await to_its_end(call(), LAST_SECONDS)

    async def _pause(self) -> None:
        await asyncio.sleep(PAUSE)

    async def _take(
        self, job: Job, book: Dispatch[Task[Any]], step: Take[Task[Any]], wake: Wake
    ) -> None:
        """Acknowledge what is done, and take the next tasks: in one round trip, if there are
        any."""
        done, tasks = step.done, list[Task[Any]]()

        def note(is_waiting: bool) -> None:
            self._run.outages.answered()
            book.waits(is_waiting)

        try:
            if done or not step.waits:
                # What acknowledges is not cancelled, so that it is known what came of it.
                with suppress(Empty):
                    tasks = await self._take_after(job, step, 0, None)
            if not tasks and step.waits and not self._is_ending:
                tasks = await self._wait_for_tasks(job, replace(step, done=[]), note)
        except ShutDown:  # of this queue; or of another one, into which a handler had put
            await self._give_back(done)
            book.shut(step, wake)
            return
        except PASSING:
            if not self._is_ending or not_acknowledged(done):
                raise
        if job.prefetch:
            for task in tasks:
                task.watch_loss()
        book.took(step, tasks, time.monotonic())

    async def _wait_for_tasks(self, job: Job, step: Take[Task[Any]], note: Note) -> list[Task[Any]]:
        taking = asyncio.ensure_future(self._take_after(job, step, None, note))
        self._waiting.add(taking)
        try:
            return await taking
        except asyncio.CancelledError:
            self._end()
            if taking.cancelled() or taking.exception() is not None:
                return []
            return taking.result()  # this worker was cancelled when they had come
        finally:
            self._waiting.discard(taking)

    async def _process(self, job: Job, step: Begin[Task[Any]]) -> bool:
        """Run the handler; returns whether the task is to be acknowledged."""
        task = step.task
        work = Work(self._name, self._run.worker, task, step.taken, job.time_limit)
        if self._is_ending:
            await self._give_back([], [task])
            return False
        if not work.may_begin():
            self._left += 1  # no handler ends
            return False
        handling = asyncio.ensure_future(self._handle(job, task))
        self._handling.add(handling)
        if job.is_coroutine:
            work.ends_by(handling.cancel)
            work.cancelled_by(partial(self._cancel, handling))
        elif job.executor is None:
            work.ends_with_process(for_threads(task, self._queue))
        self._look_at(work, handling)
        try:
            await self._outlast(handling)
        finally:
            self._handling.discard(handling)
            work.end()
        if not handling.done():
            error: BaseException | None = asyncio.CancelledError()
        else:
            error = asyncio.CancelledError() if handling.cancelled() else handling.result()
        is_ours = isinstance(error, asyncio.CancelledError) and not self._is_over
        if is_ours and work.was_cancelled:
            _log.info("task %r of %r was removed, and its handler cancelled", task.id, self._name)
            return False
        if is_ours and work.was_ended:
            assert work.time_limit is not None, "it was over"
            error = too_late(work.time_limit)
        if error is None:
            return not task.is_settled
        await self._fail(task, error)
        return False

    def _cancel(self, handling: asyncio.Task[Any]) -> None:
        """Cancel a handler, from any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(handling.cancel)

    def _look_at(self, work: Work[Task[Any]], handling: asyncio.Task[Any]) -> None:
        """Look when the task's ttr is over, or the handler's time limit; and again if something is
        still to come."""
        work.look()
        left = work.seconds_left()
        if left < math.inf:
            timer = self._loop.call_later(max(left, 0.0), self._look_at, work, handling)
            handling.add_done_callback(lambda _: timer.cancel())

    async def _handle(self, job: Job, task: Task[Any]) -> BaseException | None:
        """Run the handler; returns what it raised: raised here, some would end the loop."""
        try:
            await handle(job, task, self._queue, self._threads)
        except BaseException as error:
            return error
        return None

    async def _outlast(self, handling: asyncio.Task[Any]) -> None:
        """Wait until it has ended, or was cancelled and takes too long."""
        while not handling.done() and not self._abandoned.done():
            ends = (handling, self._abandoned)
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:  # with all tasks of the loop: the handler too
                self._end()

    async def _fail(self, task: Task[Any], error: BaseException) -> None:
        """Say what becomes of a task whose handler raised ``error``."""
        if self._is_over and isinstance(error, asyncio.CancelledError):
            await self._give_back([task])
            return
        _log.error(
            "task %r of %r failed, delivery %d",
            *(task.id, self._name, task.deliveries),
            exc_info=error,
        )
        if task.state == TAKEN:
            await self._settle_failed(task, error)
        is_of_task = isinstance(error, (Exception, asyncio.CancelledError))
        if not is_of_task or isinstance(error, BrokenExecutor):  # no handler can run any more
            raise error
