"""The broker in memory: which queues it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...exhaustive import assert_never
from ..contract.brokers import (
    ExamineServer,
    FindIncomplete,
    Finding,
    IncompletePage,
    ListQueues,
    QueuePage,
    QueueSummary,
)
from ..contract.requests import BrokerRequest
from .line import Caller

#: What is said of what a program's memory does not keep.
_NOTHING_STAYS = Finding(
    "memory://",
    "this process",
    "The queues are those of one process, and end with it.",
    "Use a server, or embedded:///directory, for what is to stay.",
)


class MemoryBroker:
    """All queues of one address."""

    def __init__(self, summaries: Callable[[], Iterable[QueueSummary]]) -> None:
        self._summaries = summaries

    def call(self, request: BrokerRequest, caller: Caller) -> Any:
        """Do it."""
        match request:
            case ListQueues():
                return QueuePage(list(self._summaries()), "")
            case FindIncomplete():
                return IncompletePage([], "")
            case ExamineServer():
                return [_NOTHING_STAYS]
            case _:
                assert_never(request)

    def leave(self, caller: Caller) -> None:
        """Nobody waits here."""
