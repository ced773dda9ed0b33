"""An inbox in asyncio: where a client hears of many tasks, over one connection."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...engines.cancelled_calls import LAST_SECONDS, to_its_end
from ...exceptions import PressureError
from ...sync.handles import attachment_of
from ...sync.tasks import inbox as sync
from ..awaited import Awaiting, awaited
from ..handles import runner_of

if TYPE_CHECKING:
    from typing_extensions import Self


class TaskInbox(sync.BaseInbox, Awaiting):
    """:class:`pressure_mp.TaskInbox` for asyncio: :meth:`pressure_mp.aio.TaskQueue.inbox` makes
    one. One task takes from it."""

    def __init__(self, queue: Any, lease: float, takes: bool) -> None:
        super().__init__(attachment_of(queue.sync), lease, takes)
        self._run = runner_of(queue)

    watch = awaited(sync.TaskInbox.watch)
    take = awaited(sync.TaskInbox.take)
    close = awaited(sync.TaskInbox.close)

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
