"""An inbox in asyncio: where a client hears of many tasks, over one connection."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...engines.cancelled_calls import LAST_SECONDS, to_its_end
from ...exceptions import PressureError
from ...operations.task_results import TaskEvent
from ...sync.handles import attachment_of
from ...sync.tasks.inbox import BaseInbox
from ..handles import runner_of

if TYPE_CHECKING:
    from typing_extensions import Self


class TaskInbox(BaseInbox):
    """:class:`pressure_mp.TaskInbox` for asyncio: :meth:`pressure_mp.aio.TaskQueue.inbox` makes
    one. One task takes from it."""

    def __init__(self, queue: Any, lease: float, takes: bool) -> None:
        super().__init__(attachment_of(queue.sync), lease, takes)
        self._run = runner_of(queue)

    async def watch(self, ids: Iterable[int | str]) -> None:
        """Hear of these tasks too; as :meth:`pressure_mp.TaskInbox.watch`."""
        if await self._run(self._watching(ids)):
            self._was_gone = True

    async def take(self, timeout: float | None = None) -> list[TaskEvent]:
        """What it has heard since the last time; as :meth:`pressure_mp.TaskInbox.take`. What one
        that is cancelled would have returned, the next one returns."""
        self._say_whether_it_was_gone()
        return self._hear(await self._run(self._taking(timeout)))

    async def close(self) -> None:
        """It is gone, and so are the results that were kept for it alone."""
        await self._run(self._closing())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
            return
        with suppress(PressureError):  # else its lease ends it
            await to_its_end(self.close(), LAST_SECONDS)
