"""Requests to queues of tasks. All times are in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from .queues import How, Mismatch
from .replies import (
    Absent,
    Changed,
    Closed,
    Done,
    Lost,
    Missing,
    NoSpace,
    NoTask,
    Renewed,
    Unprocessed,
)
from .task_records import Edit, HeldTask, StoredTask, TaskRecord, TaskSettings
from .task_results import NO_RESULT, Result


class OpenedTasks(NamedTuple):
    """The queue exists now, with these options."""

    settings: TaskSettings


class ExistingTasks(NamedTuple):
    """The queue was to be created, and exists already, with these options."""

    settings: TaskSettings


class OpenTasks(NamedTuple):
    """Create a queue of tasks with these options, attach to one, or whichever applies. ``user`` is
    as in :class:`~.queues.Open`. With ``mends`` a broker that lost keys of the queue makes them
    again from the records of the tasks; that takes longer the more tasks there are."""

    how: How
    settings: TaskSettings
    user: str = ""
    mends: bool = False


OpenTasksReply = OpenedTasks | ExistingTasks | Mismatch | Missing


class ConfigureTasks(NamedTuple):
    """Replace the options of the queue, if they are still ``was``. The reply has the options that
    the queue has now. A ``per_key`` holds from now on: no task is taken away, and callers that wait
    get the tasks of a key of which more may be taken. That takes longer the more tasks are taken.
    """

    settings: TaskSettings
    was: TaskSettings


ConfigureTasksReply = OpenedTasks | Missing


class PauseTasks(NamedTuple):
    """Pause the queue, or one ``tube`` of it unless that is empty, until it is resumed; or, if not
    ``paused``, resume it. No take gets a task of a paused tube, and none gets any of a paused
    queue; all other requests are done as before. A take of all tubes leaves out the paused ones. A
    tube that is paused stays so when the queue is resumed."""

    tube: str
    paused: bool


PauseTasksReply = Done | Missing


class LimitTasks(NamedTuple):
    """Let at most ``number`` tasks be delivered in any ``per`` milliseconds: of the queue, or of
    one ``tube`` unless that is empty. With ``number`` 0 remove that limit. Deliveries since an
    earlier limit was set count for the new one.

    A take gets at most as many tasks as the limits admit at that moment. A take of all tubes leaves
    out a tube whose limit is used up. A delivery that is undone counts all the same.

    With ``each_key`` it is another limit: for the tasks of each key in each tube by themselves.
    Such a limit of a tube is in the place of that of the queue. A key whose limit is used up has no
    task in line.
    """

    tube: str
    number: int
    per: int
    each_key: bool = False


LimitTasksReply = Done | Missing


class TaskThere(NamedTuple):
    """The queue has a task of that id, in that state."""

    id: bytes
    state: str


#: What a put does with a task whose unique key another task holds.
OnConflict = Literal["skip", "replace", "error"]


class UniqueKeys(NamedTuple):
    """A key for each task, empty for none; no two are the same. A task is not put while another
    task holds its key: from the put of that task until its end or its burial, and for ``time``
    after its put. With ``"error"`` the whole put is refused then. With ``"replace"`` it changes a
    holder that is ready or waiting; if the holder is taken, the new task is put, and holds the key
    then."""

    keys: Sequence[str]
    on_conflict: OnConflict = "skip"
    time: int = 0


class KeyTaken(NamedTuple):
    """A task of that id, in that state, holds the unique key; ``X`` if the task is gone."""

    id: bytes
    state: str


class PutTasks(NamedTuple):
    """Add tasks, each an id and data: up to MOST_ITEMS and MOST_BYTES. The reply has their ids. All
    are added, or none is; but of a queue with a bound the first task, and as many of the others as
    there is space for. There is space while fewer tasks than ``maxsize`` of the queue are ready or
    waiting. Only this request needs space: any other may exceed the bound.

    All of them are ready after ``delay``, for ``ttl`` (None: the queue's own), at ``priority``, and
    in ``tube`` unless that is empty. A task with an empty id gets an id: with ``ids``
    ``"auto_increment"`` the next number, otherwise the broker's time in microseconds, as digits.

    Their results are kept for ``result_ttl`` after their end, see :class:`~.task_results.Result`.
    ``inbox`` is told of them, if that is not empty.

    The ready tasks with one ``key`` in one tube are a group. Only the first of a group is in line
    to be taken, and none while as many are taken as ``per_key`` of the queue says. When it is
    taken, the next task of its group goes to the end of the line, behind all tasks that are ready
    at that priority. A task without a key has its own place in the line. A task that is not in line
    is ready too, but no take gets it.

    With ``unique`` the reply has the id of the holder for each task that is not put, which needs no
    space. A holder that is replaced keeps its id, ``key``, result options, inboxes and arrival. A
    buried or processed task that becomes ready again holds its key again, unless another task does.

    ``waits``: as in :class:`~.items.Put`. With ``awaited`` it is one task, for which this session
    will make the request :class:`AwaitTask`.
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
    unique: UniqueKeys | None = None
    waits: bool = True
    awaited: bool = False


PutTasksReply = list[bytes] | TaskThere | KeyTaken | NoSpace | Closed | Missing


class OtherState(NamedTuple):
    """The task is in that state, from which the request takes no task."""

    state: str


class OtherOwner(NamedTuple):
    """The task is taken, but by another process, or by another take. ``owner`` is the process that
    has it, empty when that is not told."""

    owner: str


#: The reason why a task was not settled. Nothing was done.
Refusal = Absent | OtherState | OtherOwner


class Acknowledged(NamedTuple):
    """A taken task, as its taker knows it, to acknowledge before the next ones are taken."""

    id: bytes
    record: TaskRecord
    result: Result = NO_RESULT


class TakeTasks(NamedTuple):
    """Take the next tasks, up to ``limit`` and to the most that one request may take; from one
    tube, if one is given.

    ``owner`` is the process that has them then, for ``ttr`` (None: the queue's own), by the take of
    the number ``call``, which it never used before. ``acks`` are tasks of the owner's, up to
    MOST_ITEMS, to acknowledge first, as by :class:`AckTasks`; if none of them can be, nothing is
    taken. LOST: the content of a result is gone, and nothing was done. ``waits``: as in
    :class:`~.items.Put`; a queue that is shut down still serves its ready tasks, and the session
    waits for ready tasks that are not yet in line, or are paused. With ``retries_alone`` a task
    that was delivered before is taken alone, as each task is of a queue with ``per_key``, or with
    ``max_deliveries`` 1 or 2. ``apart``: each task will be settled by itself, not together with the
    others of this take.
    """

    owner: str
    call: int
    limit: int = 1
    tube: str = ""
    ttr: int | None = None
    acks: Sequence[Acknowledged] = ()
    waits: bool = True
    retries_alone: bool = False
    apart: bool = False


class Processed(NamedTuple):
    """The state of acknowledged tasks, X when they are gone; since when they are in it, and when it
    ends by itself, 0 if it does not. Without ``since`` they become so when a transaction commits.
    """

    state: str
    since: int | None
    due: int = 0


class TakenTasks(NamedTuple):
    """The taken tasks. After a request with ``acks``, or when tasks of paused tubes are in the way,
    ``tasks`` can be empty although tasks are ready: these need another request, without ``acks``.
    With ``later`` no task is ready, and the caller may wait at once. ``processed`` and ``refused``
    are as in :class:`AcknowledgedTasks`; without ``processed`` no task was acknowledged."""

    tasks: list[StoredTask]
    processed: Processed | None = None
    later: NoTask | None = None
    refused: Mapping[int, Refusal] = MappingProxyType({})


TakeTasksReply = TakenTasks | NoTask | Lost | Closed | Missing

#: The task as it is now, with its data only if the request is ``whole``. CHANGED: the reply to an
#: edit. LOST: the content of its result is gone, or may be; nothing was done.
SettledReply = StoredTask | Refusal | Changed | Lost | Missing


class AckTask(NamedTuple):
    """Acknowledge a task that ``owner`` has by the take of that number: it was processed. It is
    removed, or stays for ``delay`` as a zombie (None: the queue's own time), or as done. ``tube``
    is its new tube, None for the old one; ``edit`` changes its data. ``result`` is kept, if the
    task's result is to be kept."""

    id: bytes
    owner: str
    call: int
    delay: int | None = None
    tube: str | None = None
    edit: Edit | None = None
    whole: bool = False
    result: Result = NO_RESULT


class ReleaseTask(NamedTuple):
    """Give a taken task back: it is ready, in its old place, or waiting for ``delay``; or buried,
    when it was delivered too often. Without ``priority`` and with an empty ``report`` these stay as
    they are. ``result`` is kept if the task is buried and its result is to be kept. ``unbegun``: no
    handler began the task, and the take counts as no delivery."""

    id: bytes
    owner: str
    call: int
    delay: int = 0
    ttl: int | None = None
    priority: float | None = None
    tube: str | None = None
    report: str = ""
    edit: Edit | None = None
    whole: bool = False
    result: Result = NO_RESULT
    unbegun: bool = False


class BuryTask(NamedTuple):
    """Bury a taken task, for ``ttl``, or for good with 0. ``result`` is as in :class:`AckTask`."""

    id: bytes
    owner: str
    call: int
    ttl: int = 0
    tube: str | None = None
    report: str = ""
    edit: Edit | None = None
    whole: bool = False
    result: Result = NO_RESULT


class TouchTask(NamedTuple):
    """Keep a task taken for ``increment`` more; None: for the queue's ttr from now. With ``call`` 0
    keep a ready task ready for longer, for the queue's ttl in place of its ttr. With a ``report``,
    which is only for a taken task, replace the report on it and tell its inboxes of its
    progress."""

    id: bytes
    owner: str
    call: int
    increment: int | None = None
    edit: Edit | None = None
    whole: bool = False
    report: str = ""


class AckTasks(NamedTuple):
    """Acknowledge up to MOST_ITEMS tasks that ``owner`` has, each by itself. ``results`` are
    results with the indexes of their tasks, up to MOST_BYTES together unless it is one; LOST: the
    content of a result is gone, and nothing was done."""

    owner: str
    tasks: Sequence[HeldTask]
    results: Sequence[tuple[int, Result]] = ()


class AcknowledgedTasks(NamedTuple):
    """The acknowledged tasks are ``processed`` now. ``refused``: the tasks that were not
    acknowledged, by their indexes, with the reasons."""

    processed: Processed
    refused: Mapping[int, Refusal]


AckTasksReply = AcknowledgedTasks | Lost | Missing


class GetTask(NamedTuple):
    """Get a task."""

    id: bytes


GetTaskReply = StoredTask | Absent | Missing


class FinishedTask(NamedTuple):
    """The end of a task: ``outcome`` is ``"processed"``, ``"buried"``, ``"killed"`` or
    ``"dropped"``. Without ``task`` it is gone. ``result`` is its result, if that is still kept."""

    outcome: str
    task: StoredTask | None
    result: Result | None = None


class AwaitTask(NamedTuple):
    """Get the end of a task. A session that made this request before, or that put the task, also
    gets it when the task is gone meanwhile. ``whole``: the reply has the data of a task that is not
    finished."""

    id: bytes
    whole: bool = True
    waits: bool = True


AwaitTaskReply = FinishedTask | Unprocessed | Absent | Missing


class CountReady(NamedTuple):
    """Count the ready tasks, of one tube or, if that is empty, of all."""

    tube: str = ""


CountReadyReply = int | Missing


class Takers(NamedTuple):
    """The processes that have taken tasks, and the ends of their leases by the broker's clock.
    ``lost``: the watched tasks that the owner does not have, by their indexes, with the reasons."""

    now: int
    leases: dict[str, int]
    lost: Mapping[int, Refusal] = MappingProxyType({})


class RenewTaker(NamedTuple):
    """Renew the lease of a process that takes tasks, if it ``holds`` any, or has ``workers``: a
    text of each, in ASCII without zero bytes, kept as long as the lease is; None: the texts stay as
    they are. The reply tells whether it still has the ``watched`` tasks, up to MOST_ITEMS."""

    owner: str
    holds: bool
    workers: Sequence[str] | None = None
    watched: Sequence[HeldTask] = ()


RenewTakerReply = Takers | Missing


class RequeueTasks(NamedTuple):
    """Requeue the tasks that ``owner`` has taken, up to ``limit`` tasks, with ``report``. The reply
    is how many; if these are fewer than ``limit``, none is left.

    With ``seen`` only if the owner's lease still ends at that time (RENEWED: it does not). With
    ``call`` only the tasks of that take, which no caller has got: it counts as no delivery.
    """

    owner: str
    report: str
    limit: int
    seen: int | None = None
    call: int | None = None


RequeueTasksReply = int | Renewed | Missing


class CloseTasks(NamedTuple):
    """Shut the queue down for everyone, for good."""


CloseTasksReply = Done | Missing


class DeleteTasks(NamedTuple):
    """Remove the queue, even while clients use it."""


DeleteTasksReply = Done | Missing

#: The requests that settle a taken task.
SettleRequest = AckTask | ReleaseTask | BuryTask | TouchTask
