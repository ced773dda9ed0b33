"""What processes do with the items of a JoinableQueue in shared memory."""

from __future__ import annotations

import os
import signal
import warnings
from typing import Any


def get_and_keep(queue: Any, number: int, told: Any) -> None:
    """Get items, tell which, and wait to be killed."""
    told.send([queue.get() for _ in range(number)])
    while True:
        signal.pause()


def get_and_end(queue: Any, number: int) -> None:
    """Get items, and end without a call of ``task_done()``."""
    for _ in range(number):
        queue.get()


def get_and_acknowledge_when_told(queue: Any, told: Any, asked: Any) -> None:
    """Get an item, acknowledge it when asked, and tell the names of the warnings."""
    told.send(queue.get())
    asked.recv()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        queue.task_done()
    told.send([one.category.__name__ for one in caught])


def work(queue: Any, write: int) -> None:
    """Get items for ever; write each to a pipe, and acknowledge it."""
    while True:
        item = queue.get()
        os.write(write, b"%d\n" % item)
        queue.task_done()
