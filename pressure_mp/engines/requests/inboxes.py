"""Requests about inboxes, in which clients are told of tasks."""

from __future__ import annotations

from ... import states
from ..contract.replies import NoNotice, Outcome
from ..contract.task_results import (
    ABSENT,
    TAKEN,
    CloseInbox,
    InboxReply,
    OpenInbox,
    TakenNotices,
    TakeNotices,
    TakeNoticesReply,
    WatchTasks,
    WatchTasksReply,
)
from .dispatch import for_tasks
from .life import OUTCOMES, Life
from .line import Caller


@for_tasks.does(OpenInbox)
def _open(life: Life, request: OpenInbox, caller: Caller) -> InboxReply:
    life.results.open(request, life.now)
    return Outcome.DONE


@for_tasks.does(CloseInbox)
def _close(life: Life, request: CloseInbox, caller: Caller) -> InboxReply:
    life.results.close(request.inbox)
    return Outcome.DONE


@for_tasks.does(WatchTasks)
def _watch(life: Life, request: WatchTasks, caller: Caller) -> WatchTasksReply:
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


@for_tasks.does(TakeNotices)
def _take(life: Life, request: TakeNotices, caller: Caller) -> TakeNoticesReply:
    results, name = life.results, request.inbox
    if not results.renew(name, life.now):
        return Outcome.LOST
    results.have_seen(name, request.seen)
    found = results.next_notices(name, request.limit)
    return TakenNotices(found) if found else NoNotice()
