"""Run handlers on the tasks of a queue, in asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Literal, TypeVar

from ...handles.backoff import Backoff
from ...handles.base_task import Data
from ...sync.tasks import workers as sync
from ...sync.tasks.jobs import choose
from ...sync.tasks.pool_calls import begun
from ...sync.tasks.workers import DEFAULT_GRACE
from ..awaited import as_in
from .batches import AnyBatchHandler, Batches
from .handle import TaskHandle
from .handlers import Job
from .worker_pool import WorkerPool

Result = TypeVar("Result")


@as_in(sync.TaskWorkers)
class TaskWorkers(TaskHandle[Data]):
    """The part of :class:`pressure_mp.aio.TaskQueue` that runs handlers."""

    _jobs: Sequence[Job] = ()

    def worker(
        self,
        *,
        concurrency: int = 1,
        tube: str | None = None,
        ttr: float | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
        prefetch: int = 0,
        time_limit: float | None = None,
        executor: Executor | None = None,
    ) -> Callable[[Callable[[Any], Result]], Callable[[Any], Result]]:
        def register(handler: Callable[[Any], Result]) -> Callable[[Any], Result]:
            how = tube, ttr, on_error, backoff, prefetch, time_limit, executor
            self._jobs = (*self._jobs, Job(handler, concurrency, *how))
            return handler

        return register

    def batch(
        self,
        *,
        size: int,
        wait: float,
        concurrency: int = 1,
        tube: str | None = None,
        ttr: float | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> Callable[[AnyBatchHandler], AnyBatchHandler]:
        def register(handler: AnyBatchHandler) -> AnyBatchHandler:
            job = Job(Batches(handler, size, wait), 1, tube, ttr, on_error, backoff)
            self._jobs = (*self._jobs, job.at_a_time(concurrency))
            return handler

        return register

    async def run(
        self,
        handler: Callable[[Any], object] | None = None,
        *,
        concurrency: int = 1,
        tube: str | None = None,
        ttr: float | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
        prefetch: int = 0,
        time_limit: float | None = None,
        grace: float | None = DEFAULT_GRACE,
        max_outage: float | None = None,
        max_tasks: int | None = None,
        stop: asyncio.Event | None = None,
        executor: Executor | None = None,
    ) -> None:
        """Take tasks and run ``handler(task)`` on each, ``concurrency`` at a time, until stopped.

        A coroutine function runs in this loop, as an asyncio task of its own. A plain function runs
        in a daemon thread, of which there are ``concurrency``, and is given a
        :class:`pressure_mp.Task`, whose methods block; or by ``executor``, and is given the task's
        data, ``handler(task.data)``: a task cannot go to another process.

        What becomes of a task is as for :meth:`pressure_mp.TaskQueue.run`, and so are the other
        options, but for these:

        :param time_limit: seconds after which a coroutine is cancelled; its task fails with
            TimeoutError. What runs in a thread or by an executor goes on: it is late, as for
            :meth:`pressure_mp.TaskQueue.run`.
        :param grace: seconds for the tasks in hand when the run is stopped. Then coroutines are
            cancelled, and after 5 seconds more not waited for; what was not finished is released.
            None means no limit.
        :param stop: an event that stops the run at once.
        :param executor: a ``concurrent.futures.Executor`` such as ProcessPoolExecutor, for a
            handler that is a plain function. It is not shut down.

        In the main thread SIGTERM and SIGINT stop it; afterwards they do what they did before. Only
        of asyncio's own loop can be told what ``loop.add_signal_handler()`` was given before: on
        others, such as uvloop's, give it again.

        Returns when it is stopped: by ``stop``; by SIGTERM or SIGINT, when the loop runs in the
        main thread, where it handles them until it returns; because the queue is shut down and no
        task is ready; after ``max_tasks``; or raises CancelledError because it was cancelled. No
        task is begun after that. A second signal or cancellation ends ``grace``. What runs in a
        thread or a process and does not return by then goes on.

        Raises, when the tasks in hand are finished: what :meth:`take` raises, what a handler raised
        that is no Exception, such as SystemExit, and BrokenExecutor. At once: ArgumentError,
        ArgumentTypeError, HandleClosedError.
        """
        options = (concurrency, tube, ttr, on_error, backoff, prefetch, time_limit, executor)
        jobs = choose(Job, handler, options, self._jobs)
        with begun(self, jobs, grace, max_outage, max_tasks) as run:
            await WorkerPool(self.sync, run, stop).run()
