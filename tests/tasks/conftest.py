"""Fixtures of the tests of tasks."""

from __future__ import annotations

import asyncio

import engines
import pytest
from engines import Can
from waiting import LIMIT

from pressure_mp import TaskQueue, aio


@pytest.fixture
def queue(url, name):
    """A queue of tasks, which the test may delete."""
    queue = TaskQueue(name, url=url)
    yield queue
    if queue.exists():
        queue.delete()


@pytest.fixture(params=["threads", "asyncio"])
def run(request, queue):
    """Runs a handler in threads, by a queue for threads or for asyncio, until the event is set or
    the queue is shut down."""
    if request.param == "threads":
        return lambda handler, stop=None, **options: queue.run(handler, stop=stop, **options)

    async def run_on_loop(handler, stop, options):
        async with aio.TaskQueue.of(queue) as there:
            told = asyncio.Event()
            running = asyncio.ensure_future(there.run(handler, stop=told, **options))
            if stop is not None:
                await asyncio.get_running_loop().run_in_executor(None, stop.wait, LIMIT)
                told.set()
            await running

    return lambda handler, stop=None, **options: asyncio.run(run_on_loop(handler, stop, options))


@pytest.fixture(params=engines.one_of_each(Can.SERVER), ids=str)
def durable(request):
    """A server of its own that may be killed."""
    with request.param.make(durable=True).serving() as made:
        yield made
