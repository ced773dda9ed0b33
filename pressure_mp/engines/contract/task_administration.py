"""Requests of administrators of a queue of tasks. All times are in milliseconds."""

from __future__ import annotations

from typing import NamedTuple

from .replies import Absent, Changed, Missing
from .task_records import Edit, StoredTask
from .tasks import OtherState


class ChangeTask(NamedTuple):
    """An administrator brings one task from one of the states ``origins`` into the state ``to``, X
    to remove it; an empty one leaves it in its own, but a taken one is ready then.

    ``delay`` is how long one waits, or is a zombie, 0 for the queue's own time; ``ttl`` for how
    long it is ready. ``tube`` and ``edit`` are as of :class:`AckTask`. The reply has its data.
    """

    id: bytes
    origins: str
    to: str
    delay: int = 0
    ttl: int | None = None
    tube: str | None = None
    edit: Edit | None = None


ChangeTaskReply = StoredTask | Absent | OtherState | Changed | Missing


class KickedTasks(NamedTuple):
    """Of so many buried tasks that were looked at so many were kicked; the others should have been
    gone already."""

    looked: int
    kicked: int


class KickTasks(NamedTuple):
    """The oldest buried tasks, up to ``limit``, are ready again, or wait for ``delay``. None is
    left when fewer were looked at."""

    limit: int
    delay: int = 0
    ttl: int | None = None


KickTasksReply = KickedTasks | Missing


class ListedTasks(NamedTuple):
    """Tasks at so many places that were looked at; none is left when there was none."""

    looked: int
    tasks: list[StoredTask]


class ListTasks(NamedTuple):
    """Tasks of one state and, if one is given, of one tube, in the order in which they are next:
    those at up to ``limit`` places from ``start`` on. A place can have none, or several. Those that
    are ready and not in line come last, by tube and key."""

    state: str
    tube: str
    start: int
    limit: int


ListTasksReply = ListedTasks | Missing


class TaskCounts(NamedTuple):
    """How many tasks went which way so far (``R-T``): in all, and by tube. ``oldest`` is when the
    oldest ready task was put, of the most urgent 100 priorities; None when none is ready. Of those
    with a key an engine may look at the one that is next only."""

    now: int
    created: int
    oldest: int | None
    closed: bool
    transitions: dict[str, int]
    tubes: dict[str, dict[str, int]]


class GetTaskCounts(NamedTuple):
    """Everything that can be counted, at one moment."""


GetTaskCountsReply = TaskCounts | Missing


class TruncateTasks(NamedTuple):
    """Remove tasks, up to ``limit``, whatever state they are in. The reply is how many."""

    limit: int


TruncateTasksReply = int | Missing
