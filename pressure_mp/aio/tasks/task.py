"""A task, as its taker or an administrator in asyncio holds it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from ... import states
from ...engines.cancelled_calls import LAST_SECONDS, to_its_end
from ...exceptions import PressureError
from ...handles.base_task import BaseTask, Data
from ...operations.task_settling import UNCHANGED


class Task(BaseTask[Data]):
    """:class:`pressure_mp.Task` for asyncio: ``async with await tasks.take() as task``.

    At the end of the block it is acknowledged, released or buried as there. When the block is
    cancelled, the task is released at once. A caller that is cancelled meanwhile, or again, waits
    up to a second for that.
    """

    __slots__ = ()

    async def ack(
        self,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
        result: Any = UNCHANGED,
        connection: object | None = None,
    ) -> None:
        """Acknowledge the task: it is processed. See :meth:`pressure_mp.TaskQueue.ack`."""
        settled = await self._queue.ack(
            self, update=update, delay=delay, tube=tube, result=result, connection=connection
        )
        self.become(settled)

    async def release(
        self,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        error: str | BaseException | None = None,
    ) -> None:
        """Give the task back; see :meth:`pressure_mp.TaskQueue.release`."""
        self.become(
            await self._queue.release(
                self,
                delay=delay,
                ttl=ttl,
                priority=priority,
                tube=tube,
                update=update,
                error=error,
            )
        )

    async def bury(
        self,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        ttl: float | None = None,
        tube: str | None = None,
        error: str | BaseException | None = None,
    ) -> None:
        """Put the task aside for an administrator; see :meth:`pressure_mp.TaskQueue.bury`."""
        self.become(await self._queue.bury(self, update=update, ttl=ttl, tube=tube, error=error))

    async def touch(
        self, increment: float | None = None, *, update: Data | Callable[[Data], Data] = UNCHANGED
    ) -> None:
        """Have more time for the task; see :meth:`pressure_mp.TaskQueue.touch`."""
        self.become(await self._queue.touch(self, increment, update=update))

    async def fail(self, error: BaseException) -> None:
        """Release or bury the task, as ``on_error`` and ``backoff`` say, for ``error``.

        One that is no :class:`Exception`, as ``asyncio.CancelledError`` is, is not the task's
        fault: it is released at once.
        """
        verb, options = self._after(error)
        await getattr(self, verb)(**options)

    async def __aenter__(self) -> Task[Data]:
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(kind, error, traceback)
        if self.state != states.TAKEN or (self.is_staged and error is None):
            return
        if error is None:
            await to_its_end(self.ack(), LAST_SECONDS)
            return
        try:
            await to_its_end(self.fail(error), LAST_SECONDS)
        except PressureError:
            pass  # it is no longer ours, or ttr gives it back; the block's own error says more

    def __repr__(self) -> str:
        return f"<aio.{super().__repr__()[1:]}"
