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
)
from ..contract.default_replies import default_reply
from ..contract.implementations import Implementations
from ..contract.requests import Request
from ..requests import samples
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
        self._samples: dict[int, bytes] = {}
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
            now = self._forget_old_samples()
            is_added = samples.append(self._samples, request, now)
            if is_added:
                self._end = now + request.ttl
            return is_added

    @for_brokers.does(ReadSamples)
    def _read(self, request: ReadSamples) -> ReadSamplesReply:
        with self._lock:
            self._forget_old_samples()
            return samples.read(self._samples, request)

    def _forget_old_samples(self) -> int:
        """Forget all samples if their time is over; return the time now."""
        now = milliseconds()
        if now >= self._end:
            self._samples.clear()
        return now

    def leave(self, caller: Caller) -> None:
        """Do nothing: no caller waits here."""
