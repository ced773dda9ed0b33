"""The broker in memory: its queues and its samples."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ..contract.brokers import (
    AppendSample,
    AppendSampleReply,
    ExamineServer,
    ExamineServerReply,
    Finding,
    Identify,
    IdentifyReply,
    ListQueues,
    ListQueuesReply,
    QueuePage,
    QueueSummary,
    ReadSamples,
    ReadSamplesReply,
    Sample,
)
from ..contract.default_replies import default_reply
from ..contract.implementations import Implementations
from ..contract.requests import Request
from ..requests.line import Caller
from .clock import milliseconds

#: The finding about data that ends with the program.
_NOTHING_STAYS = Finding(
    "memory://",
    "this process",
    "The queues are those of one process, and end with it.",
    "Use a server, or embedded:///directory, for items that must stay.",
)


for_brokers: Implementations[MemoryBroker, []] = Implementations()


class MemoryBroker:
    """All queues of one address, and their samples."""

    def __init__(self, summaries: Callable[[], Iterable[QueueSummary]]) -> None:
        self._summaries = summaries
        self._lock = threading.Lock()
        self._identity = os.urandom(8).hex()
        self._samples: list[Sample] = []
        self._end = 0

    def call(self, request: Request, caller: Caller) -> Any:
        do = for_brokers.get(type(request))
        return default_reply(request) if do is None else do(self, request)

    @for_brokers.does(ListQueues)
    def _list(self, request: ListQueues) -> ListQueuesReply:
        return QueuePage(list(self._summaries()), "")

    @for_brokers.does(ExamineServer)
    def _examine(self, request: ExamineServer) -> ExamineServerReply:
        return [_NOTHING_STAYS]

    @for_brokers.does(Identify)
    def _identify(self, request: Identify) -> IdentifyReply:
        return self._identity

    @for_brokers.does(AppendSample)
    def _append(self, request: AppendSample) -> AppendSampleReply:
        with self._lock:
            kept, now = self._kept(), milliseconds()
            if kept and 0 <= now - kept[-1].time < request.every:
                return False
            time = max(now, kept[-1].time + 1) if kept else now
            self._samples = [*kept, Sample(time, request.data)][-request.keep :]
            self._end = now + request.ttl
            return True

    @for_brokers.does(ReadSamples)
    def _read(self, request: ReadSamples) -> ReadSamplesReply:
        with self._lock:
            return [one for one in self._kept() if one.time > request.after]

    def _kept(self) -> list[Sample]:
        return self._samples if milliseconds() < self._end else []

    def leave(self, caller: Caller) -> None:
        """Do nothing: no caller waits here."""
