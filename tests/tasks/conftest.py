"""Fixtures of the tests of tasks."""

from __future__ import annotations

import pytest

from pressure_mp import TaskQueue


@pytest.fixture
def queue(url, name):
    """A queue of tasks, which the test may delete."""
    queue = TaskQueue(name, url=url)
    yield queue
    if queue.exists():
        queue.delete()
