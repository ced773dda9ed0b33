"""Requests about inboxes, each by its script."""

from __future__ import annotations

from typing import Any

from ...contract.replies import Outcome
from ...contract.task_results import (
    CloseInbox,
    InboxReply,
    OpenInbox,
    WatchTasks,
    WatchTasksReply,
)
from ..binding import RedisBinding
from ..implementations import does
from ..one_script import OneScript
from ..statuses import DONE, LOST, Reply


def _read_done(request: object, reply: Reply) -> InboxReply:
    return Outcome.DONE if reply[0] == DONE else Outcome.MISSING


def _watch(binding: RedisBinding, request: WatchTasks) -> tuple[Any, ...]:
    return (request.inbox, len(request.ids), *request.ids)


def _read_watched(request: WatchTasks, reply: Reply) -> WatchTasksReply:
    return Outcome.LOST if reply[0] == LOST else _read_done(request, reply)


does(OpenInbox)(
    OneScript[OpenInbox, InboxReply](
        "inbox", lambda _, request: (request.inbox, request.lease, int(request.takes)), _read_done
    )
)
does(CloseInbox)(
    OneScript[CloseInbox, InboxReply]("inbox", lambda _, request: (request.inbox, 0, 0), _read_done)
)
does(WatchTasks)(OneScript("watch", _watch, _read_watched))
