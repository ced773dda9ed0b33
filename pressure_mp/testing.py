"""Fixtures of pytest for programs that use queues: no test finds queues of an earlier test.

In ``conftest.py``::

    pytest_plugins = ["pressure_mp.testing"]

Each fixture sets ``PRESSURE_URL`` during a test. So queues that are made without ``url`` or
``host`` use the fixture's broker, also in processes that the test starts; and so do the handles
with a name that a module made before, such as ``TaskQueue("mails")``. After the test all queues at
this broker are deleted, except those that were made with a ``prefix``; a handle of a module creates
its queue again in the next test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from .drivers import drive
from .engines import registry
from .exceptions import QueueDoesNotExistError
from .handles.attachment import named
from .operations.items import ItemOperations
from .operations.task_queue import TASKS
from .operations.tasks import TaskOperations
from .sync.brokers import find_address, list_queues


@pytest.fixture
def pressure_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give ``memory://``, a broker in the memory of this process, for threads and asyncio.

    It needs no time to start. Items are encoded and decoded as at other brokers. Processes that the
    test starts cannot reach its queues.
    """
    yield from _using(monkeypatch, "memory://")


@pytest.fixture
def pressure_embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give ``embedded://``, a real server, which processes that the test starts can reach too.

    The first test that uses this fixture starts the server, which takes about 0.2 s; it ends with
    the test run. With pytest-xdist each worker process has its own server. Needs ``pip install
    'pressure_mp[embedded]'``.
    """
    yield from _using(monkeypatch, "embedded://")


def _using(monkeypatch: pytest.MonkeyPatch, url: str) -> Iterator[str]:
    monkeypatch.setenv("PRESSURE_URL", url)
    before = {at: at.address for at in list(named) if at.is_at_default and not at.is_closed}
    for at, address in before.items():
        at.begin_at(registry.resolve(prefix=address.prefix))
    yield url
    engine = registry.engine(find_address(url, None, None, None, None))
    for queue in list(list_queues(url=url)):
        if queue.discipline == TASKS:
            deleting = TaskOperations(queue.name).delete()
        else:
            deleting = ItemOperations(queue.name, queue.discipline).delete(True, None)
        with suppress(QueueDoesNotExistError):  # a process of the test was faster
            drive(deleting, engine.bind(queue.name, queue.discipline).session())
    for at, address in before.items():
        at.begin_at(address)
