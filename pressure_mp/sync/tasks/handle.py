"""What producers, workers and administrators of a queue of tasks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from ...background import takers
from ...background.takers import Takers
from ...encoding.codec import Codec
from ...engines import registry
from ...engines.contract.levels import Level
from ...engines.contract.task_records import TaskRecord, TaskSettings
from ...events import Destination
from ...operations.tasks import TaskOperations
from ..handles import Handle
from .base_task import Data
from .task import Task


class TaskHandle(Handle, Generic[Data]):
    """A handle to a queue of tasks."""

    _levels = (Level.TASKS,)

    _operations: TaskOperations
    _codec: Codec[Data]
    _settings: TaskSettings
    #: Makes ids, in a queue whose ids a callable makes.
    _make_id: Callable[[], int | str] | None

    def _make_operations(self) -> TaskOperations:
        return TaskOperations(self._name)

    def _equip(self) -> None:
        """The queue is open, or was when the handle was pickled."""
        self._operations.codec = self._codec
        self._operations.settings = self._settings
        self._operations.make_id = self._make_id

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._equip()

    @property
    def _here(self) -> Takers:
        """This process as a taker."""
        if self._presence is None:
            engine = registry.engine(self._address)
            self._presence = takers.of(engine, self._name, self._options.lease)
        found: Takers = self._presence
        return found

    @property
    def _destination(self) -> Destination:
        """The queue, for those who listen."""
        return self._operations.destination

    def _task(self, id: bytes, record: TaskRecord, data: Any) -> Task[Data]:
        """A task as its user sees it."""
        return Task(self, id, data, record)
