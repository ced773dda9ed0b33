"""Processes that use a queue in a file, and are killed at any moment."""

from __future__ import annotations

import itertools
import os

from pressure_mp import Queue


def _say(log: int, what: str, item: str) -> None:
    os.write(log, f"{what} {item}\n".encode())


def put(url: str, me: str, path: str) -> None:
    """Put items, singly and in batches; write down each item before its put, and again after it."""
    queue, log = Queue[str](name="queue", url=url), os.open(path, os.O_WRONLY | os.O_CREAT)
    for number in itertools.count():
        items = [f"{me}.{number}.{one}" for one in range(1 + number % 3 * 10)]
        for item in items:
            _say(log, "try", item)
        queue.put_many(items)
        for item in items:
            _say(log, "put", item)


def get(url: str, me: str, path: str) -> None:
    queue, log = Queue[str](name="queue", url=url), os.open(path, os.O_WRONLY | os.O_CREAT)
    while True:
        for item in queue.get_many(5):
            _say(log, "got", item)
