"""What a queue of tasks offers to workers: handlers, run in threads on the tasks that come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from .base_task import Backoff, Data
from .taker import TaskTaker
from .task import Task
from .worker_pool import Job, WorkerPool, check_grace, choose

Result = TypeVar("Result")

DEFAULT_GRACE = 30.0


class TaskWorkers(TaskTaker[Data]):
    """The part of :class:`pressure_mp.TaskQueue` that runs handlers."""

    def _reset(self) -> None:
        super()._reset()
        self._jobs: list[Job] = []

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_jobs"]
        return state

    def worker(
        self,
        *,
        concurrency: int = 1,
        tube: str | None = None,
        ttr: float | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> Callable[[Callable[[Task[Data]], Result]], Callable[[Task[Data]], Result]]:
        """Decorate a handler that :meth:`run` is to run; its options are those of :meth:`run`.

        The function itself stays as it is. Handlers do not go along when the queue is pickled.
        """

        def register(handler: Callable[[Task[Data]], Result]) -> Callable[[Task[Data]], Result]:
            self._jobs.append(Job(handler, concurrency, tube, ttr, on_error, backoff))
            return handler

        return register

    def run(
        self,
        handler: Callable[[Task[Data]], object] | None = None,
        *,
        concurrency: int = 1,
        tube: str | None = None,
        ttr: float | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
        grace: float | None = DEFAULT_GRACE,
        stop: threading.Event | None = None,
    ) -> None:
        """Take tasks and run ``handler(task)`` on each, in ``concurrency`` threads, until stopped.

        Without a handler: all that :meth:`worker` registered, with their options.

        A task is acknowledged when its handler returns, unless the handler has acknowledged,
        released or buried it. What it returns is the task's result, if somebody asked for that;
        when that cannot be encoded, the task is buried. When the handler raises, the error is
        logged (by the logger ``pressure_mp``), its text is kept with the task, and the task is
        released, or buried: then the error is its result.

        :param concurrency: how many tasks are worked on at the same time.
        :param tube: take from this tube only.
        :param ttr: seconds that a handler has for a task, instead of the queue's own. Then the task
            is ready for others, and what the handler still says of it is refused, which is logged.
            Nothing extends it but the handler itself, with ``task.touch()``.
        :param on_error: ``"release"`` or ``"bury"`` a task whose handler raised.
        :param backoff: seconds before a released task may be taken again; or a callable that is
            given how often it was delivered, and returns them.
        :param grace: seconds for the tasks in hand when the run is stopped; those not finished by
            then are released. None means no limit.
        :param stop: an event that stops the run, within a second after it is set.

        Blocks until it is stopped: by ``stop``; by SIGTERM or SIGINT, when called in the main
        thread, where it handles them until it returns (a second one ends ``grace``); or because the
        queue is shut down and no task is ready. No task is begun after that. A handler that does
        not return within ``grace`` goes on in a daemon thread.

        Raises, when the tasks in hand are finished: what :meth:`take` raises, and what a handler
        raised that is no Exception, such as SystemExit. At once: ArgumentError, ArgumentTypeError.
        """
        options = (concurrency, tube, ttr, on_error, backoff)
        jobs = choose(Job, handler, options, self._jobs)
        check_grace(grace)
        self._check_open()
        WorkerPool(self, jobs, grace, stop or threading.Event()).run()
