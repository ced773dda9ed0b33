"""What producers, workers and administrators of a queue of tasks share."""

from __future__ import annotations

from typing import Any, Generic

from ...effects import Operation
from ...engines.contract.levels import Level
from ...engines.contract.task_records import TaskRecord
from ...events import Destination
from ...handles.base_task import Data
from ...handles.tasks import TaskAttachment
from ...operations.task_queue import DecodedTask
from ...operations.tasks import TaskOperations
from ..handles import Handle
from .task import Task


class TaskHandle(Handle, Generic[Data]):
    """A handle to a queue of tasks."""

    _make_operations = TaskOperations
    _levels = (Level.TASKS,)

    _at: TaskAttachment

    @property
    def _destination(self) -> Destination:
        """The queue, for listeners."""
        return self._at.operations.destination

    def _task(self, id: bytes, record: TaskRecord, data: Any) -> Task[Data]:
        """A task as its user sees it."""
        return Task(self, id, data, record)

    def _run_for_task(self, operation: Operation[DecodedTask]) -> Task[Data]:
        """Run an operation that returns a task."""
        return self._task(*self._at.run(operation))
