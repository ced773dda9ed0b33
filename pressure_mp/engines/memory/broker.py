"""The broker in memory: which queues it has."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ...exhaustive import assert_never
from ..contract.brokers import (
    AppendSample,
    DamagedPage,
    ExamineServer,
    FindDamaged,
    Finding,
    Identify,
    ListQueues,
    MayGet,
    QueuePage,
    QueueSummary,
    ReadSamples,
    RenewAll,
    Sample,
)
from ..contract.requests import BrokerRequest
from .clock import milliseconds
from .line import Caller

#: What is said of what a program's memory does not keep.
_NOTHING_STAYS = Finding(
    "memory://",
    "this process",
    "The queues are those of one process, and end with it.",
    "Use a server, or embedded:///directory, for items that must stay.",
)


class MemoryBroker:
    """All queues of one address, and what was noted of them."""

    def __init__(self, summaries: Callable[[], Iterable[QueueSummary]]) -> None:
        self._summaries = summaries
        self._lock = threading.Lock()
        self._identity = os.urandom(8).hex()
        self._samples: list[Sample] = []
        self._end = 0

    def call(self, request: BrokerRequest, caller: Caller) -> Any:
        """Do it."""
        match request:
            case ListQueues():
                return QueuePage(list(self._summaries()), "")
            case FindDamaged():
                return DamagedPage([], "")
            case ExamineServer():
                return [_NOTHING_STAYS]
            case Identify():
                return self._identity
            case AppendSample():
                with self._lock:
                    return self._append(request)
            case ReadSamples(after):
                with self._lock:
                    return [one for one in self._kept() if one.time > after]
            case RenewAll(queues) | MayGet(queues):
                return [None] * len(queues)
            case _:
                assert_never(request)

    def _append(self, request: AppendSample) -> bool:
        kept, now = self._kept(), milliseconds()
        if kept and 0 <= now - kept[-1].time < request.every:
            return False
        time = max(now, kept[-1].time + 1) if kept else now
        self._samples = [*kept, Sample(time, request.data)][-request.keep :]
        self._end = now + request.ttl
        return True

    def _kept(self) -> list[Sample]:
        return self._samples if milliseconds() < self._end else []

    def leave(self, caller: Caller) -> None:
        """Nobody waits here."""
