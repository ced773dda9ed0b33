"""The queue of items of one name: its requests are done one after the other."""

from __future__ import annotations

import threading
from typing import Any

from ..contract.brokers import QueueSummary
from ..contract.default_replies import reply_alone
from ..contract.forwarding import Forward
from ..contract.requests import Request
from ..requests import queue
from ..requests.administration import summarize
from ..requests.contents import Contents
from ..requests.line import Caller, Lines
from ..requests.state import QueueState
from .clock import milliseconds
from .forwarding import forward
from .kinds import MemoryCounter, MemorySet
from .line import MemoryLine
from .orders import STORAGES


class MemorySlot:
    """The slot of one name, with state of Python's types."""

    def __init__(self) -> None:
        self.lines = Lines(MemoryLine(), MemoryLine(), MemoryLine())
        self.state: QueueState | None = None

    def create(self, bound: int, discipline: str) -> QueueState:
        contents = Contents({}, {}, MemorySet(), milliseconds)
        storage = STORAGES[discipline]()
        self.state = QueueState(
            bound, discipline, storage, self.lines, contents, milliseconds, MemoryCounter()
        )
        return self.state

    def delete(self) -> None:
        self.state = None


class MemoryItems:
    """The queue of items of one name, and the callers that wait at it."""

    def __init__(self, existing: set[Any]) -> None:
        self.lock = threading.Lock()
        self._existing = existing  # holds this object while a queue of its name exists
        self.place = MemorySlot()

    def call(self, request: Request, caller: Caller) -> Any:
        """Do a request, atomically, and wake the callers that can be served because of it."""
        if (found := reply_alone(request)) is not None:
            return found
        if type(request) is Forward:
            return forward(self, request, caller)
        with self.lock:
            reply = queue.do(self.place, request, caller)
            (self._existing.discard if self.place.state is None else self._existing.add)(self)
        return reply

    def summary(self, name: str) -> QueueSummary | None:
        """Make the summary with which the queue is listed; None when it does not exist."""
        with self.lock:
            state = self.place.state
            return None if state is None else summarize(state, name)

    def leave(self, caller: Caller) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""
        with self.lock:
            queue.leave(self.place, caller)
