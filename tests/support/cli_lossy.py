"""The command, where multiprocessing's queues lose an item."""

from __future__ import annotations

import multiprocessing
from typing import Any

from pressure_mp.cli import main

MARK = b"lost_in_transit"

_make_queue = multiprocessing.Queue


class LossyQueue:
    """A queue of multiprocessing that loses files in which ``MARK`` occurs."""

    def __init__(self, maxsize: int) -> None:
        self._queue = _make_queue(maxsize)
        self.get = self._queue.get

    def put(self, item: Any) -> None:
        if not (isinstance(item, bytes) and MARK in item):
            self._queue.put(item)


def lossy_main() -> None:
    multiprocessing.Queue = LossyQueue  # type: ignore[assignment, misc]
    main()
