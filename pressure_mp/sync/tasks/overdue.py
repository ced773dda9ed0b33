"""Say of a task that is ready again, since its ttr is over, that its handler still works on it."""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Generic, TypeVar

from ...handles.base_task import BaseTask
from ...states import TAKEN

AnyTask = TypeVar("AnyTask", bound=BaseTask[Any])

_log = logging.getLogger("pressure_mp")


class Work(Generic[AnyTask]):
    """A handler's work on a task. It has as long as the broker said when the task was taken, and
    as ``touch`` extends it; no clock is compared with the broker's."""

    def __init__(self, queue: str, task: AnyTask) -> None:
        self.task = task
        self._queue = queue
        self._begun, self._since = time.monotonic(), task.since
        self._told: float | None = None

    def seconds_left(self) -> float:
        """The seconds until the task is ready again: below 0 if it is; infinity if it has no ttr,
        is settled, or the log was told."""
        due = self.task.due
        if due is None or due == self._told or self.task.state != TAKEN:
            return math.inf
        return self._begun + due - self._since - time.monotonic()

    def look(self) -> None:
        """Tell the log when the task is ready again."""
        if self.seconds_left() > 0:
            return
        self._told = self.task.due
        _log.warning(
            "task %r of %r is ready again: its ttr is over, after %.3g s, and its handler goes on. "
            "Another worker may take it, and what this handler does with it is refused. Give it a "
            "longer ttr, or call task.touch() before the ttr is over",
            *(self.task.id, self._queue, time.monotonic() - self._begun),
        )
