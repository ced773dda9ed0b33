"""Time as it is, and no order but that in which threads come."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections.abc import Callable


class Free:
    """A driver whose jobs are done by a thread of its own, one after the other."""

    def __init__(self) -> None:
        self._jobs: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True, name="simulated network").start()

    def clock(self) -> int:
        return time.monotonic_ns() // 1000

    def step(self) -> None:
        """Others go on whenever they can."""

    def post(self, job: Callable[[], None]) -> None:
        self.after(0, job)

    def after(self, seconds: float, job: Callable[[], None]) -> None:
        with self._changed:
            heapq.heappush(self._jobs, (time.monotonic() + seconds, next(self._numbers), job))
            self._changed.notify()

    def fraction(self) -> float:
        return random.random()

    def call_back(self, callback: Callable[[], None]) -> None:
        callback()

    def wait(self, is_over: Callable[[], bool]) -> None:
        """A thread that waits does so in the binding."""

    def _run(self) -> None:
        while True:
            with self._changed:
                while (left := self._left()) is None or left > 0:
                    self._changed.wait(left)
                job = heapq.heappop(self._jobs)[2]
            job()

    def _left(self) -> float | None:
        return self._jobs[0][0] - time.monotonic() if self._jobs else None
