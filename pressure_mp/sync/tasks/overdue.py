"""Tell the log that a task is ready again, since its ttr is over, while this process has it."""

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

    def __init__(self, queue: str, task: AnyTask, taken: float) -> None:
        self.task = task
        self._queue = queue
        self._taken, self._since = taken, task.since
        self._told: float | None = None

    def seconds_left(self) -> float:
        """The seconds until the task is ready again: below 0 if it is; infinity if it has no ttr,
        is settled, or the log was told."""
        due = self.task.due
        if due is None or due == self._told or self.task.state != TAKEN:
            return math.inf
        return self._taken + due - self._since - time.monotonic()

    def may_begin(self) -> bool:
        """Return whether this process still has the task, so that its handler may begin; else tell
        the log."""
        if not self._is_news():
            return True
        _log.warning(
            "task %r of %r is ready again: its ttr was over, after %.3g s, before a worker had "
            "time for it. Lower prefetch=, or give it a longer ttr",
            *(self.task.id, self._queue, time.monotonic() - self._taken),
        )
        return False

    def look(self) -> None:
        """Tell the log when the task is ready again."""
        if not self._is_news():
            return
        _log.warning(
            "task %r of %r is ready again: its ttr is over, after %.3g s, and its handler goes on. "
            "Another worker may take it, and what this handler does with it is refused. Give it a "
            "longer ttr, or call task.touch() before the ttr is over",
            *(self.task.id, self._queue, time.monotonic() - self._taken),
        )

    def _is_news(self) -> bool:
        """Return whether the task is ready again and the log was not told, which it is now."""
        if self.seconds_left() > 0:
            return False
        self._told = self.task.due
        return True
