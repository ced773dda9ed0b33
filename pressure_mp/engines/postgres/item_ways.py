"""The ways of requests to queues of items."""

from __future__ import annotations

from typing import Any

from ..contract import contents as c
from ..contract import fair as f
from ..contract import items as i
from ..contract import queues as q
from ..contract.replies import NoItem, NoSpace, Outcome, Unfinished
from .ways import Asked, Reply, does, fields, given, number, outcome


def _ask_put(request: i.Put, discipline: str) -> Asked:
    items, keys, overfill, has_content, waits = request
    return Asked(
        "put",
        given(overfill=overfill, has_content=has_content, waits=waits),
        items,
        keys if discipline in ("priority", "fair") else (),
    )


def _read_put(request: i.Put, reply: Reply) -> Any:
    match reply.status:
        case "added":
            return i.Added(reply.info)
        case "no_space":
            return NoSpace(reply.info)
        case "not_comparable":
            return i.NotComparable(reply.items[0])
    return outcome(request, reply)


def _ask_take(request: i.Take, discipline: str) -> Asked:
    limit, hold, until_ended, waits = request
    args = given(limit=limit, until_ended=until_ended, waits=waits)
    if hold is None:
        return Asked("take", args)
    args |= {"owner": hold.owner, "call": hold.call, "most": hold.limit}
    return Asked("take_with_hold", args | given(reader=hold.reader or None))


def _read_take(request: Any, reply: Reply) -> Any:
    match reply.status:
        case "taken":
            return i.Taken(reply.items, reply.info or ())
        case "no_item":
            return NoItem()
        case "next_is_large":
            return i.NextIsLarge()
    return outcome(request, reply)


def _ask_prefetch(request: i.Prefetch, discipline: str) -> Asked:
    reader, call, handed, kept, limit, until_ended, *_ = request
    handing = given(reader=reader, call=call, handed=handed, until_ended=until_ended)
    return Asked("prefetch", handing | {"kept": kept, "limit": limit})


def _ask_end_prefetch(request: i.EndPrefetch, discipline: str) -> Asked:
    reader, call, handed, _ = request
    return Asked("end_prefetch", {"reader": reader, "call": call, "handed": handed})


def _read_end_prefetch(request: i.EndPrefetch, reply: Reply) -> i.HandedOut:
    return i.HandedOut(reply.info if reply.status == "number" else 0)


def _ask_take_back(request: i.TakeBack, discipline: str) -> Asked:
    lane, of_call = request.call
    args = {"lane": lane, "number": of_call}
    return Asked("take_back", args | given(if_open=request.if_open))


def _read_take_back(request: i.TakeBack, reply: Reply) -> Any:
    return i.Taken(reply.items) if reply.status == "taken" else outcome(request, reply)


def _ask_requeue(request: i.Requeue, discipline: str) -> Asked:
    args = given(owner=request.owner, seen=request.seen, call=request.call)
    return Asked(
        "requeue",
        args | given(numbers=[*request.numbers] or None, handed=dict(request.handed) or None),
    )


def _read_renew(request: i.Renew, reply: Reply) -> Any:
    if reply.status != "attendance":
        return outcome(request, reply)
    return i.Attendance(**reply.info)


def _ask_open(request: q.Open, discipline: str) -> Asked:
    args = {"how": request.how.value, "bound": request.bound}
    return Asked("open", args | given(user=request.user or None))


def _read_open(request: q.Open, reply: Reply) -> Any:
    match reply.status:
        case "opened":
            return q.Opened(reply.info)
        case "existing":
            return q.Existing(reply.info)
        case "mismatch":
            return q.Mismatch("discipline", *reply.info)
    return outcome(request, reply)


def _read_join(request: q.Join, reply: Reply) -> Any:
    return Unfinished(reply.info) if reply.status == "unfinished" else outcome(request, reply)


def _read_inspection(request: q.Inspect, reply: Reply) -> Any:
    if reply.status != "inspection":
        return outcome(request, reply)
    info = reply.info
    return q.Inspection(
        now=info["now"],
        length=info["length"],
        bound=info["bound"],
        closed=info["closed"],
        has_space=not 0 < info["bound"] <= info["length"],
        deleting=False,
        producer=_end(info["producer"], info["putters"], request.limit),
        consumer=_end(info["consumer"], info["takers"], request.limit),
        partial=max(len(info["putters"]), len(info["takers"])) > request.limit + 1,
    )


def _end(last: str | None, line: list[Any], limit: int) -> q.End:
    holder = None
    for client, since, seen, lease in line[:1]:
        holder = q.RoleHolder("waiting", client, "", since, seen + lease, lease)
    behind = [q.WaitingClient(client, "", since, seen) for client, since, seen, _ in line[1:]]
    return q.End(last or "", holder, behind[:limit])


def _ask_store(request: c.StoreChunks, discipline: str) -> Asked:
    chunks = [b"".join(chunk) for chunk in request.chunks]
    return Asked("store_chunks", {"token": request.token, "first": request.first}, chunks)


def _ask_read(request: c.ReadChunks, discipline: str) -> Asked:
    args = {"token": request.token, "first": request.first, "number": len(request.rooms)}
    return Asked("read_chunks", args)


def _read_chunks(request: c.ReadChunks, reply: Reply) -> Any:
    if reply.status != "done":
        return Outcome.LOST
    for room, found in zip(request.rooms, reply.items, strict=True):
        chunk = memoryview(found)
        if chunk.nbytes != sum(view.nbytes for view in room):
            return Outcome.LOST
        for view in room:
            view[:], chunk = chunk[: view.nbytes], chunk[view.nbytes :]
    return Outcome.DONE


def _read_snapshot(request: f.GetSnapshot, reply: Reply) -> Any:
    if reply.status != "snapshot":
        return outcome(request, reply)
    pairs = [*zip(reply.items[::2], reply.items[1::2], strict=True)]
    return f.Snapshot(reply.info["length"], pairs, reply.info["current"])


def _read_items(request: Any, reply: Reply) -> Any:
    return outcome(request, reply) if reply.status == "missing" else reply.items


def _read_placed(request: i.PeekItems, reply: Reply) -> Any:
    if reply.status == "missing":
        return outcome(request, reply)
    return [i.Placed(*pair) for pair in zip(reply.items[::2], reply.items[1::2], strict=True)]


def _read_info(request: Any, reply: Reply) -> Any:
    return outcome(request, reply) if reply.status == "missing" else reply.info


def _read_stats(request: q.GetStats, reply: Reply) -> Any:
    return q.Stats(**reply.info) if reply.status == "stats" else outcome(request, reply)


does(i.Acknowledge, fields("acknowledge"), outcome)
does(
    i.SetAside,
    lambda request, _: Asked(
        "set_aside", given(owner=request.owner, number=request.number), (request.item,)
    ),
    outcome,
)
does(i.Put, _ask_put, _read_put)
does(i.Take, _ask_take, _read_take, takes=True)
does(i.TakeBack, _ask_take_back, _read_take_back, once=False)
does(i.Prefetch, _ask_prefetch, _read_take)
does(i.EndPrefetch, _ask_end_prefetch, _read_end_prefetch)
does(i.Requeue, _ask_requeue, outcome)
does(i.Renew, fields("renew"), _read_renew, once=False)
does(i.Retire, fields("retire"), outcome)
does(q.Open, _ask_open, _read_open)
does(q.CountDone, fields("count_done"), outcome)
does(q.Join, lambda request, _: Asked("join", {"waits": True}), _read_join, once=False)
does(q.SetBound, fields("set_bound"), outcome, once=False)
does(
    q.Close,
    lambda request, _: Asked("close", given(once=request.once, immediate=request.immediate)),
    outcome,
)
does(q.Delete, lambda request, _: Asked("delete", {}), outcome)
does(i.Purge, lambda request, _: Asked("purge", {}), number)
does(i.RequeueRejected, lambda request, _: Asked("requeue_rejected", {}, (request.item,)), outcome)
does(i.DropRejected, lambda request, _: Asked("drop_rejected", {}, (request.item,)), outcome)
does(i.PeekItems, fields("peek"), _read_placed, reads=True)
does(q.Inspect, fields("inspect"), _read_inspection, once=False)
does(c.StoreChunks, _ask_store, outcome, once=False)
does(c.ReadChunks, _ask_read, _read_chunks, once=False)
does(c.SweepContents, fields("sweep_contents"), lambda request, reply: False, once=False)
does(q.Enlist, fields("enlist"), outcome, once=False)
does(q.Dismiss, lambda request, _: Asked("dismiss", {"users": [*request.users]}), number)

does(q.Exists, fields("exists"), lambda request, reply: reply.info, reads=True)
does(q.GetDiscipline, fields("get_discipline"), _read_info, reads=True)
does(q.GetUsers, fields("get_users"), _read_info, reads=True)
does(q.GetLength, fields("get_length"), number, reads=True)
does(
    q.IsClosed,
    lambda request, _: Asked("is_closed", given(immediate=request.immediate)),
    _read_info,
    reads=True,
)
does(q.GetStats, fields("get_stats"), _read_stats, reads=True)
does(i.GetRejected, fields("get_rejected"), _read_items, reads=True)
does(f.GetSnapshot, fields("get_snapshot"), _read_snapshot, reads=True)
does(f.GetKeys, fields("get_keys"), _read_items, reads=True)
does(f.GetQueued, lambda request, _: Asked("get_queued", {}, (request.key,)), number, reads=True)
