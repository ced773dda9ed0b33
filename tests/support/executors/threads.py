"""Workers of an executor that are threads of the test."""

from __future__ import annotations

import threading
from typing import Any

from waiting import Background

from pressure_mp.executor import worker


class Workers:
    """Threads that do what worker processes do. They begin when the test says so."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._is_over = threading.Event()
        self._threads: list[Background] = []

    def begin(self, number: int = 1, tube: str | None = None) -> None:
        """Have so many more, for calls of a tube or for all."""
        for _ in range(number):
            args = self._queue, self._is_over.is_set, None, lambda task: None, tube
            self._threads.append(Background(worker.serve, *args))

    def end(self) -> None:
        """Shut the queue down, and wait until they have ended. Raises what one of them raised."""
        self._is_over.set()
        self._queue.shutdown()
        for thread in self._threads:
            thread.result()
