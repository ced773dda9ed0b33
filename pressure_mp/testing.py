"""Fixtures of pytest for programs that use queues: no test finds a queue of the one before.

In ``conftest.py``::

    pytest_plugins = ["pressure_mp.testing"]

Each fixture sets ``PRESSURE_URL`` for the time of a test, so that queues that are not told where
their broker is are there, also those of processes that the test starts. When the test has ended,
every queue there is deleted, but for those that were given a ``prefix`` of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from .drivers import drive
from .engines import registry
from .exceptions import QueueDoesNotExistError
from .operations.items import ItemOperations
from .operations.task_queue import TASKS
from .operations.tasks import TaskOperations
from .sync.brokers import find_address, list_queues


@pytest.fixture
def pressure_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker in the memory of this process, for threads and asyncio; its URL, ``memory://``.

    It is there at once. Items are encoded and decoded as elsewhere. Processes that the test starts
    do not have its queues.
    """
    yield from _using(monkeypatch, "memory://")


@pytest.fixture
def pressure_embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A real server, for processes that the test starts too; its URL, ``embedded://``.

    The first test that has this fixture starts it, which takes about 0.2 s, and it ends with the
    run; with pytest-xdist each of its processes has one. Needs ``pip install
    'pressure_mp[embedded]'``.
    """
    yield from _using(monkeypatch, "embedded://")


def _using(monkeypatch: pytest.MonkeyPatch, url: str) -> Iterator[str]:
    monkeypatch.setenv("PRESSURE_URL", url)
    yield url
    engine = registry.engine(find_address(url, None, None, None, None))
    for queue in list(list_queues(url=url)):
        if queue.discipline == TASKS:
            deleting = TaskOperations(queue.name).delete()
        else:
            deleting = ItemOperations(queue.name, queue.discipline).delete(True, None)
        with suppress(QueueDoesNotExistError):  # a process of the test was faster
            drive(deleting, engine.bind(queue.name, queue.discipline).session())
