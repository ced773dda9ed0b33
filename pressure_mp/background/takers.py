"""This process as one that takes tasks: what it has of a queue, and what others left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

from ..effects import Operation
from ..engines.contract.session import Engine, Options
from ..engines.contract.task_records import Held
from ..identity.processes import incarnation, state
from ..in_flight import Claim
from ..operations.task_leases import TaskLeaseOperations
from ..operations.task_queue import TASKS
from .presence import Presence, find, is_over

_GONE = "the process that had taken it ended"
_SILENT = "the process that had taken it did not answer for longer than its lease"
_LOST = "it was taken, but the reply did not come through"


class Takers(Presence):
    """This process in a queue of tasks, and the other takers, as it sees them."""

    def __init__(self, engine: Engine, name: str, discipline: str) -> None:
        super().__init__(engine, name, discipline)
        self._tasks = TaskLeaseOperations(name)

    def reset(self) -> None:
        super().reset()
        self._guard = threading.Lock()
        #: Of each task that this process has: the number of the take, and how long that can last,
        #: on the monotonic clock.
        self._held: dict[bytes, tuple[int, float]] = {}

    @property
    def is_needed(self) -> bool:
        return super().is_needed or (not self._is_gone and self._holds())

    def _holds(self) -> bool:
        with self._guard:
            self._forget_overdue()
            return bool(self._held)

    def _forget_overdue(self) -> None:
        now = time.monotonic()
        for task in [task for task, (_, until) in self._held.items() if until < now]:
            del self._held[task]

    def call_of(self, task: bytes) -> int:
        """The number of the take that has a task, 0 when this process does not have it."""
        return self._held.get(task, (0, 0.0))[0]

    def _drop(self, claim: Claim) -> None:
        with self._guard:
            self._lose([(task, claim.call) for task in self._held])

    def _requeue_of(self, call: int) -> Operation[Any]:
        return self._tasks.requeue(incarnation(), _LOST, call=call)

    def keep(
        self, tasks: Iterable[bytes], call: int, longest: int, done: Held | None = None
    ) -> None:
        """This process has these tasks, by the take of that number, for so many milliseconds; and
        no more the one that is done."""
        until = time.monotonic() + longest / 1000 + 1 if longest else float("inf")
        with self._guard:
            if done is not None and self.call_of(done[0]) == done[1]:
                del self._held[done[0]]
            for task in tasks:
                self._held[task] = call, until
        self.look_after()

    def lose(self, tasks: Iterable[Held]) -> None:
        """This process does not have the tasks any more by those takes."""
        with self._guard:
            self._lose(tasks)

    def _lose(self, tasks: Iterable[tuple[bytes, int]]) -> None:
        for task, call in tasks:
            if task in self._held and self.call_of(task) == call:
                del self._held[task]

    def _renew_and_return(self) -> None:
        me = incarnation()
        self._requeue_doubtful()
        there = self.run_now(self._tasks.renew(me, self._holds()))
        for other, until in self._in_turn(there.leases):
            if other != me and is_over(other, until, there.now):
                error = _GONE if state(other) == "dead" else _SILENT
                self.run_now(self._tasks.requeue(other, error, seen=until))

    @property
    def _has_something(self) -> bool:
        return bool(self._held or self._doubtful)

    def _say_farewell(self, options: Options) -> None:
        self._options = options
        self.reset()
        self.run_now(self._tasks.requeue(incarnation(), _GONE))


def of(engine: Engine, name: str, lease: int) -> Takers:
    """This process in the queue of tasks of that name; does no I/O."""
    return find(Takers, engine, name, TASKS, lease)
