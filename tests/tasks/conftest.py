"""Fixtures of the tests of tasks."""

from __future__ import annotations

import engines
import pytest
from engines import Can

from pressure_mp import TaskQueue


@pytest.fixture
def queue(url, name):
    """A queue of tasks, which the test may delete."""
    queue = TaskQueue(name, url=url)
    yield queue
    if queue.exists():
        queue.delete()


@pytest.fixture(params=engines.one_of_each(Can.SERVER), ids=str)
def durable(request):
    """A server of its own that may be killed."""
    with request.param.make(durable=True).serving() as made:
        yield made
