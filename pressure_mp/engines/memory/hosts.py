"""The anonymous queues that the processes of a host note in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contract.hosts import (
    Forget,
    ForgetReply,
    GetRemembered,
    GetRememberedReply,
    Leave,
    LeaveReply,
    QueueKey,
    Remember,
    RememberReply,
)
from ..contract.implementations import Implementations
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..requests.line import Caller

for_hosts: Implementations[MemoryHost, []] = Implementations()


class MemoryHost:
    """The anonymous queues that one host uses."""

    def __init__(self, noted: set[QueueKey], drop: Callable[[str, str], None]) -> None:
        self._noted = noted
        self._drop = drop

    def call(self, request: Request, caller: Caller) -> Any:
        return for_hosts[type(request)](self, request)

    @for_hosts.does(Remember)
    def _remember(self, request: Remember) -> RememberReply:
        self._noted.add(request.queue)
        return Outcome.DONE

    @for_hosts.does(GetRemembered)
    def _get_remembered(self, request: GetRemembered) -> GetRememberedReply:
        return sorted(self._noted)

    @for_hosts.does(Forget)
    def _forget(self, request: Forget) -> ForgetReply:
        self._noted.difference_update(request.queues)
        for name, discipline in request.queues:
            self._drop(name, discipline)
        return Outcome.DONE

    @for_hosts.does(Leave)
    def _leave(self, request: Leave) -> LeaveReply:
        return Outcome.DONE  # nothing is kept for one process

    def leave(self, caller: Caller) -> None:
        """Do nothing: no caller waits here."""
