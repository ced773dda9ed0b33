"""What producers, workers and administrators of a queue of tasks in asyncio share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from ...engines.contract.task_records import TaskRecord
from ...events import Destination
from ...handles.base_task import Data
from ...handles.tasks import TaskAttachment
from ...sync.tasks import task_queue as sync
from ..handles import Handle
from .task import Task

if TYPE_CHECKING:
    from typing_extensions import Self


class TaskHandle(Handle, Generic[Data]):
    """A handle to a queue of tasks."""

    _kind = sync.TaskQueue
    _at: TaskAttachment

    @classmethod
    def of(cls, handle: sync.TaskQueue[Data]) -> Self:
        """Make a handle for asyncio to the queue of a handle for threads; see :meth:`Handle.of`."""
        return super().of(handle)

    async def _opened(self) -> TaskAttachment:
        """The attachment, open: it knows the queue's settings, and this process as a taker."""
        await self.open()
        return self._at

    @property
    def _destination(self) -> Destination:
        """The queue, for listeners."""
        return self._at.operations.destination

    def _task(self, id: bytes, record: TaskRecord, data: Any) -> Task[Data]:
        """A task as its user sees it."""
        return Task(self, id, data, record)
