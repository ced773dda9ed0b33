"""Replies that several requests have."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .task_records import StoredTask


class Outcome(Enum):
    """Replies without any value."""

    #: The request is done.
    DONE = "done"
    #: The queue does not exist. A queue of another discipline under its name is another queue.
    MISSING = "missing"
    #: The queue is shut down; of a request that takes items: and empty.
    CLOSED = "closed"
    #: The queue is empty and every producer has ended.
    ENDED = "ended"
    #: Another client took the item away meanwhile; nothing was done.
    LATE = "late"
    #: Another client acknowledged the item before; nothing was done.
    PASSED = "passed"
    #: No item is left that it could count as done; nothing was done.
    EXCESS = "excess"
    #: Other clients take items too; nothing was done.
    SHARED = "shared"
    #: The lease was renewed since the caller saw it; nothing was done.
    RENEWED = "renewed"
    #: The stored content is gone, or may be; nothing was done.
    LOST = "lost"
    #: The task does not exist.
    ABSENT = "absent"
    #: The task's data has changed since the new data was made of it; nothing was done.
    CHANGED = "changed"


Done = Literal[Outcome.DONE]
Missing = Literal[Outcome.MISSING]
Closed = Literal[Outcome.CLOSED]
Ended = Literal[Outcome.ENDED]
Late = Literal[Outcome.LATE]
Passed = Literal[Outcome.PASSED]
Excess = Literal[Outcome.EXCESS]
Shared = Literal[Outcome.SHARED]
Renewed = Literal[Outcome.RENEWED]
Lost = Literal[Outcome.LOST]
Absent = Literal[Outcome.ABSENT]
Changed = Literal[Outcome.CHANGED]


class NoSpace(NamedTuple):
    """The queue holds ``length`` items, or tasks that a bound counts, and has no space for the
    caller: it is full, or other clients came before."""

    length: int


class NoItem(NamedTuple):
    """The queue has no item for the caller: it is empty, or other clients came before."""


class InUse(NamedTuple):
    """Another client has the role ``"producer"`` or ``"consumer"``, or waits with it. Only engines
    with roles have this reply."""

    role: str


class Unfinished(NamedTuple):
    """At least ``number`` items are not yet done."""

    number: int = 1


class NoTask(NamedTuple):
    """No task can be taken, from ``tube`` if that is not empty. ``due`` is in how many milliseconds
    the next task of any tube will be ready by itself, or a limit will admit one; None when neither
    will."""

    tube: str = ""
    due: int | None = None


class Unprocessed(NamedTuple):
    """The task is not processed, nor buried. It has its data if the request is ``whole``."""

    task: StoredTask


class NoNotice(NamedTuple):
    """The inbox has no notice that its client has not seen."""


#: Replies after which a session can ``wait``.
Later = NoSpace | NoItem | InUse | Unfinished | NoTask | Unprocessed | NoNotice
