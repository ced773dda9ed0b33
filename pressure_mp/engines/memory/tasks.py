"""A queue of tasks: every request, as plainly as it can be written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ... import states
from ...exhaustive import assert_never
from ..contract.brokers import QueueSummary, of_tasks
from ..contract.contents import (
    ReadChunks,
    ReadChunksReply,
    StoreChunks,
    StoreChunksReply,
    SweepContents,
    SweepContentsReply,
)
from ..contract.items import MOST_BYTES, MOST_ITEMS
from ..contract.queues import Dismiss, Enlist, Exists, GetDiscipline, GetUsers, How
from ..contract.replies import NoTask, Outcome, Unprocessed
from ..contract.requests import QueueRequest, TaskRequest
from ..contract.task_administration import (
    ChangeTask,
    GetTaskCounts,
    KickedTasks,
    KickTasks,
    ListedTasks,
    ListTasks,
    TaskCounts,
    TruncateTasks,
)
from ..contract.task_records import Record, StoredTask
from ..contract.task_results import (
    CloseInbox,
    OpenInbox,
    TakeNotices,
    WatchTasks,
)
from ..contract.tasks import (
    AckTask,
    AckTasks,
    AreTasksClosed,
    AwaitTask,
    AwaitTaskReply,
    BuryTask,
    CloseTasks,
    CountReady,
    DeleteTasks,
    ExistingTasks,
    FinishedTask,
    GetTask,
    OpenedTasks,
    OpenTasks,
    OpenTasksReply,
    PutAwaited,
    PutTasks,
    PutTasksReply,
    ReleaseTask,
    RenewTaker,
    RequeueTasks,
    RequeueTasksReply,
    TakenTasks,
    Takers,
    TakeTasks,
    TakeTasksReply,
    TaskThere,
    TouchTask,
)
from . import inboxes, large, settling
from .clock import milliseconds
from .life import OUTCOMES, Life, Living
from .line import Caller
from .task_line import TaskLine

#: Those that leave alone what is due.
_AT_REST = (GetDiscipline, Enlist, GetUsers, Dismiss, DeleteTasks, TruncateTasks, RequeueTasks)


class MemoryTasks:
    """The queue of tasks of one name: every request, and who waits."""

    #: The broker's clock, in milliseconds since the epoch; tests set it.
    clock: Callable[[], int] = staticmethod(milliseconds)

    def __init__(self, existing: set[Any]) -> None:
        self._lock = threading.Lock()
        self._existing = existing  # it is one of these as long as there is a queue of its name
        self._life: Life | None = None
        self._line = TaskLine()

    def call(self, request: QueueRequest | TaskRequest, caller: Caller) -> Any:
        """Do it, atomically; wake those who can go on because of it."""
        with self._lock:
            life = self._life
            if isinstance(request, Exists):
                return life is not None
            if isinstance(request, OpenTasks):
                return self._open(request)
            if life is None:
                return Outcome.MISSING
            life.now = self.clock()
            if not isinstance(request, _AT_REST):
                life.sweep()
            reply = self._do(life, request, caller)
            if self._life is None:
                self._existing.discard(self)
            self._line.wake_who_can_go_on(self._life)
        return reply

    def _do(self, life: Life, request: QueueRequest | TaskRequest, caller: Caller) -> Any:
        match request:
            case PutTasks():
                return _put(life, request)
            case PutAwaited():
                reply = _put(life, request.put)
                if isinstance(reply, list):
                    life.awaited[reply[0]] = [caller]
                return reply
            case OpenInbox() | WatchTasks() | TakeNotices() | CloseInbox():
                return inboxes.do(life, request, caller, self._line)
            case StoreChunks() | ReadChunks() | SweepContents():
                return _move_chunks(life, request, caller)
            case TakeTasks():
                return self._take(life, request, caller)
            case AckTask() | ReleaseTask() | BuryTask() | TouchTask():
                return settling.settle(life, request)
            case AckTasks():
                return settling.ack_many(life, request)
            case ChangeTask():
                return settling.change(life, request)
            case KickTasks():
                return _kick(life, request)
            case ListTasks():
                return _list(life, request)
            case GetTask():
                task = life.tasks.get(request.id)
                return task.stored() if task else Outcome.ABSENT
            case AwaitTask():
                return self._await(life, request, caller)
            case CountReady():
                return life.number_ready(request.tube)
            case GetTaskCounts():
                return _count(life)
            case TruncateTasks():
                return _truncate(life, request)
            case RenewTaker():
                if request.holds:
                    life.presence[request.owner] = life.now + caller.lease
                return Takers(life.now, dict(life.presence))
            case RequeueTasks():
                return _requeue(life, request)
            case AreTasksClosed():
                return life.closed
            case CloseTasks():
                life.closed = True
                return Outcome.DONE
            case DeleteTasks():
                self._life = None
                return Outcome.DONE
            case GetDiscipline():
                return "tasks"
            case Enlist():
                life.users.add(request.user)
                return Outcome.DONE
            case GetUsers():
                return list(life.users)
            case Dismiss():
                life.users.difference_update(request.users)
                if not life.users:
                    self._life = None
                return len(life.users)
            case Exists() | OpenTasks():
                raise AssertionError("done before")
            case _:
                assert_never(request)

    def summary(self, name: str) -> QueueSummary | None:
        """As it is listed; None when there is no queue of that name."""
        with self._lock:
            life = self._life
            if life is None:
                return None
            life.now = self.clock()
            task = life.next_ready("")
            age = None if task is None else (life.now - task.record.created) / 1000
            ways = {way: number for way, number in life.ways.items() if " " not in way}
            return of_tasks(name, life.closed, ways, len(self._line), age)

    def leave(self, caller: Caller) -> None:
        """The caller waits no longer; what it was woken for is for the next one."""
        with self._lock:
            self._line.leave(caller)
            if self._life is not None:
                self._life.forget(caller)
            self._line.wake_who_can_go_on(self._life)

    def _open(self, request: OpenTasks) -> OpenTasksReply:
        life = self._life
        if life is not None:
            if request.how is How.CREATE:
                return ExistingTasks(life.settings)
        elif request.how is How.ATTACH:
            return Outcome.MISSING
        else:
            life = self._life = Life(request.settings, self.clock())
            self._existing.add(self)
        if request.user:
            life.users.add(request.user)
        return OpenedTasks(life.settings)

    def _take(self, life: Life, request: TakeTasks, caller: Caller) -> TakeTasksReply:
        acknowledged = None
        if request.ack is not None:
            done = settling.held(life, request.ack.id, request.owner, request.ack.record.call)
            if not isinstance(done, Living):
                return done
            if not settling.has_content(life, request.ack.result):
                return Outcome.LOST
            life.process(done, None, None)
            life.results.say(done.id, request.ack.result, True)
            acknowledged = done.record
        taken: list[StoredTask] = []
        room, is_retry = MOST_BYTES, False
        while len(taken) < min(request.limit, MOST_ITEMS):
            task = life.next_ready(request.tube)
            if task is None or (taken and len(task.data) > room):
                break
            was_delivered = task.record.deliveries > 0
            if request.retries_alone and taken and (was_delivered or is_retry):
                break
            is_retry = was_delivered
            room -= len(task.data)
            life.take(task, request.owner, request.call, request.ttr)
            taken.append(task.stored())
        if taken:
            until = life.now + caller.lease
            life.presence[request.owner] = max(life.presence.get(request.owner, 0), until)
        is_over = life.closed and not taken and not life.number_ready(request.tube)
        if not taken and not acknowledged and not is_over and request.waits:
            self._line.stand(caller, request.tube, life.next_due_at())
        else:
            self._line.leave(caller)
        if taken or acknowledged:
            return TakenTasks(taken, acknowledged)
        return Outcome.CLOSED if is_over else NoTask(request.tube, life.next_due())

    def _await(self, life: Life, request: AwaitTask, caller: Caller) -> AwaitTaskReply:
        self._line.leave(caller)
        task = life.tasks.get(request.id)
        outcome = life.outcomes.pop(caller, None)
        kept = life.results.kept.get(request.id)
        if outcome is None and task is not None:
            outcome = OUTCOMES.get(task.record.state)
        elif outcome is None and kept is not None:
            outcome = kept.outcome
        if outcome is not None:
            result = kept.result if kept else None
            return FinishedTask(outcome, task.stored() if task else None, result)
        if task is None:
            return Outcome.ABSENT
        others = [other for other in life.awaited.pop(task.id, []) if other is not caller]
        if request.waits:
            others.append(caller)
            self._line.watch(caller)
        life.awaited[task.id] = others
        return Unprocessed(task.stored(request.whole))


def _put(life: Life, request: PutTasks) -> PutTasksReply:
    if life.closed:
        return Outcome.CLOSED
    state, ends = states.READY, life.lifetime(request.ttl)
    if request.delay:
        state, ends = states.WAITING, life.now + request.delay
    hearing = [request.inbox] if request.inbox else []
    named: dict[bytes, bytes] = {}
    for id, data in request.tasks:
        there = life.tasks.get(id)
        if id and (there or id in named):
            return TaskThere(id, there.record.state if there else state)
        named[id or life.make_id(request.ids, named)] = data
    for id, data in named.items():
        record = Record(
            *(state, request.priority, life.now, life.now, ends),
            tube=request.tube,
            result_ttl=request.result_ttl,
            key=request.key,
        )
        life.add(Living(id, record, data, life.next_seq(), hearing.copy()))
    return [*named]


def _kick(life: Life, request: KickTasks) -> KickedTasks:
    buried = life.ordered(states.BURIED)[: request.limit]
    kicked = [task for task in buried if not 0 < task.record.due <= life.now]
    for task in buried:
        if task in kicked:
            task.record = task.record._replace(deliveries=0)
            life.revive(task, request.delay, request.ttl, None)
        else:
            life.lapse(task)
    return KickedTasks(len(buried), len(kicked))


def _list(life: Life, request: ListTasks) -> ListedTasks:
    there = life.ordered(request.state)
    places = [task for task in there if request.tube in ("", task.record.tube)]
    found = places[request.start : request.start + request.limit]
    return ListedTasks(len(found), [task.stored() for task in found])


def _truncate(life: Life, request: TruncateTasks) -> int:
    there = list(life.tasks.values())[: request.limit]
    for task in there:
        life.vanish(task, "killed")
    return len(there)


def _requeue(life: Life, request: RequeueTasks) -> RequeueTasksReply:
    owner, call = request.owner, request.call
    if request.seen is not None and life.presence.get(owner) != request.seen:
        return Outcome.RENEWED
    held = [
        task
        for task in life.ordered(states.TAKEN)
        if task.record.owner == owner and call in (None, task.record.call)
    ][: request.limit]
    for task in held:
        life.give_back(task, request.error, 0, None, None)
    if call is None and len(held) < request.limit:
        life.presence.pop(owner, None)
    return len(held)


def _count(life: Life) -> TaskCounts:
    ready = [task.record.created for task in life.ordered(states.READY)]
    total: dict[str, int] = {}
    tubes: dict[str, dict[str, int]] = {}
    for name, number in life.ways.items():
        way, _, tube = name.partition(" ")
        where = tubes.setdefault(tube, {}) if tube else total
        where[way] = number
    oldest = min(ready, default=None)
    return TaskCounts(life.now, life.created, oldest, life.closed, total, tubes)


def _move_chunks(
    life: Life, request: StoreChunks | ReadChunks | SweepContents, caller: Caller
) -> StoreChunksReply | ReadChunksReply | SweepContentsReply:
    """The contents of results come in chunks, and are read in chunks."""
    contents = life.results.contents
    match request:
        case StoreChunks():
            return large.keep_chunks(contents, request, caller.lease)
        case ReadChunks():
            return large.copy_chunks(contents, request, caller.lease)
        case SweepContents():
            contents.sweep(request.token, False)
            return False
        case _:
            assert_never(request)
