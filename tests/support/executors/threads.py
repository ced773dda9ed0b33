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
            args = self._queue, self._is_over.is_set, None, lambda why: None, tube
            self._threads.append(Background(worker.serve, *args))

    def tell_to_end(self) -> None:
        """They end as worker processes do that are told to."""
        self._is_over.set()

    def wait(self) -> None:
        """Wait until they have ended; others may begin then. Raises what one of them raised."""
        for thread in self._threads:
            thread.result()
        self._threads.clear()
        self._is_over.clear()

    def end(self) -> None:
        """Shut the queue down, and wait until they have ended. Raises what one of them raised."""
        self.tell_to_end()
        self._queue.shutdown()
        self.wait()
