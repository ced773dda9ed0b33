"""The ways of requests about results and inboxes of tasks."""

from __future__ import annotations

from typing import Any

from ..contract import task_results as r
from ..contract.replies import NoNotice
from .task_ways import decode
from .ways import Asked, Reply, does, flags, outcome


def _ask_open(request: r.OpenInbox, discipline: str) -> Asked:
    args = {"inbox": request.inbox, "lease": request.lease}
    return Asked("open_inbox", args | flags(takes=request.takes))


def _ask_watch(request: r.WatchTasks, discipline: str) -> Asked:
    return Asked("watch_tasks", {"inbox": request.inbox}, request.ids)


def _ask_take(request: r.TakeNotices, discipline: str) -> Asked:
    args = {"inbox": request.inbox, "seen": request.seen, "limit": request.limit}
    return Asked("take_notices", args | flags(waits=request.waits))


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


does(r.OpenInbox, _ask_open, outcome, once=False)
does(
    r.CloseInbox,
    lambda request, _: Asked("close_inbox", {"inbox": request.inbox}),
    outcome,
    once=False,
)
does(r.WatchTasks, _ask_watch, outcome)
does(r.TakeNotices, _ask_take, _read_notices, once=False)
