"""A task at one moment, for threads and asyncio."""

from __future__ import annotations

import logging
import math
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import events, interrupts, states
from ..background.takers import Lost
from ..encoding import reports
from ..encoding.task_values import check_times, decode_id
from ..engines.contract.replies import Outcome
from ..engines.contract.task_records import TaskRecord
from ..engines.contract.task_results import WITH_INBOX
from ..engines.contract.tasks import Refusal
from ..events import Message
from ..exceptions import ArgumentError
from .backoff import DEFAULT, Backoff

if TYPE_CHECKING:
    import typing_extensions

if TYPE_CHECKING:  # as with the items of a queue
    Data = typing_extensions.TypeVar("Data", default=Any)
else:
    Data = TypeVar("Data")

_log = logging.getLogger("pressure_mp")


class BaseTask(Generic[Data]):
    """A task at one moment; nothing here asks the broker."""

    __slots__ = (
        *("_data", "_is_watched", "_queue", "_was_removed", "_work", "backoff", "id_bytes"),
        *("is_staged", "late_at", "message", "on_error", "record", "result"),
    )

    def __init__(self, queue: Any, id_bytes: bytes, data: Data, record: TaskRecord) -> None:
        self._queue = queue
        #: The id, as the broker has it.
        self.id_bytes = id_bytes
        self._data = data
        #: The broker's record of it; most of that is seldom asked for.
        self.record = record
        #: Whether it is acknowledged if a transaction of this program's commits.
        self.is_staged = False
        #: When its handler's time limit is over, on the monotonic clock.
        self.late_at = math.inf
        self.on_error = "release"
        self.backoff: Backoff | None = None
        #: Its result, which its taker may set: the acknowledgement sends it.
        self.result: Any = None
        #: The message for listeners when it is processed; None if there was no listener when it
        #: was taken.
        self.message: Message | None = None
        self._work: AbstractContextManager[None] | None = None
        self._is_watched = self._was_removed = False

    def processing(self) -> AbstractContextManager[None]:
        """Return a context in which to process it, once: it tells listeners of the work."""
        message, self.message = self.message, None
        if message is None:
            return nullcontext()
        return events.processing(self._queue._destination, message)

    def _begin(self) -> None:
        """Begin a ``with`` block."""
        if self.message is not None:
            work = self.processing()
            work.__enter__()
            self._work = work

    def _end(self, *exc_info: Any) -> None:
        """End a ``with`` block."""
        work, self._work = self._work, None
        if work is not None:
            work.__exit__(*exc_info)

    @property
    def id(self) -> int | str:
        """The task's id."""
        return decode_id(self.id_bytes)

    @property
    def data(self) -> Data:
        """The data that were put, or that have replaced them since."""
        return self._data

    @property
    def state(self) -> states.TaskState:
        """The task's state; ``TaskState.VOID`` when it is no longer in the queue."""
        return states.named(self.record.state)

    @property
    def tube(self) -> str | None:
        """The task's tube, None if it has none."""
        return self.record.tube or None

    @property
    def key(self) -> str | None:
        """The task's key, None if it has none."""
        return self.record.key or None

    @property
    def unique(self) -> str | None:
        """The task's unique key, None if it was put without one."""
        return self.record.unique or None

    @property
    def priority(self) -> float:
        """The task's priority: the lowest is taken first."""
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
        """The text of the last error that it was released or buried with, up to 1,000 characters;
        None if there is none."""
        return reports.read(self.record.report).error or None

    @property
    def traceback(self) -> str | None:
        """The traceback of that error, as text: the last 4,000 characters; None if the error was no
        exception that was raised."""
        return reports.read(self.record.report).traceback or None

    @property
    def current_progress(self) -> Any:
        """The value that the handler which has it told :meth:`progress` last; None if it told
        none, or no process has the task. Raises DecodingError, AuthenticationError."""
        if self.state != states.TAKEN:
            return None
        return self._queue._at.operations.read_progress(self.id_bytes, self.record)

    @property
    def owner(self) -> str | None:
        """The process that has taken it: host, pid, when it began, incarnation."""
        return self.record.owner if self.state == states.TAKEN else None

    def become(self, now: BaseTask[Data]) -> None:
        """Take the data and the record of ``now``, the same task at a later moment."""
        self._data, self.record = now._data, now.record

    def become_record(self, record: TaskRecord) -> None:
        """Take a later record, and keep the data."""
        self.record = record

    def have_returned(self, returned: object) -> None:
        """Set the result to a handler's return value, unless that is None."""
        if returned is not None:
            self.result = returned

    @property
    def is_settled(self) -> bool:
        """Whether its taker has settled it, perhaps in a transaction that has not committed yet."""
        return self.is_staged or self.state != states.TAKEN

    @property
    def is_late(self) -> bool:
        """Whether its handler has had more time than ``time_limit`` of its run."""
        return time.monotonic() >= self.late_at

    @property
    def cancelled(self) -> bool:
        """Whether the queue no longer has the task that this process had taken, as after
        :meth:`pressure_mp.TaskQueue.cancel`: then nothing that its handler does with it is kept.

        The process begins to ask the broker when this is first read: within about a second it
        is True. Never waits.
        """
        self.watch_loss()
        return self._was_removed

    def watch_loss(self) -> None:
        """Have this process ask the broker, from now on, whether it still has the task."""
        if not self._is_watched and not self.is_settled:
            self._is_watched = True
            self.when_lost(self._hear_of_loss)

    @property
    def is_lost(self) -> bool:
        """Whether this process knows that it does not have the task."""
        return bool(self._queue._at.here.call_of(self.id_bytes) != self.call)

    def when_lost(self, lost: Lost) -> None:
        """Have ``lost`` called, in any thread, when this process finds that it has lost the
        task."""
        self._queue._at.here.watch((self.id_bytes, self.call), lost)

    def leave_unwatched(self) -> None:
        """Undo :meth:`when_lost`."""
        self._queue._at.here.leave_unwatched((self.id_bytes, self.call))

    def _hear_of_loss(self, why: Refusal) -> None:
        self._was_removed = why is Outcome.ABSENT

    @property
    def call(self) -> int:
        """The number of the take that has it, by which it is acknowledged."""
        return self.record.call

    @property
    def result_ttl(self) -> float | None:
        """Seconds for which its result is kept, from its end on; infinity for a result that is kept
        as long as the inbox that it was put with. None if its result is not kept."""
        kept = self.record.result_ttl
        return math.inf if kept == WITH_INBOX else kept / 1000 if kept else None

    def _after(self, error: BaseException) -> tuple[str, dict[str, Any]]:
        """Return the verb to call when ``error`` ended the work on it, and its options."""
        if not isinstance(error, Exception):
            return "release", {}
        if self.on_error == "bury":
            return "bury", {"error": error}
        return "release", {"delay": self._wait(), "error": error}

    def _wait(self) -> float | None:
        """Return the seconds for which it waits after it failed, None for no wait. These are the
        default ones if its own ``backoff`` raises, or returns what is no delay."""
        backoff = DEFAULT if self.backoff is None else self.backoff
        try:
            wait = backoff(self.deliveries) if callable(backoff) else backoff
            check_times(wait, None)
        except Exception as error:
            if interrupts.is_from_outside(error):
                raise
            where = self.id, self._queue.name
            _log.error(
                "the backoff of task %r of %r fails: it waits as by default", *where, exc_info=error
            )
            return DEFAULT(self.deliveries)
        return wait or None

    def __repr__(self) -> str:
        return f"<Task {self.id!r} {self.state} {self._data!r:.60}>"


#: A task, or its id, as the argument of a verb.
TaskOrId = BaseTask[Any] | int | str


def check_on_error(on_error: str, backoff: Backoff | None) -> None:
    """Raise ArgumentError for values that exclude each other, or that are unknown."""
    if on_error not in ("release", "bury"):
        raise ArgumentError(f"on_error is 'release' or 'bury', not {on_error!r}")
    if backoff is not None and on_error == "bury":
        raise ArgumentError(
            "backoff is for on_error='release': a task that is buried does not wait"
        )
