"""The records of a task, and of a queue of tasks. All times are in milliseconds; moments are by the
broker's clock, since the epoch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ... import states


@dataclass(frozen=True)
class TaskSettings:
    """The options of a queue of tasks, recorded with it. Times are in milliseconds; 0 is none, and
    ``zombie`` is :data:`states.FOR_GOOD` when zombies stay."""

    ttr: int
    ttl: int
    zombie: int
    keep: bool
    max_deliveries: int
    id: str
    #: How many tasks of one key may be taken at a time.
    per_key: int
    #: The bound: how many tasks may be ready or waiting when a task is put.
    maxsize: int = 0

    @property
    def processed(self) -> states.TaskState:
        """The state that a task is in after it was processed."""
        return states.DONE if self.keep else states.ZOMBIE if self.zombie else states.VOID

    @property
    def are_alone(self) -> bool:
        """Whether tasks are taken alone by a take that takes ``retries_alone``."""
        return self.per_key > 0 or self.max_deliveries in (1, 2)

    def stated(self) -> dict[str, object]:
        """Return the options as a user states them, by name."""
        return {
            "ttr": _seconds(self.ttr),
            "ttl": _seconds(self.ttl),
            "zombie": True if self.zombie == states.FOR_GOOD else _seconds(self.zombie),
            "keep": self.keep,
            "max_deliveries": self.max_deliveries or None,
            "id": self.id,
            "per_key": self.per_key or None,
            "maxsize": self.maxsize,
        }

    def tell(self, names: Iterable[str]) -> str:
        """Return these options as text."""
        stated = self.stated()
        return ", ".join(f"{name}={stated[name]!r}" for name in names)

    def __str__(self) -> str:
        return self.tell(self.stated())


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 if milliseconds else None


class TaskRecord(Protocol):
    """A task without its id and its data. It never changes; an engine may decode it only when an
    attribute is read."""

    @property
    def state(self) -> str:
        """The letter of the task's state, X when it is gone."""

    @property
    def priority(self) -> float:
        """The lowest is taken first; an int, when it is a whole number."""

    @property
    def created(self) -> int:
        """The time of its put."""

    @property
    def since(self) -> int:
        """The time since which it is in its state."""

    @property
    def due(self) -> int:
        """The time at which its state ends by itself, 0 if it does not."""

    @property
    def deliveries(self) -> int:
        """How often it was taken."""

    @property
    def call(self) -> int:
        """The number of the take that has it."""

    @property
    def tube(self) -> str:
        """Its tube, empty when it has none."""

    @property
    def key(self) -> str:
        """The key of its group, empty when it has none."""

    @property
    def unique(self) -> str:
        """Its unique key, empty when it was put without one."""

    @property
    def owner(self) -> str:
        """The process that has it, empty when no process does."""

    @property
    def report(self) -> str:
        """How the work on it went, as its takers told, empty when they told nothing; see
        :mod:`pressure_mp.encoding.reports`."""

    @property
    def result_ttl(self) -> int:
        """The time for which its result is kept: 0 for not at all, or
        :data:`~.task_results.WITH_INBOX`."""

    def into(self, state: str, since: int | None = None, due: int = 0) -> TaskRecord:
        """Return the record in another state; with ``since``, from that moment on until ``due``."""


class Record(NamedTuple):
    """A :class:`TaskRecord`, written out."""

    state: str
    priority: float
    created: int
    since: int
    due: int
    deliveries: int = 0
    call: int = 0
    tube: str = ""
    owner: str = ""
    report: str = ""
    result_ttl: int = 0
    key: str = ""
    unique: str = ""

    def into(self, state: str, since: int | None = None, due: int = 0) -> Record:
        """Do what :meth:`TaskRecord.into` does."""
        if since is None:
            return self._replace(state=state)
        return self._replace(state=state, since=since, due=due)


#: The report on a task whose time to release is over.
NOT_IN_TIME = "it was not processed within its ttr"

#: In the place of data: the server, or another program, removed the key that had them.
LOST_DATA: Any = None


class StoredTask(NamedTuple):
    """A task in a queue. Ids are bytes; see :mod:`pressure_mp.encoding.task_values`. Its
    data can be ``LOST_DATA``."""

    id: bytes
    record: TaskRecord
    data: bytes


#: A taken task: its id, and the number of the take that has it. Both are needed to settle it.
HeldTask = tuple[bytes, int]


class Edit(NamedTuple):
    """New data for a task; with ``made_of`` only if its data is still that."""

    data: bytes
    made_of: bytes | None = None
