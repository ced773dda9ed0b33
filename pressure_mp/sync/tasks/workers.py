"""Run handlers in threads on the tasks of a queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from ...handles.backoff import Backoff
from ...handles.base_task import Data
from .batches import AnyBatchHandler, Batches
from .jobs import Job, choose
from .pool_calls import begun
from .taker import TaskTaker
from .task import Task
from .worker_pool import WorkerPool

Result = TypeVar("Result")

DEFAULT_GRACE = 30.0


class TaskWorkers(TaskTaker[Data, Task[Data]]):
    """The part of :class:`pressure_mp.TaskQueue` that runs handlers."""

    _jobs: Sequence[Job] = ()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_jobs", None)
        return state

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
    ) -> Callable[[Callable[[Task[Data]], Result]], Callable[[Task[Data]], Result]]:
        """Register a function as a handler for :meth:`run`, as a decorator.

        Takes the options of :meth:`run`. The function itself is not changed. Handlers are not
        pickled with the queue.
        """

        def register(handler: Callable[[Task[Data]], Result]) -> Callable[[Task[Data]], Result]:
            job = Job(handler, concurrency, tube, ttr, on_error, backoff, prefetch, time_limit)
            self._jobs = (*self._jobs, job)
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
        """Register a function that :meth:`run` calls with a list of tasks, as a decorator.

        The run calls it with ``size`` tasks, or with fewer when the first task has waited for
        ``wait`` seconds. Up to ``concurrency`` calls run at the same time, with a thread for each
        task. The other options mean what they do in :meth:`run`.

        When the function returns, the run acknowledges each task that the function has not
        acknowledged, released or buried. The function returns None, or a list with the result of
        each task. When it raises an exception, each task fails that it has not settled.

        Raises ArgumentError, ArgumentTypeError.
        """

        def register(handler: AnyBatchHandler) -> AnyBatchHandler:
            job = Job(Batches(handler, size, wait), 1, tube, ttr, on_error, backoff)
            self._jobs = (*self._jobs, job.at_a_time(concurrency))
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
        prefetch: int = 0,
        time_limit: float | None = None,
        grace: float | None = DEFAULT_GRACE,
        max_outage: float | None = None,
        max_tasks: int | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Take tasks and run ``handler(task)`` on each, in ``concurrency`` threads, until stopped.

        Without a handler: run all handlers that :meth:`worker` and :meth:`batch` registered, with
        their options.

        One call takes tasks for all threads that have none, and one acknowledges all that are done.
        The run never has more tasks than threads and ``prefetch``.

        A task is acknowledged when its handler returns, unless the handler has acknowledged,
        released or buried it. The value that the handler returns is the task's result, if the task
        was put with ``result_ttl`` or an inbox; if the value cannot be encoded, the task is buried.
        When the handler raises an exception, it is logged (by the logger ``pressure_mp``), its text
        is stored with the task, and the task is released or buried; if it is buried, the exception
        is its result.

        :param concurrency: how many tasks are processed at the same time.
        :param tube: take only tasks of this tube.
        :param ttr: seconds that a handler has for a task, instead of the queue's ``ttr``. After
            them the task is ready again, and acknowledging it fails, which is logged. Only the
            handler can extend this time, with ``task.touch()``.
        :param on_error: ``"release"`` or ``"bury"`` a task whose handler raised an exception.
        :param backoff: seconds before a released task may be taken again; or a callable that is
            given how often the task was delivered, and returns these seconds. None is
            :class:`~pressure_mp.ExponentialBackoff` from 1 second to 10 minutes; 0 is at once.
        :param prefetch: how many tasks the run takes before a thread has time for them; for many
            short tasks, or a broker that is far away. Other processes do not get them, and their
            ``ttr`` begins when they are taken. An acknowledgement may wait until another handler of
            this run returns.
        :param time_limit: seconds after which a handler that goes on is late: ``task.is_late`` is
            true from then on, and the log gets a line. Nothing ends a handler in a thread, but
            in the processes of ``pressure-mp worker``, which end then. None means no limit.
        :param grace: seconds that running handlers have to finish after the stop; tasks that are
            not finished by then are released. None means no limit.
        :param max_outage: seconds without an answer of the broker after which the run ends with
            BrokerUnavailable. None: the run waits for the broker, however long it is away.
        :param max_tasks: how many handlers end before the run begins no more, and returns; as many
            as there are threads may have begun then, and are finished. None means no limit.
        :param stop: an event; within a second after it is set, the run stops.

        Blocks until it is stopped: by ``stop``; by SIGTERM or SIGINT, if this was called in the
        main thread, where it handles both signals until it returns (a second signal ends
        ``grace``); because the queue is shut down and no task is ready; or after ``max_tasks``.
        After the stop no handler is started. A handler that does not return within ``grace``
        continues in a daemon thread.

        While the broker does not answer, the run takes no tasks, and goes on when it answers: the
        log gets a line when that begins, one each minute, and one when it is over. A handler that
        returns or fails meanwhile settles its task then, if this process still has it. BrokerFull
        and CallCancelledError count as no answer.

        Raises, when running handlers are finished: what :meth:`take` raises, BrokerUnavailable only
        after ``max_outage`` or when the run is stopped during an outage and cannot settle a task,
        and an exception of a handler that is not an Exception, such as SystemExit. Raises
        ArgumentError and ArgumentTypeError at once.
        """
        options = (concurrency, tube, ttr, on_error, backoff, prefetch, time_limit)
        jobs = choose(Job, handler, options, self._jobs)
        with begun(self, jobs, grace, max_outage, max_tasks) as run:
            WorkerPool(run, stop or threading.Event()).run()
