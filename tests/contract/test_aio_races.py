"""Calls of asyncio that are cancelled at random moments lose nothing and double nothing."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import suppress

import pytest
from waiting import LIMIT

from pressure_mp import aio

NUMBER = 2000
#: Seconds until a call is cancelled, at most.
SOON = 0.004

since_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio has it since 3.11")


async def cancel(call, seconds):
    """Run a call as a task, and cancel that. Returns what came of it, in a list, or none."""
    task = asyncio.ensure_future(call)
    await asyncio.wait([task], timeout=seconds)
    task.cancel()
    await asyncio.wait([task])
    return [] if task.cancelled() else [task.result()]


async def wait_for(call, seconds):
    with suppress(asyncio.TimeoutError):
        return [await asyncio.wait_for(call, seconds)]
    return []


async def timeout(call, seconds):
    found = []
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            found.append(await call)
    return found


async def task_group(call, seconds):
    """Another task of the group fails."""
    found = []

    async def run():
        found.append(await call)

    async def fail():
        await asyncio.sleep(seconds)
        raise KeyError

    with suppress(BaseExceptionGroup):  # noqa: F821  # of Python 3.11
        async with asyncio.TaskGroup() as group:
            group.create_task(run())
            group.create_task(fail())
    return found


async def cancelled_twice(call, seconds):
    """The task that waits for a call by ``wait_for`` is cancelled."""
    return [one for some in await cancel(wait_for(call, LIMIT), seconds) for one in some]


ENDINGS = [
    cancel,
    wait_for,
    cancelled_twice,
    *(pytest.param(one, marks=since_3_11) for one in (timeout, task_group)),
]


@pytest.fixture(params=[aio.Queue, aio.JoinableQueue])
def kind(request):
    return request.param


@pytest.mark.timeout(400)  # the slower the machine is, the more of the calls are cancelled
@pytest.mark.parametrize("ending", ENDINGS)
def test_gets_that_are_cancelled_lose_nothing(url, name, kind, ending):
    chance = random.Random(1)

    async def main():
        async with kind(name=name, url=url) as q:
            found = []

            async def produce():
                for first in range(0, NUMBER, 20):
                    await q.put_many(range(first, first + 10))
                    for item in range(first + 10, first + 20):
                        await q.put(item)
                await q.put(None)

            async def consume():
                while None not in found:
                    got = await ending(q.get(), chance.random() * SOON)
                    found.extend(got)
                    for _ in got if kind is aio.JoinableQueue else ():
                        await q.task_done()

            await asyncio.gather(produce(), *(consume() for _ in range(4)))
            rest = [await q.get_nowait() for _ in range(await q.qsize())]
            stats = await q.stats()
            assert stats.in_flight == (len(rest) if kind is aio.JoinableQueue else 0)
            found.remove(None)
            assert sorted([*found, *rest]) == list(range(NUMBER))
            # No role is held, and no place in line: the next call is served at once.
            await q.put("next")
            assert await q.get_nowait() == "next"
            await q.delete()

    asyncio.run(main())


@pytest.mark.parametrize(
    "ending",
    [
        one
        for one in ENDINGS
        # Before Python 3.12 wait_for does not tell that what it waits for came to its end.
        if one is not cancelled_twice or sys.version_info >= (3, 12)
    ],
)
def test_puts_that_are_cancelled_are_done_or_not(url, name, ending):
    chance = random.Random(2)

    async def main():
        async with aio.Queue(5, name, url=url) as q:
            put, found = [], []

            async def produce(producer):
                for number in range(NUMBER // 10):
                    if await ending(q.put((producer, number)), chance.random() * SOON):
                        put.append((producer, number))

            async def consume():
                while (item := await q.get()) is not None:
                    found.append(item)

            consuming = asyncio.ensure_future(consume())
            await asyncio.gather(*(produce(producer) for producer in range(4)))
            await q.put(None)
            await consuming
            assert sorted(found) == sorted(put)
            for producer in range(4):
                assert [item for item in found if item[0] == producer] == sorted(
                    item for item in put if item[0] == producer
                )
            await q.put_nowait("next")
            assert await q.get_nowait() == "next"
            await q.delete()

    asyncio.run(main())
