"""A worker pool in an event loop: asyncio tasks that take tasks, run a handler on each, and say
what became of it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Coroutine, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from typing import Any, Literal, Protocol

from ...engines.cancelled_calls import LAST_SECONDS, to_its_end
from ...exceptions import Empty, EncodingError, PressureError, ShutDown, TaskError
from ...handles.base_task import Backoff
from ...states import TAKEN
from ...sync.tasks.overdue import Work
from ...sync.tasks.task_queue import TaskQueue as QueueOfThreads
from ...sync.tasks.worker_pool import UNFINISHED, is_of_a_buried_task, say_late, say_unsaid
from .handlers import Job, handle
from .signals import heard_by
from .task import Task
from .threads import Threads

#: Seconds that a handler has to clean up, after it was cancelled; and then its worker to give its
#: task back.
_CLEANING = 5.0

_log = logging.getLogger("pressure_mp")


class Source(Protocol):
    """Where tasks come from."""

    @property
    def name(self) -> str: ...

    @property
    def sync(self) -> QueueOfThreads[Any]: ...

    async def take(
        self,
        timeout: float | None = None,
        *,
        ttr: float | None,
        tube: str | None,
        on_error: Literal["release", "bury"],
        backoff: Backoff | None,
        ack: Task[Any] | None = None,
    ) -> Task[Any]: ...


class WorkerPool:
    """The workers of one run."""

    def __init__(
        self, source: Source, jobs: Sequence[Job], grace: float | None, stop: asyncio.Event | None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._jobs = jobs
        self._grace = grace
        self._stop = stop
        self._threads = Threads(f"{source.name} worker")
        self._workers: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[Any]] = set()  # takes, that may wait for long
        self._handling: set[asyncio.Task[Any]] = set()  # handlers at work
        self._timers: list[asyncio.TimerHandle] = []
        self._is_ending = False
        self._is_over = False  # the run waits for the handlers no longer
        #: Done when the run no longer waits for cancelled handlers.
        self._abandoned: asyncio.Future[None] = self._loop.create_future()
        self._error: BaseException | None = None

    async def run(self) -> None:
        """Work until stopped; raises what ended a worker."""
        heeding = asyncio.ensure_future(self._heed(self._stop)) if self._stop else None
        try:
            with heard_by(self._hear):
                self._workers = {
                    asyncio.ensure_future(self._work(job))
                    for job in self._jobs
                    for _ in range(job.concurrency)
                }
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
            _log.info("signal %d: %r takes no more tasks", number, self._source.name)
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
        if self._grace is not None:
            self._timers.append(self._loop.call_later(self._grace, self._give_up))

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

    # Workers

    async def _work(self, job: Job) -> None:
        """Take and process tasks. One round trip acknowledges a task and takes the next."""
        done: Task[Any] | None = None
        try:
            while not self._is_ending:
                task = await self._take(job, done)
                done = await self._process(job, task) if task is not None else None
            if done is not None:
                try:
                    await self._settle(done.ack())
                except EncodingError as error:
                    await self._bury(done, error)
                done = None
        except ShutDown:
            pass
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):  # as at the end of asyncio.run()
                self._error = self._error or error
            self._end()
        if done is not None:  # it was not acknowledged: what its handler put may not be there
            await self._give_back(done)

    async def _take(self, job: Job, done: Task[Any] | None) -> Task[Any] | None:
        """Take the next task. None if it could not be decoded, if this process no longer had the
        task that is ``done``, and if there is none before the end."""
        try:
            if done is not None:
                # What acknowledges is not cancelled, so that it is known what came of it.
                with suppress(Empty):
                    return await self._source.take(0, **_options(job), ack=done)
            return None if self._is_ending else await self._wait_for_task(job)
        except TaskError as error:
            say_late(error)
        except EncodingError as error:
            assert done is not None
            await self._bury(done, error)
        except PressureError as error:
            if not is_of_a_buried_task(error):
                raise
            _log.exception("a task of %r was buried", self._source.name)
        return None

    async def _wait_for_task(self, job: Job) -> Task[Any] | None:
        taking = asyncio.ensure_future(self._source.take(**_options(job)))
        self._waiting.add(taking)
        try:
            return await taking
        except asyncio.CancelledError:
            self._end()
            if taking.cancelled() or taking.exception() is not None:
                return None
            return taking.result()  # this worker was cancelled when it had come
        finally:
            self._waiting.discard(taking)

    async def _process(self, job: Job, task: Task[Any]) -> Task[Any] | None:
        """Run the handler; returns the task when it is to be acknowledged."""
        if self._is_ending:
            await self._settle(task.release())
            return None
        handling = asyncio.ensure_future(self._handle(job, task))
        self._handling.add(handling)
        self._look_at(Work(self._source.name, task), handling)
        try:
            await self._outlast(handling)
        finally:
            self._handling.discard(handling)
        if not handling.done():
            error: BaseException | None = asyncio.CancelledError()
        else:
            error = asyncio.CancelledError() if handling.cancelled() else handling.result()
        if error is None:
            return None if task.is_settled else task
        await self._fail(task, error)
        return None

    def _look_at(self, work: Work[Task[Any]], handling: asyncio.Task[Any]) -> None:
        """Look when the task's ttr is over, and again where it was extended meanwhile."""
        work.look()
        left = work.seconds_left()
        if left < math.inf:
            timer = self._loop.call_later(max(left, 0.0), self._look_at, work, handling)
            handling.add_done_callback(lambda _: timer.cancel())

    async def _handle(self, job: Job, task: Task[Any]) -> BaseException | None:
        """Run the handler; returns what it raised: raised here, some would end the loop."""
        try:
            await handle(job, task, self._source.sync, self._threads)
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
            await self._give_back(task)
            return
        _log.error(
            "task %r of %r failed, delivery %d",
            *(task.id, self._source.name, task.deliveries),
            exc_info=error,
        )
        if task.state == TAKEN:
            try:
                await self._settle(task.fail(error))
            except Exception:
                await self._give_back(task)
                raise
        is_of_task = isinstance(error, (Exception, asyncio.CancelledError))
        if not is_of_task or isinstance(error, BrokenExecutor):  # no handler can run any more
            raise error

    async def _give_back(self, task: Task[Any]) -> None:
        """Release what was not finished. What its handler says of it from now on is refused."""
        if task.state != TAKEN:
            return
        _log.warning("task %r of %r is given back: %s", task.id, self._source.name, UNFINISHED)
        try:
            await to_its_end(task.release(error=UNFINISHED), LAST_SECONDS)
        except TaskError:
            pass  # it was finished at this moment
        except PressureError:
            _log.exception("task %r could not be released", task.id)

    async def _bury(self, done: Task[Any], error: EncodingError) -> None:
        """Bury a task whose result cannot be encoded, now or later."""
        say_unsaid(done.id, self._source.name, error)
        await self._settle(done.bury(error=error))

    async def _settle(self, settling: Coroutine[Any, Any, None]) -> None:
        try:
            await to_its_end(settling, LAST_SECONDS)
        except TaskError as error:
            say_late(error)


def _options(job: Job) -> dict[str, Any]:
    return {"ttr": job.ttr, "tube": job.tube, "on_error": job.on_error, "backoff": job.backoff}
