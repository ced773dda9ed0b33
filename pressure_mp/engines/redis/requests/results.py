"""Requests about inboxes, each by its script."""

from __future__ import annotations

from typing import Any

from ...contract.task_results import CloseInbox, OpenInbox, WatchTasks
from ..binding import RedisBinding
from ..implementations import does
from ..one_script import OneScript, fields, only_status


def _watch(binding: RedisBinding, request: WatchTasks) -> tuple[Any, ...]:
    return (request.inbox, len(request.ids), *request.ids)


def _close(binding: RedisBinding, request: CloseInbox) -> tuple[Any, ...]:
    return request.inbox, 0, 0


does(OpenInbox)(OneScript("inbox", fields, only_status))
does(CloseInbox)(OneScript("inbox", _close, only_status))
does(WatchTasks)(OneScript("watch", _watch, only_status))
