"""The ways of requests to queues of tasks, and about their results and inboxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..contract import task_administration as a
from ..contract import task_results as r
from ..contract import tasks as t
from ..contract.replies import NoNotice, NoSpace, NoTask, Unprocessed
from ..contract.task_records import Edit, HeldTask, Record, StoredTask, TaskSettings
from .ways import Asked, Reply, Way, does, fields, given, number, outcome


def encode(text: str) -> bytes:
    """Encode a text as bytes, as it may have characters that no text in a database has."""
    return text.encode("utf-8", "surrogatepass")


def decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def _tasks(reply: Reply) -> list[StoredTask]:
    found = []
    n = len(reply.info["tasks"])
    parts = [reply.items[start : start + n] for start in range(0, 6 * n, n)] if n else [[]] * 6
    for told, id, tube, key, unique, report, data in zip(reply.info["tasks"], *parts, strict=True):
        state, priority, created, since, due, deliveries, call, owner, result_ttl = told
        urgency = float(priority)
        record = Record(
            state,
            int(urgency) if urgency.is_integer() else urgency,
            created,
            since,
            due,
            deliveries,
            call,
            decode(tube),
            owner,
            decode(report),
            result_ttl,
            decode(key),
            decode(unique),
        )
        found.append(StoredTask(id, record, data))
    return found


def _refusal(request: Any, reply: Reply) -> Any:
    match reply.status:
        case "other_state":
            return t.OtherState(reply.info)
        case "other_owner":
            return t.OtherOwner(reply.info)
    return outcome(request, reply)


def _ask_open(request: t.OpenTasks, discipline: str) -> Asked:
    args = {"how": request.how.value, "settings": asdict(request.settings)}
    return Asked("open", args | given(user=request.user or None))


def _ask_configure(request: t.ConfigureTasks, discipline: str) -> Asked:
    return Asked("configure", {name: asdict(one) for name, one in request._asdict().items()})


def _read_open(request: t.OpenTasks | t.ConfigureTasks, reply: Reply) -> Any:
    match reply.status:
        case "opened":
            return t.OpenedTasks(TaskSettings(**reply.info))
        case "existing":
            return t.ExistingTasks(TaskSettings(**reply.info))
    return outcome(request, reply)


def _ask_put(put: t.PutTasks, discipline: str) -> Asked:
    args = {"ids": put.ids, "delay": put.delay, "priority": repr(put.priority)}
    args["result_ttl"] = put.result_ttl
    args |= given(ttl=put.ttl, inbox=put.inbox or None, awaited=put.awaited, waits=put.waits)
    ids, data = zip(*put.tasks, strict=True)
    parts = [encode(put.tube), encode(put.key)]
    unique = put.unique
    if unique is not None:
        args |= {"on_conflict": unique.on_conflict, "unique_for": unique.time}
        parts += map(encode, unique.keys)
    if any(ids):
        args["chosen"] = True
        parts += ids
    parts += data
    return Asked("put", args, parts)


def _read_put(request: Any, reply: Reply) -> Any:
    match reply.status:
        case "ids":
            return reply.items
        case "there":
            return t.TaskThere(reply.items[0], reply.info)
        case "held":
            return t.KeyTaken(reply.items[0], reply.info)
        case "no_space":
            return NoSpace(reply.info)
    return outcome(request, reply)


def _ask_take(request: t.TakeTasks, discipline: str) -> Asked:
    owner, call, limit, tube, ttr, acks, waits, retries_alone, _ = request
    args: dict[str, Any] = {"owner": owner, "call": call, "limit": limit}
    args |= given(ttr=ttr, waits=waits, retries_alone=retries_alone)
    parts = [encode(tube)]
    if acks:
        held = [(ack.id, ack.record.call) for ack in acks]
        acked, ids = _acks(held, {place: ack.result for place, ack in enumerate(acks)})
        args |= acked
        parts += ids
    return Asked("take", args, parts)


def _read_take(request: t.TakeTasks, reply: Reply) -> Any:
    match reply.status:
        case "taken":
            tasks, refused = _tasks(reply), _problems(reply.info.get("refused", {}))
            later = NoTask(request.tube, reply.info["due"]) if "due" in reply.info else None
            processed = reply.info.get("processed")
            return t.TakenTasks(tasks, processed and t.Processed(*processed), later, refused)
        case "no_task":
            return NoTask(request.tube, reply.info["due"])
    return outcome(request, reply)


def _acks(
    held: Sequence[HeldTask], results: Mapping[int, r.Result]
) -> tuple[dict[str, Any], list[bytes]]:
    """Make the arguments and bytes for tasks to acknowledge."""
    args: dict[str, Any] = {"calls": [call for _, call in held]}
    parts = [id for id, _ in held]
    if any(result.data for result in results.values()):
        args["tokens"] = {place: one.token for place, one in results.items() if one.token}
        parts += [results.get(place, r.NO_RESULT).data for place in range(len(held))]
    return args, parts


def _parts(request: Any) -> tuple[dict[str, Any], list[bytes]]:
    """Make the common arguments and bytes of the requests that settle a task."""
    edit: Edit | None = request.edit
    tube = getattr(request, "tube", None)
    report = getattr(request, "report", "")
    made_of = edit.made_of if edit is not None else None
    result: r.Result = getattr(request, "result", r.NO_RESULT)
    args = given(
        tube=tube is not None,
        edit=edit is not None,
        made_of=made_of is not None,
        token=result.token or None,
    )
    parts = [request.id, encode(tube or ""), encode(report)]
    return args, [*parts, edit.data if edit is not None else b"", made_of or b"", result.data]


def _ask_settle(op: str, *names: str) -> Any:
    def ask(request: Any, discipline: str) -> Asked:
        args, parts = _parts(request)
        args |= {"owner": request.owner, "call": request.call}
        args |= given(**{name: getattr(request, name) for name in ("whole", *names)})
        if "priority" in args:  # it may be infinite, unlike a number in JSON
            args["priority"] = repr(args["priority"])
        return Asked(op, args, parts)

    return ask


def _read_task(request: Any, reply: Reply) -> Any:
    return _tasks(reply)[0] if reply.status == "task" else _refusal(request, reply)


def _ask_ack_many(request: t.AckTasks, discipline: str) -> Asked:
    args, parts = _acks(request.tasks, dict(request.results))
    return Asked("ack_many", {"owner": request.owner, **args}, parts)


def _read_ack_many(request: t.AckTasks, reply: Reply) -> Any:
    if reply.status != "acknowledged":
        return outcome(request, reply)
    processed = t.Processed(*reply.info["processed"])
    return t.AcknowledgedTasks(processed, _problems(reply.info["refused"]))


def _problems(said: Mapping[str, Any]) -> dict[int, t.Refusal]:
    return {
        int(place): _refusal(None, Reply(status, info, []))
        for place, (status, info) in said.items()
    }


def _ask_change(request: a.ChangeTask, discipline: str) -> Asked:
    args, parts = _parts(request)
    args |= {"origins": request.origins, "to": str(request.to), "delay": request.delay}
    return Asked("change", args | given(ttl=request.ttl), parts)


def _read_kick(request: a.KickTasks, reply: Reply) -> Any:
    return a.KickedTasks(*reply.info) if reply.status == "kicked" else outcome(request, reply)


def _ask_list(request: a.ListTasks, discipline: str) -> Asked:
    args = {"state": str(request.state), "start": request.start, "limit": request.limit}
    return Asked("list", args, (encode(request.tube),))


def _read_list(request: a.ListTasks, reply: Reply) -> Any:
    if reply.status != "listed":
        return outcome(request, reply)
    tasks = _tasks(reply)
    return a.ListedTasks(len(tasks), tasks)


def _read_await(request: t.AwaitTask, reply: Reply) -> Any:
    match reply.status:
        case "finished":
            *parts, said = reply.items
            tasks, token = _tasks(reply._replace(items=parts)), reply.info["token"]
            result = None if token is None else r.Result(said, token)
            return t.FinishedTask(reply.info["outcome"], tasks[0] if tasks else None, result)
        case "unprocessed":
            return Unprocessed(_tasks(reply)[0])
    return outcome(request, reply)


def _read_counts(request: a.GetTaskCounts, reply: Reply) -> Any:
    if reply.status != "counts":
        return outcome(request, reply)
    info = reply.info
    total: dict[str, int] = {}
    tubes: dict[str, dict[str, int]] = {}
    for name, count in zip(map(decode, reply.items), info["numbers"], strict=True):
        way, _, tube = name.partition(" ")
        where = tubes.setdefault(tube, {}) if tube else total
        where[way] = count
    moments = info["now"], info["created"], info["oldest"]
    limits = [a.TaskLimit(*limit) for limit in info["limits"] + info["key_limits"]]
    bound = info["maxsize"], info["putting"]
    return a.TaskCounts(*moments, info["closed"], total, tubes, info["paused"], limits, *bound)


def _ask_requeue(request: t.RequeueTasks, discipline: str) -> Asked:
    args = given(owner=request.owner, limit=request.limit, seen=request.seen, call=request.call)
    return Asked("requeue", args, (encode(request.report),))


def _ask_renew(request: t.RenewTaker, discipline: str) -> Asked:
    args = given(owner=request.owner, holds=request.holds, workers=request.workers)
    if not request.watched:
        return Asked("renew", args)
    watched, parts = _acks(request.watched, {})
    return Asked("renew", args | watched, parts)


def _read_takers(request: t.RenewTaker, reply: Reply) -> Any:
    if reply.status != "takers":
        return outcome(request, reply)
    now, leases, lost = (reply.info[name] for name in ("now", "leases", "lost"))
    return t.Takers(now, leases, _problems(lost))


def _read_workers(request: a.GetWorkers, reply: Reply) -> Any:
    return a.TakerTexts(**reply.info) if reply.status == "workers" else outcome(request, reply)


def _ask_watch(request: r.WatchTasks, discipline: str) -> Asked:
    return Asked("watch_tasks", {"inbox": request.inbox}, request.ids)


def _read_notices(request: r.TakeNotices, reply: Reply) -> Any:
    match reply.status:
        case "notices":
            parts = iter(reply.items)
            told = zip(reply.info, parts, parts, parts, strict=True)
            return r.TakenNotices([_notice(*one) for one in told])
        case "no_notice":
            return NoNotice()
    return outcome(request, reply)


def _notice(about: Any, id: bytes, error: bytes, data: bytes) -> r.Notice:
    number, event, deliveries, token = about
    result = None if token is None else r.Result(data, token)
    return r.Notice(number, id, event, deliveries, decode(error), result)


does(t.OpenTasks, _ask_open, _read_open)
does(t.ConfigureTasks, _ask_configure, _read_open)
does(t.PutTasks, _ask_put, _read_put)
#: Makes ids for tasks that are put in a transaction of the caller's: of which kind, and how many.
MAKE_IDS = Way(
    lambda request, _: Asked("make_ids", {"ids": request[0], "number": request[1]}),
    _read_put,
    once=False,
)
does(t.TakeTasks, _ask_take, _read_take)
does(t.AckTask, _ask_settle("ack", "delay"), _read_task)
does(t.ReleaseTask, _ask_settle("release", "delay", "ttl", "priority", "unbegun"), _read_task)
does(t.BuryTask, _ask_settle("bury", "ttl"), _read_task)
does(t.TouchTask, _ask_settle("touch", "increment"), _read_task)
does(t.AckTasks, _ask_ack_many, _read_ack_many)
does(a.ChangeTask, _ask_change, _read_task)
does(a.KickTasks, fields("kick"), _read_kick)
does(a.ListTasks, _ask_list, _read_list, once=False)
does(t.GetTask, lambda request, _: Asked("get", {}, (request.id,)), _read_task, once=False)
does(
    t.AwaitTask,
    lambda request, _: Asked(
        "await", given(whole=request.whole, waits=request.waits), (request.id,)
    ),
    _read_await,
)
does(
    t.CountReady,
    lambda request, _: Asked("count_ready", {}, (encode(request.tube),)),
    number,
    reads=True,
    once=False,
)
does(a.GetTaskCounts, fields("count"), _read_counts, once=False)
does(a.TruncateTasks, fields("truncate"), number)
does(t.RenewTaker, _ask_renew, _read_takers, once=False)
does(a.GetWorkers, fields("workers"), _read_workers, once=False)
does(t.RequeueTasks, _ask_requeue, number)
does(
    t.PauseTasks,
    lambda request, _: Asked("pause", given(paused=request.paused), (encode(request.tube),)),
    outcome,
)
does(
    t.LimitTasks,
    lambda request, _: Asked(
        "limit",
        {"number": request.number, "per": request.per} | given(each_key=request.each_key),
        (encode(request.tube),),
    ),
    outcome,
)
does(t.CloseTasks, fields("close"), outcome, once=False)
does(t.DeleteTasks, fields("delete"), outcome)
does(r.OpenInbox, fields("open_inbox"), outcome, once=False)
does(r.CloseInbox, fields("close_inbox"), outcome, once=False)
does(r.WatchTasks, _ask_watch, outcome)
does(r.TakeNotices, fields("take_notices"), _read_notices, once=False)
