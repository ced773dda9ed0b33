"""Replies that several requests have."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .task_records import StoredTask


class Outcome(Enum):
    """Replies that say nothing but what became of the request."""

    #: It is done.
    DONE = "done"
    #: There is no such queue.
    MISSING = "missing"
    #: The queue is shut down; of a request that takes items: and empty.
    CLOSED = "closed"
    #: The queue is empty and every producer has ended.
    ENDED = "ended"
    #: Another took it away meanwhile; nothing was done.
    LATE = "late"
    #: Another said already that it is dealt with; nothing was done.
    PASSED = "passed"
    #: There is nothing that it could be counted for; nothing was done.
    EXCESS = "excess"
    #: Others take items too; nothing was done.
    SHARED = "shared"
    #: The lease was renewed since the caller saw it; nothing was done.
    RENEWED = "renewed"
    #: The stored content is gone, or may be; nothing was done.
    LOST = "lost"
    #: There is no such task.
    ABSENT = "absent"
    #: A task's data is no longer what the new data was made of; nothing was done.
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
    """The queue holds so many items, and has no space for the caller: there is none, or others came
    before."""

    length: int


class NoItem(NamedTuple):
    """The queue has no item for the caller: there is none, or others came before."""


class InUse(NamedTuple):
    """Another client has the role ``"producer"`` or ``"consumer"``, or waits with it. Only engines
    that have roles reply so."""

    role: str


class Unfinished(NamedTuple):
    """So many items are not yet dealt with, at least."""

    number: int = 1


class NoTask(NamedTuple):
    """No task is ready, in ``tube`` if that is not empty. ``due`` is in how many milliseconds one
    will be by itself, of whatever tube; None when none will."""

    tube: str = ""
    due: int | None = None


class Unprocessed(NamedTuple):
    """The task is not processed, nor buried. Its data is empty unless it was to be told."""

    task: StoredTask


class NoNotice(NamedTuple):
    """The inbox has nothing to tell that its client has not seen."""


#: Replies after which ``wait`` may help.
Later = NoSpace | NoItem | InUse | Unfinished | NoTask | Unprocessed | NoNotice
