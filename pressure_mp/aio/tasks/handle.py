"""What producers, workers and administrators of a queue of tasks in asyncio share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from ...engines.contract.task_records import TaskRecord
from ...events import Destination
from ...sync.tasks import task_queue as sync
from ...sync.tasks.base_task import Data
from ..handles import Handle
from .task import Task

if TYPE_CHECKING:
    from typing_extensions import Self


class TaskHandle(Handle, Generic[Data]):
    """A handle to a queue of tasks."""

    _kind = sync.TaskQueue
    _sync: sync.TaskQueue[Data]

    @classmethod
    def of(cls, handle: sync.TaskQueue[Data]) -> Self:
        """As of every handle of asyncio: for tasks with data of the same type."""
        return super().of(handle)

    async def _opened(self) -> sync.TaskQueue[Data]:
        """The handle for threads, open: it knows the queue's settings, and this process in it."""
        await self.open()
        return self._sync

    @property
    def _destination(self) -> Destination:
        """The queue, for those who listen."""
        return self._sync._destination

    def _task(self, id: bytes, record: TaskRecord, data: Any) -> Task[Data]:
        """A task as its user sees it."""
        return Task(self, id, data, record)
