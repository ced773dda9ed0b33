"""A task, as its taker or an administrator holds it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

from ... import states
from ...encoding.task_values import decode_id
from ...engines.contract.task_records import TaskRecord
from ...exceptions import ArgumentError, PressureError
from ...operations.task_settling import UNCHANGED

#: Seconds until a task that failed may be taken again; or what tells them from how often it was
#: delivered.
Backoff = float | Callable[[int], float]

Data = TypeVar("Data")


class Task(Generic[Data]):
    """A task at one moment: when it was taken or looked at, or when this object last changed it.

    As a context manager it is acknowledged at the end of the block, unless the block acknowledged,
    released or buried it. When the block raises, it is released, or buried (see ``on_error`` of
    :meth:`pressure_mp.TaskQueue.take`), with the error's text, and the error goes on.
    """

    __slots__ = ("_data", "_queue", "backoff", "key", "on_error", "record")

    def __init__(self, queue: Any, key: bytes, data: Data, record: TaskRecord) -> None:
        self._queue = queue
        #: The id, as the broker has it.
        self.key = key
        self._data = data
        #: What the broker said; most of it is seldom asked for.
        self.record = record
        self.on_error = "release"
        self.backoff: Backoff | None = None

    @property
    def id(self) -> int | str:
        """The task's id."""
        return decode_id(self.key)

    @property
    def data(self) -> Data:
        """What was put, or what it was changed to since."""
        return self._data

    @property
    def state(self) -> states.TaskState:
        """Its state; ``TaskState.VOID`` when it is no longer in the queue."""
        return states.named(self.record.state)

    @property
    def tube(self) -> str | None:
        """Its tube, None if it has none."""
        return self.record.tube or None

    @property
    def priority(self) -> float:
        """Its priority: the lowest is taken first."""
        return self.record.priority

    @property
    def deliveries(self) -> int:
        """How often it was taken, this time included."""
        return self.record.deliveries

    @property
    def created(self) -> float:
        """When it was put, in seconds since the epoch on the broker's clock."""
        return self.record.created / 1000

    @property
    def since(self) -> float:
        """Since when it is in its state, in seconds since the epoch on the broker's clock."""
        return self.record.since / 1000

    @property
    def due(self) -> float | None:
        """When its state ends by itself, in seconds since the epoch on the broker's clock: the end
        of its delay, ttl, ttr or zombie time; None if it does not end by itself."""
        return self.record.due / 1000 if self.record.due else None

    @property
    def error(self) -> str | None:
        """The text of the last error that it was released or buried with; None if there is none."""
        return self.record.error or None

    @property
    def owner(self) -> str | None:
        """The process that has taken it: host, pid, when it began, incarnation."""
        return self.record.owner if self.state == states.TAKEN else None

    def ack(
        self,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
    ) -> None:
        """The task is processed; see :meth:`pressure_mp.TaskQueue.ack`."""
        self.become(self._queue.ack(self, update=update, delay=delay, tube=tube))

    def release(
        self,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        error: str | None = None,
    ) -> None:
        """Give the task back; see :meth:`pressure_mp.TaskQueue.release`."""
        self.become(
            self._queue.release(
                self,
                delay=delay,
                ttl=ttl,
                priority=priority,
                tube=tube,
                update=update,
                error=error,
            )
        )

    def bury(
        self,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        ttl: float | None = None,
        tube: str | None = None,
        error: str | None = None,
    ) -> None:
        """Put the task aside for an administrator; see :meth:`pressure_mp.TaskQueue.bury`."""
        self.become(self._queue.bury(self, update=update, ttl=ttl, tube=tube, error=error))

    def touch(
        self, increment: float | None = None, *, update: Data | Callable[[Data], Data] = UNCHANGED
    ) -> None:
        """Have more time for the task; see :meth:`pressure_mp.TaskQueue.touch`."""
        self.become(self._queue.touch(self, increment, update=update))

    def fail(self, error: BaseException) -> None:
        """Release or bury the task, as ``on_error`` and ``backoff`` say, for ``error``.

        One that is no :class:`Exception`, as KeyboardInterrupt is, is not the task's fault: it is
        released at once.
        """
        if not isinstance(error, Exception):
            self.release()
            return
        text = f"{type(error).__name__}: {error}"
        if self.on_error == "bury":
            self.bury(error=text)
        else:
            wait = self.backoff(self.deliveries) if callable(self.backoff) else self.backoff
            self.release(delay=wait or None, error=text)

    def become(self, now: Task[Data]) -> None:
        """From now on this is what ``now`` is: the same task, later."""
        self._data, self.record = now._data, now.record

    def become_record(self, record: TaskRecord) -> None:
        """The same, with the data that it has."""
        self.record = record

    @property
    def call(self) -> int:
        """The number of the take that has it: what it is acknowledged by."""
        return self.record.call

    def __enter__(self) -> Task[Data]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.state != states.TAKEN:
            return
        if error is None:
            self.ack()
            return
        try:
            self.fail(error)
        except PressureError:
            pass  # it is no longer ours, or ttr gives it back; the block's own error says more

    def __repr__(self) -> str:
        return f"<Task {self.id!r} {self.state} {self._data!r:.60}>"


def check_on_error(on_error: str, backoff: Backoff | None) -> None:
    """Raises ArgumentError for what does not say what to do with a task that failed."""
    if on_error not in ("release", "bury"):
        raise ArgumentError(f"on_error is 'release' or 'bury', not {on_error!r}")
    if backoff is not None and on_error == "bury":
        raise ArgumentError(
            "backoff is for on_error='release': a task that is buried does not wait"
        )
