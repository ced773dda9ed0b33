"""Run a handler on a task: in the loop, in a thread, or in an executor."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from ...exceptions import ArgumentError, ArgumentTypeError
from ...sync.handles import attachment_of
from ...sync.tasks import jobs as sync
from ...sync.tasks.task import Task as TaskOfThreads
from ...sync.tasks.task_queue import TaskQueue as QueueOfThreads
from .task import Task
from .threads import Threads


@dataclass(frozen=True)
class Job(sync.Job):
    """A handler, and how its workers take tasks."""

    executor: Executor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.executor is None:
            return
        if not isinstance(self.executor, Executor):
            raise ArgumentTypeError(
                "executor is a concurrent.futures.Executor or None, not "
                f"{type(self.executor).__name__}"
            )
        if self.is_coroutine:
            raise ArgumentError(
                "executor is only for plain functions: a coroutine runs in the event loop"
            )

    @property
    def is_coroutine(self) -> bool:
        """Whether the handler runs in the loop."""
        return inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(
            getattr(self.handler, "__call__", None)  # noqa: B004  # of an object of a class
        )


async def handle(job: Job, task: Task[Any], queue: QueueOfThreads[Any], threads: Threads) -> None:
    """Run the handler on the task, whose result is what it returns. Raises what it raises. When
    this is cancelled, what runs in a thread or a process goes on."""
    with task.processing():
        task.have_returned(await _run(job, task, queue, threads))


async def _run(job: Job, task: Task[Any], queue: QueueOfThreads[Any], threads: Threads) -> Any:
    """Run the handler and return what it returns."""
    if job.is_coroutine:
        found: Any = job.handler(task)
        return await found
    if job.executor is not None:
        loop = asyncio.get_running_loop()
        call = _call_for_result if task.record.result_ttl else _call
        return await loop.run_in_executor(job.executor, call, job.handler, task.data)
    return await _in_thread(job.handler, task, queue, threads)


def for_threads(task: Task[Any], queue: QueueOfThreads[Any]) -> TaskOfThreads[Any]:
    """Return the task for a handler in a thread."""
    held = TaskOfThreads(queue, task.id_bytes, task.data, task.record)
    held.on_error, held.backoff, held.late_at = task.on_error, task.backoff, task.late_at
    return held


async def _in_thread(
    handler: Callable[[Any], object],
    task: Task[Any],
    queue: QueueOfThreads[Any],
    threads: Threads,
) -> Any:
    held = for_threads(task, queue)

    def call() -> object:
        found = handler(held)
        attachment_of(queue).flush_all()  # before the loop acknowledges it
        return found

    try:
        found = await threads.call(call)
    finally:
        task.become(held)  # with what the handler said of it
        task.result = held.result
    if inspect.iscoroutine(found):  # of a function that returns one, as a lambda does
        return await found
    return found


def _call(handler: Callable[[Any], object], data: Any) -> None:
    """Run a handler in a process when its result is not kept: it need not be possible to pickle
    it."""
    _call_for_result(handler, data)


def _call_for_result(handler: Callable[[Any], object], data: Any) -> object:
    """Run a handler in a process, and return its result."""
    try:
        return handler(data)
    except StopIteration as error:  # which no future can have
        raise RuntimeError("the handler raised StopIteration") from error
