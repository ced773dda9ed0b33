"""Requests to queues of tasks, and about their inboxes, each by its script."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...contract import task_administration as a
from ...contract import task_results as r
from ...contract import tasks as t
from ...contract.replies import Changed, Lost, Missing, NoSpace, NoTask, Outcome
from ...contract.task_records import Edit, StoredTask, TaskSettings
from .. import task_waiting
from ..binding import RedisBinding
from ..caller import Caller, does
from ..one_script import FirstScript, OneScript, bells_in, fields, only_status
from ..packing import or_none
from ..statuses import (
    ABSENT,
    DONE,
    EXISTS,
    FOREIGN,
    FULL,
    HELD,
    MISMATCH,
    MISSING,
    NOW,
    WAIT,
    WRONG,
    Reply,
    outcome,
)
from ..task_records import (
    PackedRecord,
    dump,
    encode_priority,
    load,
    read_paused,
    read_tasks,
)
from ..task_waiting import ask, place_of, waiter_of
from .queues import FORMAT, mismatch


@does(t.OpenTasks)
async def open_(caller: Caller, request: t.OpenTasks, end: float | None) -> t.OpenTasksReply:
    settings, discipline = request.settings, caller.binding.discipline
    named = (request.how.value, dump(settings), discipline, FORMAT, request.user)
    noted = caller.binding.note_arguments(request.user)
    args = (*named, *_numbers(settings), request.mends, *noted)
    reply = await caller.script("open", args, end)
    status = reply[0]
    if status == MISSING:
        return Outcome.MISSING
    if status == MISMATCH:
        return mismatch(reply, discipline)
    if status == DONE:
        caller.binding.server.notes_of_host.hear(noted, reply[2])
    found = load(reply[1])
    return t.ExistingTasks(found) if status == EXISTS else t.OpenedTasks(found)


def _numbers(settings: TaskSettings) -> tuple[int, ...]:
    times = settings.ttr, settings.ttl, settings.zombie
    most = settings.max_deliveries, settings.per_key, settings.maxsize
    return (*times, settings.keep, *most)


def _configure(binding: RedisBinding, request: t.ConfigureTasks) -> tuple[Any, ...]:
    settings, was = request
    return (dump(was), dump(settings), *_numbers(settings))


def _read_configured(request: t.ConfigureTasks, reply: Reply) -> t.ConfigureTasksReply:
    return t.OpenedTasks(load(reply[2]))


does(t.ConfigureTasks)(OneScript("configure", _configure, _read_configured))


def put_args(caller: Caller, request: t.PutTasks) -> tuple[Any, ...]:
    tasks, ids, delay, ttl, priority, tube, result_ttl, inbox, key, unique, waits, awaited = request
    ticket = waiter_of(caller).ticket.encode() if awaited else b""
    flat = tasks[0] if len(tasks) == 1 else [part for task in tasks for part in task]
    options = ids.encode(), delay, or_none(ttl), encode_priority(priority), tube.encode()
    if unique is not None:
        flat = *flat, *unique.keys
    held = f"{unique.on_conflict} {unique.time}" if unique else ""
    how = WAIT if waits else NOW, place_of(caller)
    return (*options, ticket, result_ttl, inbox, key, held, *how, len(tasks), *flat)


def read_put(caller: Caller, request: t.PutTasks, reply: Reply) -> t.PutTasksReply:
    status = reply[0]
    if status == DONE:
        if isinstance(caller.waiter, task_waiting.TaskWaiter):  # it has no place in line any more
            caller.waiter.puts = caller.waiter.passes_on = False
        return reply[2:]
    if status == FULL:
        if request.waits:
            waiter = waiter_of(caller)
            # Without an entry it has no place yet, and its next call asks for one.
            waiter.puts, waiter.entry = True, reply[3]
        return NoSpace(reply[2])
    if status == EXISTS:
        return t.TaskThere(reply[2], reply[3].decode())
    if status == HELD:
        return t.KeyTaken(reply[2], reply[3].decode())
    return outcome(reply)


def _first_of_put(binding: RedisBinding, request: t.PutTasks) -> tuple[str, tuple[Any, ...]] | None:
    tasks, ids, delay, ttl, priority, tube, result_ttl, inbox, key, unique, _, awaited = request
    is_ordinary = len(tasks) == 1 and not (delay or ttl is not None or tube or key or unique)
    is_ordinary = is_ordinary and not awaited
    if not is_ordinary or not binding.put_one.is_due():
        return None
    return "put_one", (ids, encode_priority(priority), result_ttl, inbox, *tasks[0])


def _read_put_one(request: t.PutTasks, reply: Reply) -> t.PutTasksReply | None:
    if reply[0] == DONE:
        return reply[1:]
    return Outcome.MISSING if reply[0] == MISSING else None


async def _rest_of_put(
    caller: Caller, request: t.PutTasks, end: float | None, reply: Reply | None
) -> t.PutTasksReply:
    if reply is not None:
        caller.binding.put_one.close()
    return read_put(caller, request, await ask(caller, "put", put_args(caller, request), end))


does(t.PutTasks)(FirstScript(_first_of_put, _read_put_one, _rest_of_put))


def _first_of_take(
    binding: RedisBinding, request: t.TakeTasks
) -> tuple[str, tuple[Any, ...]] | None:
    """Use the fast path; with one of ``acks`` that is one script that does both, if each is
    ordinary."""
    if not request.acks:
        return None if request.tube else ("take", task_waiting.take_args(binding, request, None))
    if len(request.acks) > 1:
        return None
    (done,) = request.acks
    is_ordinary = request.limit == 1 and not request.tube and not done.record.tube
    is_ordinary = is_ordinary and not done.record.key
    if not is_ordinary or binding.keeps_processed:
        return None
    owner, call, lease = request.owner.encode(), request.call, binding.options.lease
    times, mode = (or_none(request.ttr), lease), WAIT if request.waits else NOW
    assert isinstance(done.record, PackedRecord)
    bell = binding.bell(done.record.inboxes)
    return "next", (bell, done.id, done.record.call, owner, call, *times, *done.result, mode)


def _read_taken(request: t.TakeTasks, reply: Reply) -> t.TakenTasks | None:
    if reply[0] != DONE or len(reply) == 1:
        return None
    if not request.acks:
        return None if bells_in(reply) else t.TakenTasks(read_tasks(reply[2:]))
    if bells_in(reply[1:]) or _is_idle(reply):
        return None
    return t.TakenTasks(read_tasks(reply[3:]), t.Processed("X", int(reply[1])))


def _is_idle(reply: Reply) -> bool:
    """Tell whether the reply of ``next`` says that no task is ready, so the caller may wait."""
    return len(reply) == 2 and b" " in reply[1]


async def _take(
    caller: Caller, request: t.TakeTasks, end: float | None, reply: Reply | None
) -> t.TakeTasksReply:
    if not request.acks:
        return await task_waiting.take(caller, request, end, reply)
    if reply == [DONE]:  # it was done before, and its reply was lost
        moment, tasks = await task_waiting.had(caller, request.owner, request.call, end)
        return t.TakenTasks(tasks, t.Processed("X", moment)) if moment else Outcome.MISSING
    if reply is not None and reply[0] == DONE:
        if _is_idle(reply):
            moment, _, soon = reply[1].partition(b" ")
            waiter_of(caller).begin(b"", request, end)
            later = NoTask("", int(soon) if soon else None)
            return t.TakenTasks([], t.Processed("X", int(moment)), later)
        await caller.script("ring", bells_in(reply[1:]))
        return t.TakenTasks(read_tasks(reply[3:]), t.Processed("X", int(reply[1])))
    held = [(ack.id, ack.record.call) for ack in request.acks]
    results = [(place, ack.result) for place, ack in enumerate(request.acks) if ack.result.data]
    acking = t.AckTasks(request.owner, held, results)
    reply = await ask(caller, "ack_many", _ack_many(caller.binding, acking), end)
    acked = _ACKING.read(acking, reply)
    if not isinstance(acked, t.AcknowledgedTasks):
        return acked
    caller.binding.keeps_processed = acked.processed.state != "X"
    return t.TakenTasks([], acked.processed, None, acked.refused)  # the next request takes


does(t.TakeTasks)(FirstScript(_first_of_take, _read_taken, _take))


def _edit(edit: Edit | None) -> tuple[Any, ...]:
    """Make the arguments for an edit: whether the data changes, the new data, and the digest of the
    old data."""
    if edit is None:
        return 0, b"", b""
    if edit.made_of is None:
        return 1, edit.data, b""
    return 1, edit.data, hashlib.sha1(edit.made_of, usedforsecurity=False).hexdigest()


#: The arguments for the fields of a request that settles or changes a task; any other field is an
#: argument itself.
_ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "tube": lambda tube: (b"", 0) if tube is None else (tube, 1),
    "edit": _edit,
    "priority": lambda priority: (b"" if priority is None else encode_priority(priority),),
    "result": tuple,
}


def changes(binding: RedisBinding, request: Any) -> tuple[Any, ...]:
    """Make the arguments of a script that settles or changes a task: the arguments for each field
    of the request, in order."""
    args: list[Any] = []
    for name, value in zip(request._fields, request, strict=True):
        encode = _ARGUMENTS.get(name)
        if encode is None:
            args.append(or_none(value))
        else:
            args += encode(value)
    return tuple(args)


def _read_settled(request: t.SettleRequest, reply: Reply) -> t.SettledReply:
    return settlement(request.id, reply)


def _first_of_ack(binding: RedisBinding, request: t.AckTask) -> tuple[str, tuple[Any, ...]] | None:
    id, owner, call, delay, tube, edit, whole, result = request
    if delay is not None or tube is not None or edit is not None or whole:
        return None
    return ("ack_one", (id, owner, call, *result)) if binding.ack_one.is_due() else None


def _read_ack_one(request: t.AckTask, reply: Reply) -> t.SettledReply | None:
    if reply[0] == DONE and not bells_in(reply):
        return StoredTask(request.id, PackedRecord(reply[1]), b"")
    return Outcome.MISSING if reply[0] == MISSING else None


async def _rest_of_ack(
    caller: Caller, request: t.AckTask, end: float | None, reply: Reply | None
) -> t.SettledReply:
    if reply is not None and reply[0] == DONE:
        await caller.script("ring", bells_in(reply))
        return StoredTask(request.id, PackedRecord(reply[2]), b"")
    if reply is not None:
        caller.binding.ack_one.close()
    return settlement(request.id, await ask(caller, "ack", changes(caller.binding, request), end))


does(t.AckTask)(FirstScript(_first_of_ack, _read_ack_one, _rest_of_ack))
does(t.ReleaseTask)(OneScript("release", changes, _read_settled))
does(t.BuryTask)(OneScript("bury", changes, _read_settled))
does(t.TouchTask)(OneScript("touch", changes, _read_settled))


def _ack_many(binding: RedisBinding, request: t.AckTasks) -> tuple[Any, ...]:
    tasks = request.tasks
    flat: list[Any] = [part for task in tasks for part in task]
    for place, result in request.results:
        flat += place + 1, *result
    return (request.owner, len(tasks), *flat)


def _read_acknowledged(request: t.AckTasks, reply: Reply) -> t.AckTasksReply:
    processed = t.Processed(reply[2].decode(), int(reply[3]), int(reply[4]))
    return t.AcknowledgedTasks(processed, _problems(reply[5:]))


def _problems(flat: list[Any]) -> dict[int, t.Refusal]:
    return {place - 1: _problem(why) for place, why in zip(flat[::2], flat[1::2], strict=True)}


def _problem(why: bytes) -> t.Refusal:
    if why == ABSENT:
        return Outcome.ABSENT
    return t.OtherOwner("") if why == FOREIGN else t.OtherState(why.decode())


_ACKING = OneScript("ack_many", _ack_many, _read_acknowledged)
does(t.AckTasks)(_ACKING)


def _read_changed(request: a.ChangeTask, reply: Reply) -> a.ChangeTaskReply:
    settled = settlement(request.id, reply)
    assert not isinstance(settled, t.OtherOwner)
    assert settled is not Outcome.LOST
    return settled


does(a.ChangeTask)(OneScript("change", changes, _read_changed))


def _read_kicked(request: a.KickTasks, reply: Reply) -> a.KickTasksReply:
    return a.KickedTasks(reply[2], reply[3])


does(a.KickTasks)(OneScript("kick", changes, _read_kicked))


def _read_list(request: a.ListTasks, reply: Reply) -> a.ListTasksReply:
    _, _, examined, ids, records, data = reply
    return a.ListedTasks(examined, [*map(StoredTask, ids, map(PackedRecord, records), data)])


does(a.ListTasks)(OneScript("list", fields, _read_list))


def _read_task(request: t.GetTask, reply: Reply) -> t.GetTaskReply:
    return StoredTask(request.id, PackedRecord(reply[2]), reply[3])


def _number(request: object, reply: Reply) -> int:
    return int(reply[2])


does(t.GetTask)(OneScript("peek", fields, _read_task))
does(t.CountReady)(OneScript("length", fields, _number))
does(a.TruncateTasks)(OneScript("truncate", fields, _number))


def _read_counts(request: a.GetTaskCounts, reply: Reply) -> a.GetTaskCountsReply:
    _, _, now, created, oldest, closed, flat, pauses, limited, *bound = reply
    total: dict[str, int] = {}
    tubes: dict[str, dict[str, int]] = {}
    for name, number in zip(flat[::2], flat[1::2], strict=True):
        way, _, tube = name.decode().partition(" ")
        where = tubes.setdefault(tube, {}) if tube else total
        where[way] = int(number)
    first = None if oldest == b"" else int(oldest)
    paused = read_paused(pauses)
    fields = [iter(limited)] * len(a.TaskLimit._fields)
    limits = [
        a.TaskLimit(tube.decode(), number, per, used, until, bool(each_key))
        for tube, number, per, used, until, each_key in zip(*fields)  # noqa: B905
    ]
    moments = int(now), int(created), first
    return a.TaskCounts(*moments, bool(closed), total, tubes, paused, limits, *bound)


does(a.GetTaskCounts)(OneScript("stats", fields, _read_counts))


def _renew(binding: RedisBinding, request: t.RenewTaker) -> tuple[Any, ...]:
    owner, holds, workers, watched = request
    texts = "\0".join(workers or ())
    asked = [part for task in watched for part in task]
    says = workers is not None, texts
    return (owner, binding.options.lease, holds, *says, *asked)


def _read_takers(request: t.RenewTaker, reply: Reply) -> t.RenewTakerReply:
    _, _, now, flat, *lost = reply
    leases = {owner: int(until) for owner, until in _by_owner(flat)}
    return t.Takers(int(now), leases, _problems(lost))


def _by_owner(flat: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    return zip((name.decode(errors="replace") for name in flat[::2]), flat[1::2], strict=True)


does(t.RenewTaker)(OneScript("renew", _renew, _read_takers))


def _read_workers(request: a.GetWorkers, reply: Reply) -> a.GetWorkersReply:
    _, _, now, leases, texts = reply
    return a.TakerTexts(
        int(now),
        {owner: int(until) for owner, until in _by_owner(leases)},
        {owner: text.decode(errors="replace").split("\0") for owner, text in _by_owner(texts)},
    )


does(a.GetWorkers)(OneScript("workers", fields, _read_workers))


def _requeue(binding: RedisBinding, request: t.RequeueTasks) -> tuple[Any, ...]:
    owner, report, limit, seen, call = request
    return owner, or_none(seen), or_none(call), report, limit


def _pause(binding: RedisBinding, request: t.PauseTasks) -> tuple[Any, ...]:
    return request.tube, "P" if request.paused else "R"


does(t.RequeueTasks)(OneScript("requeue", _requeue, _number))
does(t.PauseTasks)(OneScript("pause", _pause, only_status))
does(t.LimitTasks)(OneScript("limit", fields, only_status))
does(t.CloseTasks)(OneScript("close", fields, only_status))
does(t.DeleteTasks)(OneScript("delete", fields, only_status))


def _watch(binding: RedisBinding, request: r.WatchTasks) -> tuple[Any, ...]:
    return (request.inbox, len(request.ids), *request.ids)


def _close_inbox(binding: RedisBinding, request: r.CloseInbox) -> tuple[Any, ...]:
    return request.inbox, 0, 0


does(r.OpenInbox)(OneScript("inbox", fields, only_status))
does(r.CloseInbox)(OneScript("inbox", _close_inbox, only_status))
does(r.WatchTasks)(OneScript("watch", _watch, only_status))


def settlement(id: bytes, reply: Reply) -> StoredTask | t.Refusal | Changed | Lost | Missing:
    """Read the reply to a request that settles a task."""
    status = reply[0]
    if status == DONE:
        return StoredTask(id, PackedRecord(reply[2]), reply[3])
    if status == WRONG:
        return t.OtherState(reply[2].decode())
    if status == FOREIGN:
        return t.OtherOwner(reply[2].decode(errors="replace"))
    return outcome(reply)
