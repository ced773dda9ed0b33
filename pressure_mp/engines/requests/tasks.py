"""Requests to a queue of tasks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ... import states
from ..contract.contents import (
    ReadChunks,
    ReadChunksReply,
    StoreChunks,
    StoreChunksReply,
    SweepContents,
    SweepContentsReply,
)
from ..contract.items import MOST_BYTES, MOST_ITEMS
from ..contract.queues import (
    Dismiss,
    DismissReply,
    GetDiscipline,
    GetDisciplineReply,
    How,
    IsClosed,
    IsClosedReply,
)
from ..contract.replies import NoSpace, NoTask, Outcome, Unprocessed
from ..contract.task_administration import (
    GetTaskCounts,
    GetTaskCountsReply,
    GetWorkers,
    GetWorkersReply,
    KickedTasks,
    KickTasks,
    KickTasksReply,
    ListedTasks,
    ListTasks,
    ListTasksReply,
    TakerTexts,
    TaskCounts,
    TaskLimit,
    TruncateTasks,
    TruncateTasksReply,
)
from ..contract.task_records import Record, StoredTask
from ..contract.tasks import (
    AwaitTask,
    AwaitTaskReply,
    CloseTasks,
    CloseTasksReply,
    ConfigureTasks,
    ConfigureTasksReply,
    CountReady,
    CountReadyReply,
    DeleteTasks,
    DeleteTasksReply,
    ExistingTasks,
    FinishedTask,
    GetTask,
    GetTaskReply,
    KeyTaken,
    LimitTasks,
    LimitTasksReply,
    OpenedTasks,
    OpenTasks,
    OpenTasksReply,
    PauseTasks,
    PauseTasksReply,
    PutTasks,
    PutTasksReply,
    RenewTaker,
    RenewTakerReply,
    RequeueTasks,
    RequeueTasksReply,
    TakenTasks,
    Takers,
    TakeTasks,
    TakeTasksReply,
    TaskThere,
    UniqueKeys,
)
from . import large, settling
from .dispatch import for_places, for_tasks
from .life import OUTCOMES, Life, Living, TaskPlace
from .line import Caller


@for_places.does(OpenTasks)
def _open(place: TaskPlace, request: OpenTasks, caller: Caller) -> OpenTasksReply:
    life = place.state
    if life is not None:
        if request.how is How.CREATE:
            return ExistingTasks(life.settings)
    elif request.how is How.ATTACH:
        return Outcome.MISSING
    else:
        life = place.create(request.settings)
    if request.user:
        life.users.add(request.user)
    return OpenedTasks(life.settings)


@for_tasks.does(GetDiscipline)
def _get_discipline(life: Life, request: GetDiscipline, caller: Caller) -> GetDisciplineReply:
    return "tasks"


@for_tasks.does(Dismiss)
def _dismiss(life: Life, request: Dismiss, caller: Caller) -> DismissReply:
    life.users -= {*request.users}
    life.is_deleted = not life.users
    return len(life.users)


@for_tasks.does(TakeTasks)
def _take(life: Life, request: TakeTasks, caller: Caller) -> TakeTasksReply:
    acks = request.acks
    held = [(ack.id, ack.record.call) for ack in acks]
    results = {place: ack.result for place, ack in enumerate(acks)}
    refused = settling.acknowledge(life, request.owner, held, results)
    if refused is Outcome.LOST:
        return refused
    if acks and len(refused) == len(acks):
        return TakenTasks([], refused=refused)
    taken: list[StoredTask] = []
    room, is_retry, most = MOST_BYTES, False, min(request.limit, MOST_ITEMS)
    if request.retries_alone and life.settings.are_alone:
        most = 1
    while len(taken) < most:
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
        life.presence.extend(request.owner, life.now + caller.lease)
    is_over = life.closed and not taken and not life.number_ready(request.tube)
    if taken or acks or life.ready.is_cut(request.tube, life.now):
        processed = settling.processed_now(life) if acks else None
        return TakenTasks(taken, processed, None, refused)
    return Outcome.CLOSED if is_over else NoTask(request.tube, life.next_due())


@for_tasks.does(AwaitTask)
def _await(life: Life, request: AwaitTask, caller: Caller) -> AwaitTaskReply:
    task = life.tasks.get(request.id)
    outcome = life.ends.outcome(caller)
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
    if request.waits:
        life.ends.watch(task.id, caller)
    else:
        life.ends.forget(caller)
    return Unprocessed(task.stored(request.whole))


@for_tasks.does(PutTasks)
def _put(life: Life, request: PutTasks, caller: Caller) -> PutTasksReply:
    if life.closed:
        return Outcome.CLOSED
    unique = request.unique or UniqueKeys([""] * len(request.tasks))
    holders = _holders(life, unique)
    if isinstance(holders, KeyTaken):
        return holders
    holders = holders[: _number_with_space(life, request, holders, caller)]
    if not holders:
        return NoSpace(life.number_queued())
    state, ends = states.READY, life.lifetime(request.ttl)
    if request.delay:
        state, ends = states.WAITING, life.now + request.delay
    hearing = [request.inbox] if request.inbox else []
    named: dict[bytes, bytes] = {}
    for (id, data), holder in zip(request.tasks, holders):  # noqa: B905
        if holder is not None:
            continue
        there = life.tasks.get(id)
        if id and (there or id in named):
            return TaskThere(id, there.record.state if there else state)
        named[id or life.make_id(request.ids, named)] = data
    ids = iter(named)
    placed = [next(ids) if holder is None else holder for holder in holders]
    for id, key, holder in zip(placed, unique.keys, holders):  # noqa: B905
        if holder is not None:
            continue
        record = Record(
            *(state, request.priority, life.now, life.now, ends),
            tube=request.tube,
            result_ttl=request.result_ttl,
            key=request.key,
            unique=key,
        )
        life.add(Living(id, record, named[id], life.next_seq(), hearing.copy()))
        if key:
            life.results.unique.hold(key, id, life.now + unique.time)
    if unique.on_conflict == "replace":
        for (_, data), holder in zip(request.tasks, holders):  # noqa: B905
            _replace(life, request, holder, data)
    if request.awaited:
        life.ends.watch(placed[0], caller)
    return placed


def _number_with_space(
    life: Life, request: PutTasks, holders: Sequence[bytes | None], caller: Caller
) -> int:
    """Return how many of the first tasks can be put, or have a holder."""
    space = len(holders)
    if life.settings.maxsize:
        is_behind = request.waits and not life.putters.is_next(caller)
        space = 0 if is_behind else life.space(space)
    for place, holder in enumerate(holders):
        if holder is None and not space:
            return place
        space -= holder is None
    return len(holders)


def _holders(life: Life, unique: UniqueKeys) -> list[bytes | None] | KeyTaken:
    """Return for each key the task because of which none is put with it, None if one is."""
    found: list[bytes | None] = []
    for key in unique.keys:
        holder = life.results.unique.holder(key, life.now) if key else None
        if holder is None:
            found.append(None)
            continue
        task = life.tasks.get(holder.id)
        state = task.record.state if task else states.VOID
        if unique.on_conflict == "error":
            return KeyTaken(holder.id, state)
        stays_behind = unique.on_conflict == "replace" and state == states.TAKEN
        found.append(None if stays_behind else holder.id)
    return found


def _replace(life: Life, request: PutTasks, id: bytes | None, data: bytes) -> None:
    """Give the holder of a key, if it has not ended, what a put has for it."""
    task = life.tasks.get(id) if id else None
    if task is not None and task.record.state in (states.READY, states.WAITING):
        task.data = data
        life.revive(task, request.delay, request.ttl, request.tube, priority=request.priority)


@for_tasks.does(KickTasks)
def _kick(life: Life, request: KickTasks, caller: Caller) -> KickTasksReply:
    buried = list(itertools.islice(life.ordered(states.BURIED), request.limit))
    kicked = [task for task in buried if not 0 < task.record.due <= life.now]
    for task in buried:
        if task in kicked:
            task.record = task.record._replace(deliveries=0)
            life.revive(task, request.delay, request.ttl, None)
        else:
            life.lapse(task)
    return KickedTasks(len(buried), len(kicked))


@for_tasks.does(ListTasks)
def _list(life: Life, request: ListTasks, caller: Caller) -> ListTasksReply:
    there = life.ordered(request.state)
    places = (task for task in there if request.tube in ("", task.record.tube))
    found = itertools.islice(places, request.start, request.start + request.limit)
    listed = [task.stored() for task in found]
    return ListedTasks(len(listed), listed)


@for_tasks.does(TruncateTasks)
def _truncate(life: Life, request: TruncateTasks, caller: Caller) -> TruncateTasksReply:
    there = list(itertools.islice(life.tasks.values(), request.limit))
    for task in there:
        life.vanish(task, "killed")
    return len(there)


@for_tasks.does(RequeueTasks)
def _requeue(life: Life, request: RequeueTasks, caller: Caller) -> RequeueTasksReply:
    owner, call = request.owner, request.call
    if request.seen is not None and life.presence.get(owner) != request.seen:
        return Outcome.RENEWED
    there = life.ordered(states.TAKEN, owner[-8:], *([] if call is None else [call]))
    its = (task for task in there if task.record.owner == owner)
    held = list(itertools.islice(its, request.limit))
    for task in held:
        if call is not None:
            task.record = task.record._replace(deliveries=task.record.deliveries - 1)
        life.give_back(task, request.report, 0, None, None)
    if call is None and len(held) < request.limit:
        life.presence.pop(owner, None)
        life.workers.pop(owner, None)
    return len(held)


@for_tasks.does(GetTask)
def _get(life: Life, request: GetTask, caller: Caller) -> GetTaskReply:
    task = life.tasks.get(request.id)
    return task.stored() if task else Outcome.ABSENT


@for_tasks.does(CountReady)
def _count_ready(life: Life, request: CountReady, caller: Caller) -> CountReadyReply:
    return life.number_ready(request.tube)


@for_tasks.does(RenewTaker)
def _renew(life: Life, request: RenewTaker, caller: Caller) -> RenewTakerReply:
    if request.holds or request.workers:
        life.presence[request.owner] = life.now + caller.lease
    if request.workers:
        life.workers[request.owner] = list(request.workers)
    elif request.workers is not None:
        life.workers.pop(request.owner, None)
    owner = request.owner
    found = [settling.held(life, id, owner, call) for id, call in request.watched]
    lost = {place: why for place, why in enumerate(found) if not isinstance(why, Living)}
    return Takers(life.now, dict(life.presence), settling.without_owners(lost))


@for_tasks.does(GetWorkers)
def _get_workers(life: Life, request: GetWorkers, caller: Caller) -> GetWorkersReply:
    return TakerTexts(life.now, dict(life.presence), dict(life.workers))


@for_tasks.does(IsClosed)
def _is_closed(life: Life, request: IsClosed, caller: Caller) -> IsClosedReply:
    return life.closed and not request.immediate


@for_tasks.does(ConfigureTasks)
def _configure(life: Life, request: ConfigureTasks, caller: Caller) -> ConfigureTasksReply:
    if life.settings == request.was:
        life.configure(request.settings)
    return OpenedTasks(life.settings)


@for_tasks.does(PauseTasks)
def _pause(life: Life, request: PauseTasks, caller: Caller) -> PauseTasksReply:
    life.ready.pause(request.tube, request.paused)
    return Outcome.DONE


@for_tasks.does(LimitTasks)
def _limit(life: Life, request: LimitTasks, caller: Caller) -> LimitTasksReply:
    tube, number, per, each_key = request
    if each_key:
        life.ready.limit_keys(tube, number, per, life.now)
    else:
        life.ready.limit(tube, number, per)
    return Outcome.DONE


@for_tasks.does(CloseTasks)
def _close(life: Life, request: CloseTasks, caller: Caller) -> CloseTasksReply:
    life.closed = True
    return Outcome.DONE


@for_tasks.does(DeleteTasks)
def _delete(life: Life, request: DeleteTasks, caller: Caller) -> DeleteTasksReply:
    life.is_deleted = True
    return Outcome.DONE


@for_tasks.does(GetTaskCounts)
def _count(life: Life, request: GetTaskCounts, caller: Caller) -> GetTaskCountsReply:
    ready = (task.record.created for task in life.ordered(states.READY))
    total: dict[str, int] = {}
    tubes: dict[str, dict[str, int]] = {}
    for name, number in life.ways.all().items():
        way, _, tube = name.partition(" ")
        where = tubes.setdefault(tube, {}) if tube else total
        where[way] = number
    oldest = min(ready, default=None)
    paused = life.ready.paused()
    limits = []
    for tube, limit in life.ready.limits.items():
        until = limit.until(life.now) or 0
        limits.append(TaskLimit(tube, limit.number, limit.per, limit.used, until))
    for tube, (number, per) in life.ready.key_limits.items():
        limits.append(TaskLimit(tube, number, per, 0, 0, True))
    bound = life.settings.maxsize, len(life.putters)
    return TaskCounts(
        life.now, life.created, oldest, life.closed, total, tubes, paused, limits, *bound
    )


@for_tasks.does(StoreChunks)
def _store_chunks(life: Life, request: StoreChunks, caller: Caller) -> StoreChunksReply:
    return large.keep_chunks(life.results.contents, request, caller.lease)


@for_tasks.does(ReadChunks)
def _read_chunks(life: Life, request: ReadChunks, caller: Caller) -> ReadChunksReply:
    return large.copy_chunks(life.results.contents, request, caller.lease)


@for_tasks.does(SweepContents)
def _sweep_contents(life: Life, request: SweepContents, caller: Caller) -> SweepContentsReply:
    life.results.contents.sweep(request.token, False)
    return False
