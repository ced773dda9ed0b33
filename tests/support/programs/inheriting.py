"""What processes do that inherit a queue, or are given it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from pressure_mp import BrokerError

#: How many items a child puts, one by one, together, and through a child of its own.
ITEMS = 6


def put_each_way(queue: Any, go: Any, context: Any) -> None:
    """Once told to, put items as a program can, the last ones in a child of this process."""
    assert go.wait(60)
    queue.put(("child", 0))
    queue.put_many([("child", 1), ("child", 2)])
    queue.put(("child", 3), timeout=60)
    queue.flush()
    grandchild = context.Process(target=put_last, args=(queue,))
    grandchild.start()
    grandchild.join()
    queue.close()


def put_last(queue: Any) -> None:
    queue.put(("child", 4))
    queue.put(("child", 5))
    queue.close()


def put_both(first: Any, second: Any, size: int) -> None:
    """Put bytes into one queue that are too many for memory to be shared, and then a small item."""
    first.put(bytes(size))
    second.put("small")


def log(queue: Any, number: int) -> None:
    """Log through the standard library's handler of a queue."""
    import logging
    import logging.handlers

    logger = logging.getLogger(f"child {os.getpid()}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.handlers.QueueHandler(queue))
    for count in range(number):
        logger.info("%d", count)


def poll(queue: Any, told: Any, timeout: float, until: Callable[[], bool]) -> None:
    """Get again and again, and tell of each outcome, an item or the class of an error, and how many
    seconds it took."""
    while not until():
        began = time.monotonic()
        try:
            outcome = queue.get(timeout=timeout) if timeout else queue.get_nowait()
        except Exception as error:
            outcome = type(error)
        told.send((outcome, time.monotonic() - began))


def put_and_tell_of_error(queue: Any, told: Any) -> None:
    """Put an item, and tell of the error that comes of it."""
    try:
        queue.put("never")
        queue.flush()
    except BrokerError as error:
        told.send(str(error))
