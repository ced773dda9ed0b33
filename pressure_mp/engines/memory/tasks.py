"""The queue of tasks of one name: its requests are done one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..contract.brokers import QueueSummary
from ..contract.forwarding import Forward
from ..contract.requests import Request
from ..contract.task_records import TaskSettings
from ..requests import task_queue
from ..requests.contents import Contents
from ..requests.kinds import OwnLeases
from ..requests.life import Life, Living
from ..requests.line import Caller
from ..requests.ready_tasks import ReadyTasks
from ..requests.results import Results
from .clock import milliseconds
from .forwarding import forward
from .kinds import MemoryCounter, MemorySet
from .task_line import MemoryEnds, MemoryTaskLine


class MemoryTaskPlace:
    """The place of one name, with state of Python's types."""

    #: The broker's clock, in milliseconds since the epoch; tests set it.
    clock: Callable[[], int] = staticmethod(milliseconds)

    def __init__(self) -> None:
        self.line = MemoryTaskLine()
        self.life: Life | None = None

    def create(self, settings: TaskSettings) -> Life:
        now = self.clock()
        tasks: dict[bytes, Living] = {}
        results = Results({}, {}, {}, MemorySet(), Contents({}, {}, MemorySet(), milliseconds), {})
        lines: tuple[Any, Any] = MemorySet(), MemorySet()
        ready = ReadyTasks(tasks, settings.per_key, *lines, {}, {}, {}, {}, MemorySet())
        self.life = Life(
            settings,
            created=now,
            now=now,
            users=set(),
            tasks=tasks,
            ways=MemoryCounter(),
            presence=OwnLeases(),
            workers={},
            ends=MemoryEnds(),
            putters=self.line.putters,
            results=results,
            ready=ready,
            places=MemorySet(),
            due=MemorySet(),
            returning=MemorySet(),
        )
        return self.life

    def delete(self) -> None:
        self.life = None


class MemoryTasks:
    """The queue of tasks of one name, and the callers that wait at it."""

    def __init__(self, existing: set[Any]) -> None:
        self.lock = threading.Lock()
        self._existing = existing  # holds this object while a queue of its name exists
        self.place = MemoryTaskPlace()

    def call(self, request: Request, caller: Caller) -> Any:
        """Do a request, atomically, and wake the callers that can be served because of it."""
        if type(request) is Forward:
            return forward(self, request, caller)
        with self.lock:
            reply = task_queue.do(self.place, request, caller)
            (self._existing.discard if self.place.life is None else self._existing.add)(self)
        return reply

    def summary(self, name: str) -> QueueSummary | None:
        """Make the summary with which the queue is listed; None when it does not exist."""
        with self.lock:
            return task_queue.summarize(self.place, name)

    def leave(self, caller: Caller) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""
        with self.lock:
            task_queue.leave(self.place, caller)
