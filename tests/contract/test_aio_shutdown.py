"""A get that is cancelled while the queue is shut down loses no item: it has it or returns it."""

from __future__ import annotations

import asyncio
import sys

import pytest
from brokers.lossy import LossyProxy
from waiting import HOURS, LIMIT

from pressure_mp import aio

#: Before, ``asyncio.wait_for`` throws away what it waits for when it is cancelled.
since_3_12 = pytest.mark.skipif(sys.version_info < (3, 12), reason="the item goes back there")


@pytest.fixture
def proxy(broker):
    proxy = LossyProxy(broker.port)
    yield proxy
    proxy.stop()


class Scene:
    """A queue with one item, which one handle takes while its reply is held up; meanwhile the queue
    is shut down, and another handle is told that nothing is queued."""

    def __init__(self, kind, name, broker, proxy):
        self.name, self.proxy = name, proxy
        self.there = kind(name=name, url=broker.url)
        self.here = kind(name=name, url=broker.url.replace(str(broker.port), str(proxy.port)))

    async def play(self, work, end):
        """``work`` is the task that gets; ``end`` cancels it."""
        async with self.there, self.here:
            await self.here.put("connected")
            assert await self.here.get_many(10) == ["connected"]
            # What a get sends is prepared now: the server does it while replies are held.
            for _ in range(2):
                await self.here.put("connected")
                assert await self.here.get() == "connected"
            await self.there.put("item")
            with self.proxy.holding():
                task = asyncio.ensure_future(work(self.here))
                await asyncio.wait_for(self.taken(), LIMIT)
                await self.there.shutdown()
                with pytest.raises(aio.QueueShutDown):
                    await self.there.get()
                end(task)
                await asyncio.sleep(0)
            await asyncio.wait([task])
            left = await self.there.qsize()
            assert (await self.there.stats()).consumed_messages == 4 - left
            await self.there.delete()
            return task, left

    async def taken(self):
        while await self.there.qsize():
            await asyncio.sleep(0)


@pytest.fixture(params=[aio.Queue, aio.LifoQueue, aio.PriorityQueue])
def scene(request, name, broker, proxy, monkeypatch):
    for time in broker.trusts:  # also a slow machine sends what it has prepared
        monkeypatch.setattr(time, HOURS)
    return Scene(request.param, name, broker, proxy)


@since_3_12
def test_a_get_that_took_the_last_item_has_it_and_its_task_is_cancelled_behind(scene):
    got = []

    async def work(q):
        got.append(await q.get())
        await asyncio.sleep(HOURS)

    task, left = asyncio.run(scene.play(work, asyncio.Task.cancel))
    assert task.cancelled()
    assert (got, left) == (["item"], 0)


async def get_many(q):
    return (await q.get_many(10))[0]


async def get_in_time(q):
    return await asyncio.wait_for(q.get(), HOURS)


@since_3_12
@pytest.mark.parametrize("work", [get_many, get_in_time])
def test_a_task_that_ends_with_the_item_is_not_cancelled(scene, work):
    task, left = asyncio.run(scene.play(work, asyncio.Task.cancel))
    assert (task.result(), left) == ("item", 0)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the get has the item there")
def test_the_item_of_a_cancelled_get_is_queued_again(scene):
    async def work(q):
        return await q.get()

    task, left = asyncio.run(scene.play(work, asyncio.Task.cancel))
    assert (task.cancelled(), left) == (True, 1)
