"""Gather tasks for a handler that is called with many of them at a time.

Each task of a batch has a worker of the run, which waits here until the handler returns. So a run
takes, looks at, acknowledges and gives back the tasks of a batch as it does others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...exceptions import ArgumentError, ArgumentTypeError
from ...numeric import integer, seconds

#: Runs on a list of tasks. Its value has the result of each task, in their order, or is None.
BatchHandler = Callable[[list[Any]], object]
AnyBatchHandler = TypeVar("AnyBatchHandler", bound=BatchHandler)


def check_batches(handler: object, size: object, wait: object) -> None:
    """Raises ArgumentError, ArgumentTypeError."""
    if not callable(handler):
        raise ArgumentTypeError(
            f"a handler is called with tasks; {type(handler).__name__} cannot be called"
        )
    integer("size", size, 1)
    if not 0 <= seconds("wait", wait) <= threading.TIMEOUT_MAX:
        raise ArgumentError(f"wait is 0 or more seconds, not {wait!r}")


def results_of(tasks: Sequence[object], returned: Any) -> Sequence[object]:
    """Return the result of each task. Raises ArgumentTypeError for anything but a
    list of as many, or None."""
    if returned is None:
        return [None] * len(tasks)
    if not isinstance(returned, (list, tuple)) or len(returned) != len(tasks):
        raise ArgumentTypeError(
            f"the handler of a batch of {len(tasks)} tasks returns None or a list of as many "
            f"results, not {returned!r:.100}"
        )
    return returned


class _Batch:
    """Tasks that the handler is called with together."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []
        self.is_full = threading.Event()
        self.is_over = threading.Event()
        self._results: Sequence[object] = ()
        self._error: BaseException | None = None

    def run(self, handler: BatchHandler) -> None:
        try:
            self._results = results_of(self.tasks, handler(list(self.tasks)))
        except BaseException as error:
            self._error = error
        self.is_over.set()

    def result(self, place: int) -> object:
        """Return the result of a task, or raise what the handler raised."""
        if self._error is not None:
            raise self._error
        return self._results[place]


class Gathering:
    """A handler of single tasks, which calls another one with up to ``size`` of them."""

    def __init__(self, size: int) -> None:
        self.size = size


class Batches(Gathering):
    """Gathers the tasks of threads."""

    def __init__(self, handler: BatchHandler, size: int, wait: float) -> None:
        check_batches(handler, size, wait)
        super().__init__(size)
        self._handler, self._wait = handler, wait
        self._lock = threading.Lock()
        self._open: _Batch | None = None  # to which tasks are added

    def __call__(self, task: Any) -> object:
        """Have the handler called with this task and others; return the result of this one. Blocks
        until the handler returns."""
        with self._lock:
            batch = self._open = self._open or _Batch()
            place = len(batch.tasks)
            batch.tasks.append(task)
            if len(batch.tasks) == self.size:
                self._open = None
                batch.is_full.set()
        if place:
            batch.is_over.wait()
        else:
            self._run(batch)
        return batch.result(place)

    def _run(self, batch: _Batch) -> None:
        """Call the handler, when the batch is full or its time is up."""
        batch.is_full.wait(self._wait)
        with self._lock:
            if self._open is batch:
                self._open = None
        batch.run(self._handler)
