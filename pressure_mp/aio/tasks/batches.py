"""Gather tasks for a coroutine function that is called with many of them at a time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ...exceptions import ArgumentTypeError
from ...sync.tasks.batches import Gathering, check_batches, results_of

#: Runs on a list of tasks. Its value has the result of each task, in their order, or is None.
BatchHandler = Callable[[list[Any]], Coroutine[Any, Any, object]]
AnyBatchHandler = TypeVar("AnyBatchHandler", bound=BatchHandler)


class _Batch:
    """Tasks that the handler is called with together, each with the worker that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: dict[asyncio.Future[object], Any] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.running: asyncio.Task[None] | None = None

    def leave(self, waiter: asyncio.Future[object]) -> None:
        """Forget a task whose worker was cancelled: the run gives it back. With the last one, the
        handler is cancelled."""
        self.waiting.pop(waiter, None)
        if not self.waiting and self.running is not None:
            self.running.cancel()


class Batches(Gathering):
    """Gathers the tasks of each loop."""

    def __init__(self, handler: BatchHandler, size: int, wait: float) -> None:
        check_batches(handler, size, wait)
        if not inspect.iscoroutinefunction(handler):
            raise ArgumentTypeError(
                "the handler of a batch is a coroutine function in asyncio; use the queue for "
                "threads for a plain function"
            )
        super().__init__(size)
        self._handler, self._wait = handler, wait
        #: The batch of each loop to which tasks are added.
        self._open: dict[asyncio.AbstractEventLoop, _Batch] = {}

    async def __call__(self, task: Any) -> object:
        """Have the handler called with this task and others; return the result of this one."""
        loop = asyncio.get_running_loop()
        batch, waiter = self._open.get(loop), loop.create_future()
        if batch is None:
            batch = self._open[loop] = _Batch(loop)
            batch.timer = loop.call_later(self._wait, self._begin, batch)
        batch.waiting[waiter] = task
        if len(batch.waiting) == self.size:
            self._begin(batch)
        try:
            return await waiter
        finally:
            batch.leave(waiter)
            # The loop may end before the batch's time is up.
            if self._open.get(loop) is batch and not batch.waiting:
                self._close(batch)

    def _begin(self, batch: _Batch) -> None:
        """Call the handler: the batch is full, or its time is up."""
        self._close(batch)
        if batch.waiting:
            batch.running = asyncio.ensure_future(self._run(batch))

    def _close(self, batch: _Batch) -> None:
        """Have later tasks added to another batch."""
        assert batch.timer is not None
        batch.timer.cancel()
        del self._open[batch.loop]

    async def _run(self, batch: _Batch) -> None:
        waiters, tasks = list(batch.waiting), list(batch.waiting.values())
        try:
            results = results_of(tasks, await self._handler(tasks))
        except BaseException as error:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        for waiter, result in zip(waiters, results, strict=True):
            if not waiter.done():
                waiter.set_result(result)
