"""Wait for the results of tasks, in asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from ...deadlines import deadline, seconds_left
from ...exceptions import InboxLost
from ...handles.base_task import Data
from ...operations.task_results import TaskResult
from ...sync.tasks.inbox import DEFAULT_LEASE, late, opening
from ...sync.tasks.results import named
from .handle import TaskHandle
from .inbox import TaskInbox


class Results(TaskHandle[Data]):
    """The part of :class:`pressure_mp.aio.TaskQueue` that returns results of many tasks."""

    def results(
        self, ids: Iterable[int | str], timeout: float | None = None
    ) -> AsyncIterator[TaskResult]:
        """Iterate over the results of many tasks: ``async for done in tasks.results(ids)``.

        As :meth:`pressure_mp.TaskQueue.results`.
        """
        self._at.check_open()
        limit = self._at.seconds(timeout)
        return self._each(named(ids), deadline(True, limit), limit)

    async def _each(
        self, pending: dict[int | str, None], end: float | None, limit: float | None
    ) -> AsyncIterator[TaskResult]:
        if not pending:
            return
        number = len(pending)
        async with await self.inbox(takes=False) as inbox:
            await inbox.watch(pending)
            while pending:
                try:
                    events = await inbox.take(seconds_left(end))
                except InboxLost:  # the caller did something else for long
                    await inbox.watch(pending)
                    continue
                if not events:
                    raise late(self.name, len(pending), number, limit)
                for event in events:
                    if event.result is not None and event.id in pending:
                        del pending[event.id]
                        yield event.result

    async def inbox(self, lease: float = DEFAULT_LEASE, takes: bool = True) -> TaskInbox:
        """Make an inbox for events of tasks; as :meth:`pressure_mp.TaskQueue.inbox`."""
        self._at.check_open()
        await self.open()
        found = TaskInbox(self, lease, takes)
        await self._run(opening(found))
        return found
