"""Requests of queues of tasks. All times are in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .queues import How, Mismatch
from .replies import (
    Absent,
    Changed,
    Closed,
    Done,
    Lost,
    Missing,
    NoTask,
    Renewed,
    Unprocessed,
)
from .task_records import Edit, HeldTask, StoredTask, TaskRecord, TaskSettings
from .task_results import NO_RESULT, Result


class OpenedTasks(NamedTuple):
    """There is the queue, with these options."""

    settings: TaskSettings


class ExistingTasks(NamedTuple):
    """There is one already, with these options; it was to be created."""

    settings: TaskSettings


class OpenTasks(NamedTuple):
    """Create a queue of tasks with these options, attach to one, or whichever applies. ``user`` is
    as of :class:`~.queues.Open`. With ``mends`` a broker that lost a part of what it kept of the
    queue puts right what the rest tells; that takes as long as there are tasks."""

    how: How
    settings: TaskSettings
    user: str = ""
    mends: bool = False


OpenTasksReply = OpenedTasks | ExistingTasks | Mismatch | Missing


class TaskThere(NamedTuple):
    """There is a task of that id, in that state."""

    id: bytes
    state: str


class PutTasks(NamedTuple):
    """Add tasks, each an id and data: up to MOST_ITEMS and MOST_BYTES. All are added, or none is;
    the reply has their ids.

    They have all else in common: ready after ``delay``, for ``ttl`` (None: the queue's own), at
    ``priority``, in ``tube`` unless that is empty. One whose id is empty gets one: with ``ids``
    ``"auto_increment"`` the next number, else the broker's time in microseconds, as digits.

    What comes of them is kept for ``result_ttl`` from then on, see :class:`~.task_results.Result`.
    ``inbox`` hears of them, if that is not empty.

    Of those that are ready with one ``key``, in one tube, only the first is in line to be taken,
    and none while as many are taken as ``per_key`` of the queue says. When it is taken, the next of
    its key goes to the end of the line, behind all that are ready at that priority. A task without
    a key has its own place in the line. One that is not in line is ready too, but no take gets it.
    """

    tasks: Sequence[tuple[bytes, bytes]]
    ids: str
    delay: int = 0
    ttl: int | None = None
    priority: float = 0
    tube: str = ""
    result_ttl: int = 0
    inbox: str = ""
    key: str = ""


class PutAwaited(NamedTuple):
    """Add a task of which this session will ask what becomes of it, see :class:`AwaitTask`."""

    put: PutTasks


PutTasksReply = list[bytes] | TaskThere | Closed | Missing


class OtherState(NamedTuple):
    """The task is in that state, out of which the request takes none."""

    state: str


class OtherOwner(NamedTuple):
    """The task is taken, but not by the caller, or by another take. ``owner`` is whose it is, empty
    when that is not told."""

    owner: str


#: Why a task cannot be settled. Nothing was done then.
Refusal = Absent | OtherState | OtherOwner


class Acknowledged(NamedTuple):
    """A task that was taken, as its taker knows it: to be acknowledged before the next is taken."""

    id: bytes
    record: TaskRecord
    result: Result = NO_RESULT


class TakeTasks(NamedTuple):
    """Take the tasks that are next, up to ``limit`` and to what one request may take; of one tube,
    if one is given.

    ``owner`` is the process that has them then, for ``ttr`` (None: the queue's own), by the take of
    the number ``call``, which it never used before. With ``ack`` that task of the owner's is
    processed first, as by :class:`AckTask`, or the reply is why it is not. ``waits``: as of
    :class:`~.items.Put`; it is served with what is ready also when the queue is shut down, and
    waits then for what is not yet in line. With ``retries_alone`` a task that was delivered before
    is taken alone.
    """

    owner: str
    call: int
    limit: int = 1
    tube: str = ""
    ttr: int | None = None
    ack: Acknowledged | None = None
    waits: bool = True
    retries_alone: bool = False


class TakenTasks(NamedTuple):
    """The tasks; and the one that was to be acknowledged, as it is now. With one there can be no
    tasks although some are ready: to ask for these is another request, without ``ack``. With
    ``later`` there are none for sure, and the caller may wait at once."""

    tasks: list[StoredTask]
    acknowledged: TaskRecord | None = None
    later: NoTask | None = None


TakeTasksReply = TakenTasks | NoTask | Refusal | Lost | Closed | Missing

#: The task as it is now, with its data only if it was to be told ``whole``. CHANGED: of an edit.
#: LOST: the content of its result is gone, or may be; nothing was done.
SettledReply = StoredTask | Refusal | Changed | Lost | Missing


class AckTask(NamedTuple):
    """A task that ``owner`` has by the take of that number was processed. It goes, or stays for
    ``delay`` as a zombie (None: the queue's own time), or as done. ``tube`` is where it goes to,
    None for nowhere else; ``edit`` what becomes of its data. ``result`` is what came of it, if
    that is to be kept."""

    id: bytes
    owner: str
    call: int
    delay: int | None = None
    tube: str | None = None
    edit: Edit | None = None
    whole: bool = False
    result: Result = NO_RESULT


class ReleaseTask(NamedTuple):
    """It is given back: ready, in its old place, or waiting for ``delay``; or buried, when it was
    delivered too often. Without ``priority`` and with an empty ``error`` these stay as they are.
    ``result`` is kept if it is buried, and if one is to be kept."""

    id: bytes
    owner: str
    call: int
    delay: int = 0
    ttl: int | None = None
    priority: float | None = None
    tube: str | None = None
    error: str = ""
    edit: Edit | None = None
    whole: bool = False
    result: Result = NO_RESULT


class BuryTask(NamedTuple):
    """It is put aside, for ``ttl``, or for good with 0. ``result`` is as of :class:`AckTask`."""

    id: bytes
    owner: str
    call: int
    ttl: int = 0
    tube: str | None = None
    error: str = ""
    edit: Edit | None = None
    whole: bool = False
    result: Result = NO_RESULT


class TouchTask(NamedTuple):
    """It stays taken for ``increment`` more; None: for the queue's ttr from now. With ``call`` 0 a
    task that is ready stays so for longer, and the queue's ttl is what counts."""

    id: bytes
    owner: str
    call: int
    increment: int | None = None
    edit: Edit | None = None
    whole: bool = False


class AckTasks(NamedTuple):
    """Up to MOST_ITEMS tasks that ``owner`` has were processed; each by itself. The reply is why
    some were not, by their place. ``results`` is what came of those at some places, up to
    MOST_BYTES together unless it is one; LOST: the content of one is gone, and nothing was done."""

    owner: str
    tasks: Sequence[HeldTask]
    results: Sequence[tuple[int, Result]] = ()


AckTasksReply = dict[int, Refusal] | Lost | Missing


class GetTask(NamedTuple):
    """A task as it is."""

    id: bytes


GetTaskReply = StoredTask | Absent | Missing


class FinishedTask(NamedTuple):
    """What became of a task: ``outcome`` is ``"processed"``, ``"buried"``, ``"killed"`` or
    ``"dropped"``. Without ``task`` it is gone. ``result`` is there when one is kept for now."""

    outcome: str
    task: StoredTask | None
    result: Result | None = None


class AwaitTask(NamedTuple):
    """What became of a task. The session hears of it too when the task is gone meanwhile, if it
    asked before, or put the task. ``whole``: as it is not finished, tell its data too."""

    id: bytes
    whole: bool = True
    waits: bool = True


AwaitTaskReply = FinishedTask | Unprocessed | Absent | Missing


class CountReady(NamedTuple):
    """How many tasks are ready, of one tube or, if that is empty, of all."""

    tube: str = ""


CountReadyReply = int | Missing


class Takers(NamedTuple):
    """Who has taken tasks, by the broker's clock: the end of each one's lease."""

    now: int
    leases: dict[str, int]


class RenewTaker(NamedTuple):
    """Renew the lease of a process as one who has tasks, if it ``holds`` any."""

    owner: str
    holds: bool


RenewTakerReply = Takers | Missing


class RequeueTasks(NamedTuple):
    """Give back what ``owner`` has taken, up to ``limit`` tasks, with ``error``. The reply is how
    many; none is left when they are fewer.

    With ``seen`` only if the owner's lease still ends then (RENEWED: it does not). With ``call``
    only what it took in that call.
    """

    owner: str
    error: str
    limit: int
    seen: int | None = None
    call: int | None = None


RequeueTasksReply = int | Renewed | Missing


class CloseTasks(NamedTuple):
    """Shut the queue down for everyone, for good."""


CloseTasksReply = Done | Missing


class AreTasksClosed(NamedTuple):
    """Whether the queue was shut down."""


AreTasksClosedReply = bool | Missing


class DeleteTasks(NamedTuple):
    """Remove the queue, whoever uses it."""


DeleteTasksReply = Done | Missing

#: What becomes of one task that was taken.
SettleRequest = AckTask | ReleaseTask | BuryTask | TouchTask
