"""Processes that tell each other by ``None`` that nothing more comes."""

from __future__ import annotations

from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any


def produce(pipe: Connection, q: Any, items: Iterable[int], marks: int) -> None:
    """Put these, and so many ``None`` behind them."""
    for item in items:
        q.put(item)
    for _ in range(marks):
        q.put(None)


def consume(pipe: Connection, q: Any) -> None:
    """Get until the first ``None``; tell what came before it."""
    pipe.send(list(iter(q.get, None)))


def consume_and_pass_on(pipe: Connection, q: Any) -> None:
    """The same, and put the ``None`` back for the next one."""
    found = list(iter(q.get, None))
    q.put(None)
    pipe.send(found)


def work(pipe: Connection, tasks: Any, results: Any) -> None:
    """Put a result for each task until the first ``None``, and that behind the results."""
    for task in iter(tasks.get, None):
        results.put(task)
    results.put(None)


def work_until_joined(pipe: Connection, tasks: Any, results: Any) -> None:
    """Put a result for each task, then say that it is done; the first ``None`` is the end."""
    while True:
        task = tasks.get()
        if task is not None:
            results.put(task)
        tasks.task_done()
        if task is None:
            return
