"""Look after a handler that works on a task: tell that the task's ttr is over, or the handler's
time limit, while it goes on; end it when that can be done."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ...background.announcing import Announced
from ...engines.contract.replies import Outcome
from ...engines.contract.tasks import Refusal
from ...handles.base_task import BaseTask
from ...states import TAKEN

AnyTask = TypeVar("AnyTask", bound=BaseTask[Any])


class EndOfProcess(Protocol):
    """Ends this process, and with it a handler in a thread, which nothing else can end."""

    #: The main thread calls this first: it gives back the tasks that no handler has begun.
    leave: Callable[[], object]

    def fail(self, task: Any, error: TimeoutError) -> object:
        """End it, as the handler of that task takes too long; the task fails."""

    def cancel(self, task: Any) -> object:
        """End it, as the queue no longer has the task."""


#: Of a worker process; None in a process that goes on.
end_of_process: EndOfProcess | None = None

_log = logging.getLogger("pressure_mp")


def leave_by(leave: Callable[[], object]) -> None:
    """Have ``leave`` called before this process ends for a task, if it may."""
    if end_of_process is not None:
        end_of_process.leave = leave


class Work(Generic[AnyTask]):
    """A handler's work on a task. It has as long as the broker said when the task was taken, and
    as ``touch`` extends it; no clock is compared with the broker's."""

    def __init__(
        self,
        queue: str,
        worker: Announced,
        task: AnyTask,
        taken: float,
        time_limit: float | None,
    ) -> None:
        """``time_limit`` is the handler's, in seconds from now on."""
        self.task = task
        self._queue, self._worker = queue, worker
        self._taken, self._since = taken, task.since
        self._told: float | None = None
        self.time_limit = time_limit
        task.late_at = math.inf if time_limit is None else time.monotonic() + time_limit
        self._is_told_late = time_limit is None
        self._end: Callable[[], object] | None = None
        #: Whether the handler was ended, as its time limit was over; or as the queue no longer has
        #: the task.
        self.was_ended = self.was_cancelled = False

    def ends_by(self, end: Callable[[], object]) -> None:
        """Have ``end`` called when the time limit is over: it ends the handler."""
        self._end = end

    def ends_with_process(self, task: Any) -> None:
        """Have this process end when the time limit is over, if it may, with ``task``, which is for
        threads; and when the queue no longer has the task, if no other handler runs here."""
        if end_of_process is None:
            return
        if self.time_limit is not None:
            self.ends_by(partial(end_of_process.fail, task, too_late(self.time_limit)))
        if self._worker.concurrency == 1:
            self.cancelled_by(partial(end_of_process.cancel, task))

    def cancelled_by(self, end: Callable[[], object]) -> None:
        """Have ``end`` called, in any thread, when the queue no longer has the task."""

        def hear(why: Refusal) -> None:
            if why is Outcome.ABSENT:
                self.was_cancelled = True
                end()

        self.task.when_lost(hear)

    def seconds_left(self) -> float:
        """The seconds until :meth:`look` has something to tell; below 0 if it has now."""
        late_in = math.inf if self._is_told_late else self.task.late_at - time.monotonic()
        return min(self._seconds_of_ttr(), late_in)

    def _seconds_of_ttr(self) -> float:
        """The seconds until the task is ready again: below 0 if it is; infinity if it has no ttr,
        is settled, or the log was told."""
        due = self.task.due
        if due is None or due == self._told or self.task.state != TAKEN:
            return math.inf
        return self._taken + due - self._since - time.monotonic()

    def may_begin(self) -> bool:
        """Return whether this process still has the task, so that its handler may begin; else tell
        the log."""
        if self._is_news():
            _log.warning(
                "task %r of %r is ready again: its ttr was over, after %.3g s, before a worker had "
                "time for it. Lower prefetch=, or give it a longer ttr",
                *(self.task.id, self._queue, time.monotonic() - self._taken),
            )
            return False
        if self.task.is_lost:
            _log.info(
                "task %r of %r was removed, or given to another process, before a worker had time "
                "for it",
                *(self.task.id, self._queue),
            )
            return False
        return True

    def look(self) -> None:
        """Tell the log, and other programs, when the task is ready again; and the log when the
        handler's time limit is over."""
        if self.task.is_late and not self._is_told_late and self.task.state == TAKEN:
            self._is_told_late = True
            if self._end is not None:
                self.was_ended = True
                self._end()
                return
            _log.warning(
                "task %r of %r: its handler goes on beyond its time_limit of %.3g s. Nothing can "
                "end a thread or a call of an executor: let the handler look at task.is_late, or "
                "make it a coroutine",
                *(self.task.id, self._queue, self.time_limit),
            )
        if not self._is_news():
            return
        self._worker.begin_late(self.task.id)
        _log.warning(
            "task %r of %r is ready again: its ttr is over, after %.3g s, and its handler goes on. "
            "Another worker may take it, and what this handler does with it is refused. Give it a "
            "longer ttr, or call task.touch() before the ttr is over",
            *(self.task.id, self._queue, time.monotonic() - self._taken),
        )

    def end(self) -> None:
        """Note that the handler has ended: its process goes on when the queue no longer has the
        task, which may be acknowledged now."""
        self.task.leave_unwatched()
        if self._told is not None:
            self._worker.end_late(self.task.id)

    def _is_news(self) -> bool:
        """Return whether the task is ready again and the log was not told, which it is now."""
        if self._seconds_of_ttr() > 0:
            return False
        self._told = self.task.due
        return True


def too_late(time_limit: float) -> TimeoutError:
    """Return the error of a task whose handler was ended."""
    return TimeoutError(f"the handler took longer than its time_limit of {time_limit:g} s")
