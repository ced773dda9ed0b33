"""The command, where multiprocessing's queues lose an item, or take no more after some."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

from pressure_mp.cli import main

MARK = b"lost_in_transit"

_make_queue = multiprocessing.Queue


class LossyQueue:
    """A queue of multiprocessing that loses batches of files in which ``MARK`` occurs."""

    def __init__(self, maxsize: int) -> None:
        self._queue = _make_queue(maxsize)
        self.get = self._queue.get

    def put(self, item: Any) -> None:
        is_batch = isinstance(item, list)  # of the contents of files
        if not (is_batch and any(MARK in content for content in item if content)):
            self._queue.put(item)


class EndlessQueue:
    """A queue of multiprocessing that takes five items from a process: the next put waits for ever.
    So what works on such queues goes on until it is ended."""

    def __init__(self, maxsize: int) -> None:
        self._queue = _make_queue(maxsize)
        self._left = 5
        self.get = self._queue.get

    def put(self, item: Any) -> None:
        if not self._left:
            threading.Event().wait()
        self._left -= 1
        self._queue.put(item)


def lossy_main() -> None:
    _main_with(LossyQueue)


def endless_main() -> None:
    _main_with(EndlessQueue)


def _main_with(kind: type[Any]) -> None:
    multiprocessing.Queue = kind  # type: ignore[misc]
    main()
