"""The requests about inboxes, in which clients hear of tasks."""

from __future__ import annotations

from typing import Any

from ... import states
from ...exhaustive import assert_never
from ..contract.replies import NoNotice, Outcome
from ..contract.task_results import (
    ABSENT,
    TAKEN,
    CloseInbox,
    OpenInbox,
    TakenNotices,
    TakeNotices,
    TakeNoticesReply,
    WatchTasks,
    WatchTasksReply,
)
from .life import OUTCOMES, Life
from .line import Caller
from .task_line import TaskLine


def do(
    life: Life,
    request: OpenInbox | WatchTasks | TakeNotices | CloseInbox,
    caller: Caller,
    line: TaskLine,
) -> Any:
    """One of these requests."""
    match request:
        case OpenInbox():
            life.results.open(request, life.now)
            return Outcome.DONE
        case WatchTasks():
            return _watch(life, request)
        case TakeNotices():
            return _take(life, request, caller, line)
        case CloseInbox():
            life.results.close(request.inbox)
            return Outcome.DONE
        case _:
            assert_never(request)


def _watch(life: Life, request: WatchTasks) -> WatchTasksReply:
    results, inbox = life.results, request.inbox
    if not results.renew(inbox, life.now):
        return Outcome.LOST
    for id in request.ids:
        task, kept = life.tasks.get(id), results.kept.get(id)
        if task is None:
            results.tell(inbox, id, kept.outcome if kept else ABSENT)
            continue
        if inbox not in task.inboxes:
            task.inboxes.append(inbox)
        state = task.record.state
        if state == states.TAKEN:
            results.tell(inbox, id, TAKEN, task.record)
        elif state in OUTCOMES:
            results.tell(inbox, id, OUTCOMES[state], task.record)
    return Outcome.DONE


def _take(life: Life, request: TakeNotices, caller: Caller, line: TaskLine) -> TakeNoticesReply:
    line.leave(caller)
    results, name = life.results, request.inbox
    if not results.renew(name, life.now):
        return Outcome.LOST
    results.have_seen(name, request.seen)
    found = results.next_notices(name, request.limit)
    if found:
        return TakenNotices(found)
    if request.waits:
        line.read(caller, name, results.inboxes[name].number)
    return NoNotice()
