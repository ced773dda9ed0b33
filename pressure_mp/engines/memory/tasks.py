"""The queue of tasks of one name, with state of Python's types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contract.task_records import TaskSettings
from ..requests.contents import Contents
from ..requests.kinds import Counts, OwnLeases
from ..requests.life import Life, Living
from ..requests.ready_tasks import ReadyTasks
from ..requests.results import Results
from ..requests.task_line import Ends
from .clock import milliseconds
from .kinds import MemorySet
from .task_line import MemoryTaskLine


class MemoryTaskPlace:
    """The place of one name, with state of Python's types."""

    #: The broker's clock, in milliseconds since the epoch; tests set it.
    clock: Callable[[], int] = staticmethod(milliseconds)

    def __init__(self) -> None:
        self.line = MemoryTaskLine()
        self.state: Life | None = None

    def create(self, settings: TaskSettings) -> Life:
        now = self.clock()
        tasks: dict[bytes, Living] = {}
        results = Results({}, {}, {}, MemorySet(), Contents({}, {}, MemorySet(), milliseconds), {})
        lines: tuple[Any, Any] = MemorySet(), MemorySet()
        ready = ReadyTasks(tasks, settings.per_key, *lines, {}, {}, {}, {}, MemorySet())
        self.state = Life(
            settings,
            created=now,
            now=now,
            users=set(),
            tasks=tasks,
            ways=Counts({}),
            presence=OwnLeases(),
            workers={},
            ends=Ends({}, {}, {}, lambda caller: caller),
            putters=self.line.putters,
            results=results,
            ready=ready,
            places=MemorySet(),
            due=MemorySet(),
            returning=MemorySet(),
        )
        return self.state

    def delete(self) -> None:
        self.state = None
