"""Requests for the administration of a queue of tasks. All times are in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .replies import Absent, Changed, Missing
from .task_records import Edit, StoredTask
from .tasks import OtherState


class ChangeTask(NamedTuple):
    """Bring a task from one of the states ``origins`` into the state ``to``, X to remove it; an
    empty ``to`` leaves its state, but makes a taken task ready.

    ``delay`` is how long the task waits, or is a zombie, 0 for the queue's own time; ``ttl`` is how
    long it is ready. ``tube`` and ``edit`` are as in :class:`AckTask`. The reply has its data.
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
    """The numbers of buried tasks that were examined, and of these that were kicked; the others
    were due to be gone already."""

    examined: int
    kicked: int


class KickTasks(NamedTuple):
    """Make the oldest buried tasks ready again, up to ``limit``, or waiting for ``delay``. No
    buried task is left when fewer than ``limit`` were examined."""

    limit: int
    delay: int = 0
    ttl: int | None = None


KickTasksReply = KickedTasks | Missing


class ListedTasks(NamedTuple):
    """The tasks at the examined places, and how many these are; no task is left when that is 0."""

    examined: int
    tasks: list[StoredTask]


class ListTasks(NamedTuple):
    """List the tasks of one state and, if one is given, of one tube, in their order of service: the
    tasks at up to ``limit`` places from ``start`` on. A place can have no task, or several. Ready
    tasks that are not in line come last, by tube and key."""

    state: str
    tube: str
    start: int
    limit: int


ListTasksReply = ListedTasks | Missing


class TaskLimit(NamedTuple):
    """A limit of the queue, or of a tube unless that is empty. ``used`` is how many tasks were
    delivered in the last ``per``; ``until`` is the time until which no task may be, 0 if one may be
    now. Both are 0 for a limit of ``each_key``."""

    tube: str
    number: int
    per: int
    used: int
    until: int
    each_key: bool = False


class TaskCounts(NamedTuple):
    """The number of transitions of each kind so far (``R-T``): in all, and by tube. ``oldest`` is
    the time of the put of the oldest ready task, of the most urgent 100 priorities; None when no
    task is ready. An engine may consider only the next task of each key, and
    of each paused tube. ``paused`` are the tubes that are paused, with "" for the whole queue;
    ``limits`` are in no order. ``maxsize`` is the bound, ``putting`` how many clients wait for
    space."""

    now: int
    created: int
    oldest: int | None
    closed: bool
    transitions: dict[str, int]
    tubes: dict[str, dict[str, int]]
    paused: Sequence[str]
    limits: Sequence[TaskLimit]
    maxsize: int
    putting: int


class GetTaskCounts(NamedTuple):
    """Get all counts of the queue at one moment."""


GetTaskCountsReply = TaskCounts | Missing


class TakerTexts(NamedTuple):
    """The processes that have taken tasks or have workers: the ends of their leases by the broker's
    clock, and the texts of their workers."""

    now: int
    leases: dict[str, int]
    workers: dict[str, list[str]]


class GetWorkers(NamedTuple):
    """Get the leases of the processes that take tasks, and what these say of their workers."""


GetWorkersReply = TakerTexts | Missing


class TruncateTasks(NamedTuple):
    """Remove up to ``limit`` tasks, in whatever state. The reply is how many."""

    limit: int


TruncateTasksReply = int | Missing
