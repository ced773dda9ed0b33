"""The operations of tasks, as they are, in asyncio tasks."""

from __future__ import annotations

import asyncio

import inside
import pytest
from waiting import HOURS

from pressure_mp import Empty, ShutDown, TaskQueue
from pressure_mp.drivers import adrive
from pressure_mp.in_flight import Claim
from pressure_mp.operations.task_settling import UNCHANGED, Subject

#: No delay, the queue's own ttl, a priority, no tube.
USUAL = (0, None, 0, "")


class Twin:
    """What a queue of tasks is in asyncio: the same operations, on sessions of the same binding."""

    def __init__(self, queue):
        self._operations, self._here = inside.operations(queue), queue._here
        self._make, self._binding = queue._task, inside.binding(queue)

    async def _run(self, operation):
        return await adrive(operation, self._binding.asession())

    async def put(self, data, tube=""):
        return await self._run(self._operations.put(data, None, (*USUAL[:3], tube)))

    async def put_and_wait(self, data):
        putting = self._operations.put_and_wait(data, None, USUAL, HOURS, self._here)
        return await self._run(putting)

    async def take(self, timeout=None, tube="", ack=None):
        taking = self._operations.take(
            self._make, self._here, Claim().begin(), 1, tube, None, timeout, ack
        )
        (task,), _ = await self._run(taking)
        return task

    async def ack(self, task):
        subject = Subject(task.key, task.call, True, task.data)
        return await self._run(self._operations.ack(subject, self._here, UNCHANGED, None, None))


@pytest.fixture
def queue(url, name):
    with TaskQueue(name, url=url) as queue:
        yield queue
        queue.delete()


def test_tasks_are_put_taken_and_acknowledged(queue):
    async def work():
        twin = Twin(queue)
        ids = [await twin.put(data) for data in "abc"]
        first = await twin.take()
        second = await twin.take(ack=first)
        assert (first.state, second.data) == ("X", "b")
        gone = await twin.ack(second)
        assert gone.record.state == "X"
        third = await twin.take()
        assert third.id == ids[2]
        with pytest.raises(Empty):
            await twin.take(0.01, ack=third)

    asyncio.run(work())
    assert queue.stats().transitions == {"X-R": 3, "R-T": 3, "T-X": 3}


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("tube", ["", "a"])
def test_who_waits_is_woken(tube, queue):
    async def work():
        twin = Twin(queue)
        takers = [asyncio.ensure_future(twin.take(tube=tube)) for _ in range(3)]
        for data in range(3):
            await asyncio.sleep(0.01)
            await twin.put(data, tube)
        tasks = await asyncio.gather(*takers)
        assert sorted(task.data for task in tasks) == [0, 1, 2]
        putting = asyncio.ensure_future(twin.put_and_wait("waited for"))
        await twin.ack(await twin.take())
        task, processed = await putting
        assert (task.data, task.record.state, processed) == ("waited for", "X", True)
        waiting = asyncio.ensure_future(twin.take(tube=tube))
        await asyncio.sleep(0.01)
        queue.shutdown()
        with pytest.raises(ShutDown):
            await waiting

    asyncio.run(work())


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("tube", ["", "a"])
def test_what_woke_a_take_that_is_cancelled_is_for_another(tube, queue):
    async def work():
        twin = Twin(queue)
        for _ in range(20):
            cancelled, other = (asyncio.ensure_future(twin.take(tube=tube)) for _ in range(2))
            await asyncio.sleep(0.005)
            await twin.put("data", tube)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            if not cancelled.cancelled():
                await twin.ack(cancelled.result())
                await twin.put("data", tube)
            await twin.ack(await other)

    asyncio.run(work())
