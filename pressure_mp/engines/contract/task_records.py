"""What is kept of a task, and of a queue of tasks. All times are in milliseconds; moments are the
broker's, since the epoch."""

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

    @property
    def processed(self) -> states.TaskState:
        """The state that a task is in after it was processed."""
        return states.DONE if self.keep else states.ZOMBIE if self.zombie else states.VOID

    def stated(self) -> dict[str, object]:
        """As they were stated, by name."""
        return {
            "ttr": _seconds(self.ttr),
            "ttl": _seconds(self.ttl),
            "zombie": True if self.zombie == states.FOR_GOOD else _seconds(self.zombie),
            "keep": self.keep,
            "max_deliveries": self.max_deliveries or None,
            "id": self.id,
            "per_key": self.per_key or None,
        }

    def tell(self, names: Iterable[str]) -> str:
        """Those options in words."""
        stated = self.stated()
        return ", ".join(f"{name}={stated[name]!r}" for name in names)

    def __str__(self) -> str:
        return self.tell(self.stated())


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 if milliseconds else None


class TaskRecord(Protocol):
    """A task without its id and its data. It never changes; an engine may read it as late as
    somebody asks."""

    @property
    def state(self) -> str:
        """The letter of its state, X when it is gone."""

    @property
    def priority(self) -> float:
        """The lowest is taken first; an int, when it is a whole number."""

    @property
    def created(self) -> int:
        """When it was put."""

    @property
    def since(self) -> int:
        """Since when it is in its state."""

    @property
    def due(self) -> int:
        """When its state ends by itself, 0 when it does not."""

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
        """Whose turn it is to be served with it, empty when it has no key."""

    @property
    def owner(self) -> str:
        """The process that has it, empty when nobody does."""

    @property
    def error(self) -> str:
        """The text of the last error, empty when there is none."""

    @property
    def result_ttl(self) -> int:
        """For how long its result is kept: 0 for not at all, or
        :data:`~.task_results.WITH_INBOX`."""

    def into(self, state: str, since: int | None = None) -> TaskRecord:
        """The same in another state; with ``since`` from that moment on and without an end."""


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
    error: str = ""
    result_ttl: int = 0
    key: str = ""

    def into(self, state: str, since: int | None = None) -> Record:
        """As of :class:`TaskRecord`."""
        if since is None:
            return self._replace(state=state)
        return self._replace(state=state, since=since, due=0)


#: In the place of data: the server, or somebody, removed the key that had them.
LOST_DATA: Any = None


class StoredTask(NamedTuple):
    """A task as a queue has it. Ids are bytes; see :mod:`pressure_mp.encoding.task_values`. Its
    data can be ``LOST_DATA``."""

    id: bytes
    record: TaskRecord
    data: bytes


#: A task that somebody has, by its id, and the number of the take that has it: only by that it is
#: settled.
HeldTask = tuple[bytes, int]


class Edit(NamedTuple):
    """New data for a task; with ``made_of`` only if that is what its data is now."""

    data: bytes
    made_of: bytes | None = None
