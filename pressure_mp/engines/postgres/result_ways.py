"""The ways of requests about results and inboxes of tasks."""

from __future__ import annotations

from typing import Any

from ..contract import task_results as r
from ..contract.replies import NoNotice
from .task_ways import decode
from .ways import Asked, Reply, does, fields, outcome


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


does(r.OpenInbox, fields("open_inbox"), outcome, once=False)
does(r.CloseInbox, fields("close_inbox"), outcome, once=False)
does(r.WatchTasks, _ask_watch, outcome)
does(r.TakeNotices, fields("take_notices"), _read_notices, once=False)
