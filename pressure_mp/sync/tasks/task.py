"""A task, as its taker or an administrator holds it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ... import states
from ...exceptions import PressureError
from ...handles.base_task import BaseTask, Data
from ...handles.options import ForwardOptions
from ...operations.task_settling import UNCHANGED
from ..handles import Blocking

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Task(BaseTask[Data], Blocking):
    """A task as it was when it was taken or looked at, or when this object last changed it.

    As a context manager (``with task:``) it acknowledges the task at the end of the block, unless
    the block acknowledged it (perhaps in a transaction), released or buried it. When the block
    raises an error, the task is released or buried with the error's text (see ``on_error`` of
    :meth:`pressure_mp.TaskQueue.take`), and the error is raised again.
    """

    __slots__ = ()

    def ack(
        self,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
        result: Any = UNCHANGED,
        connection: object | None = None,
    ) -> None:
        """Acknowledge the task: it is processed. See :meth:`pressure_mp.TaskQueue.ack`."""
        acking = self._queue.ack(
            self, update=update, delay=delay, tube=tube, result=result, connection=connection
        )
        return self._then(acking, self.become)

    def forward(
        self, queue: Any, data: Any, *, result: Any = UNCHANGED, **options: Unpack[ForwardOptions]
    ) -> Any:
        """Acknowledge the task, and put ``data`` on another queue, in one step; see
        :meth:`pressure_mp.TaskQueue.forward`."""
        return self._queue.forward(self, queue, data, result=result, **options)

    def release(
        self,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        error: str | BaseException | None = None,
    ) -> None:
        """Give the task back; see :meth:`pressure_mp.TaskQueue.release`."""
        times = {"delay": delay, "ttl": ttl}
        place = {"priority": priority, "tube": tube}
        releasing = self._queue.release(self, **times, **place, update=update, error=error)
        return self._then(releasing, self.become)

    def bury(
        self,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        ttl: float | None = None,
        tube: str | None = None,
        error: str | BaseException | None = None,
    ) -> None:
        """Put the task aside for an administrator; see :meth:`pressure_mp.TaskQueue.bury`."""
        burying = self._queue.bury(self, update=update, ttl=ttl, tube=tube, error=error)
        return self._then(burying, self.become)

    def touch(
        self, increment: float | None = None, *, update: Data | Callable[[Data], Data] = UNCHANGED
    ) -> None:
        """Extend the time for the task; see :meth:`pressure_mp.TaskQueue.touch`."""
        return self._then(self._queue.touch(self, increment, update=update), self.become)

    def progress(self, value: Any) -> None:
        """Store how far the work on the task is; it replaces what was told before.

        :param value: whatever the queue's serializer can encode, in up to 8,192 bytes.

        The broker keeps it with this delivery of the task, until the task is settled, given back
        or taken again. :meth:`pressure_mp.TaskQueue.progress`, :attr:`current_progress` and
        inboxes tell it. It does not extend the ``ttr``.

        Never waits; each call is one round trip, and nothing limits how many there are. Raises
        NotTaken, NotOwner or TaskNotFound when this process has the task no more, ItemTooLargeError
        when the value is too large, EncodingError, QueueDoesNotExistError, BrokerUnavailable.
        """
        return self._then(self._queue._settle("progress", self, value), self.become)

    def fail(self, error: BaseException) -> None:
        """Release or bury the task because of ``error``, as ``on_error`` and ``backoff`` say.

        If ``error`` is not an :class:`Exception`, such as KeyboardInterrupt, the task did not cause
        it: then the task is released without a delay. Raises what release and bury raise.
        """
        verb, options = self._after(error)
        failing: None = getattr(self, verb)(**options)
        return failing

    def __enter__(self) -> Task[Data]:
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(kind, error, traceback)
        if self.state != states.TAKEN or (self.is_staged and error is None):
            return
        if error is None:
            self.ack()
            return
        try:
            self.fail(error)
        except PressureError:
            pass  # it is no longer ours, or ttr gives it back; the block's own error says more
