"""The queue of one name: its requests are done one after the other."""

from __future__ import annotations

import threading
from typing import Any

from ..contract.brokers import QueueSummary
from ..contract.default_replies import reply_alone
from ..contract.forwarding import Forward, ForwardReply
from ..contract.requests import Request
from ..requests import forwarding, queue, task_queue
from ..requests.contents import Contents
from ..requests.dispatch import Pair, Rules
from ..requests.kinds import Counts
from ..requests.life import TaskPlace
from ..requests.line import Caller, Lines
from ..requests.state import QueueState, Slot
from .clock import milliseconds
from .kinds import MemorySet
from .line import MemoryLine
from .orders import STORAGES
from .tasks import MemoryTaskPlace


class MemorySlot:
    """The slot of one name, with state of Python's types."""

    def __init__(self) -> None:
        self.lines = Lines(MemoryLine(), MemoryLine(), MemoryLine())
        self.state: QueueState | None = None

    def create(self, bound: int, discipline: str) -> QueueState:
        contents = Contents({}, {}, MemorySet(), milliseconds)
        storage = STORAGES[discipline]()
        self.state = QueueState(
            bound, discipline, storage, self.lines, contents, milliseconds, Counts({})
        )
        return self.state

    def delete(self) -> None:
        self.state = None


class NamedQueue:
    """The queue of one name, of items or of tasks, and the callers that wait at it."""

    def __init__(self, has_tasks: bool, existing: set[NamedQueue]) -> None:
        self._lock = threading.Lock()
        self._existing = existing  # holds this object while a queue of its name exists
        self._rules: Rules = task_queue if has_tasks else queue
        self.place: Slot | TaskPlace = MemoryTaskPlace() if has_tasks else MemorySlot()

    def call(self, request: Request, caller: Caller) -> Any:
        if (found := reply_alone(request)) is not None:
            return found
        if type(request) is Forward:
            return self._forward(request, caller)
        with self._lock:
            reply = self._rules.do(self.place, request, caller)
            (self._existing.discard if self.place.state is None else self._existing.add)(self)
        return reply

    def _forward(self, request: Forward, caller: Caller) -> ForwardReply:
        source: NamedQueue = request.source.queue
        pair = Pair(source.place, self.place)
        if source is self:
            with self._lock:
                return forwarding.forward(pair, request, caller)
        first, second = sorted((source, self), key=id)  # any two calls in the same order
        with first._lock, second._lock:
            return forwarding.forward(pair, request, caller)

    def summary(self, name: str) -> QueueSummary | None:
        with self._lock:
            return self._rules.summarize(self.place, name)

    def leave(self, caller: Caller) -> None:
        with self._lock:
            self._rules.leave(self.place, caller)
