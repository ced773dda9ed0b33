"""A handle is closed while another thread, or another task, waits in it for an item."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from waiting import LIMIT, Background

from pressure_mp import (
    FairQueue,
    HandleClosedError,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    SimpleQueue,
    TaskQueue,
    aio,
)

KINDS = [Queue, SimpleQueue, JoinableQueue, LifoQueue, PriorityQueue, partial(FairQueue, key=str)]


def check_that_close_ends(call, handle):
    waiting = Background(call)
    waiting.join(0.1)
    handle.close()
    with pytest.raises(HandleClosedError):
        waiting.result()


@pytest.mark.parametrize("kind", KINDS)
def test_a_get_that_waits_raises_that_its_handle_is_closed(url, name, kind):
    q, other = kind(name=name, url=url), kind(name=name, url=url)
    check_that_close_ends(q.get, q)
    other.put(1)
    assert other.get(timeout=LIMIT) == 1
    other.delete()


@pytest.mark.parametrize(
    ("kind", "options"),
    [(Queue, {"prefetch": 10}), (JoinableQueue, {"prefetch": 10}), (Queue, {"eof": "producers"})],
)
def test_a_get_that_fetches_ahead_or_counts_producers_does_so_too(url, name, kind, options):
    other = kind(name=name, url=url, **options)
    other.put("from a producer that goes on")
    q = kind(name=name, url=url, **options)
    assert q.get(timeout=LIMIT) == "from a producer that goes on"
    check_that_close_ends(q.get, q)
    other.put(1)
    assert other.get(timeout=LIMIT) == 1
    other.delete()


def test_a_take_that_waits_raises_that_its_handle_is_closed(url, name):
    q, other = TaskQueue(name, url=url), TaskQueue(name, url=url)
    check_that_close_ends(q.take, q)
    other.put(1)
    assert other.take(timeout=LIMIT).data == 1
    other.delete()


@pytest.mark.parametrize("kind", [aio.Queue, aio.JoinableQueue, aio.TaskQueue])
def test_a_task_of_asyncio_that_waits_raises_that_its_handle_is_closed(url, name, kind):
    async def main():
        q, other = kind(name=name, url=url), kind(name=name, url=url)
        waiting = asyncio.ensure_future(q.take() if kind is aio.TaskQueue else q.get())
        await asyncio.wait([waiting], timeout=0.1)
        await q.close()
        with pytest.raises(HandleClosedError):
            await asyncio.wait_for(waiting, LIMIT)
        await other.delete()

    asyncio.run(main())
