"""Executors in asyncio."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing

import pytest
from executors import functions
from waiting import until

from pressure_mp import TaskNotFound, aio


@pytest.fixture
def options(valkey):
    return {"url": valkey.url, "mp_context": multiprocessing.get_context("forkserver")}


def test_calls_are_awaited(options):
    async def main():
        async with aio.Executor(1, **options) as executor:
            assert await executor.submit(functions.double, 21) == 42
            with pytest.raises(ZeroDivisionError):
                await executor.submit(divmod, 1, 0)
            results = [
                one
                async for one in executor.map(pow, range(6), range(6), chunksize=2, buffersize=2)
            ]
            assert results == list(map(pow, range(6), range(6)))
            urgent = executor.options(priority=-1)
            assert await asyncio.gather(*(urgent.submit(abs, -n) for n in range(3))) == [0, 1, 2]

    asyncio.run(main())


def test_a_task_that_is_cancelled_takes_its_call_back(options, name, tmp_path):
    async def main():
        executor = aio.Executor(0, name, **options)
        waiting = asyncio.create_task(executor.submit(functions.note, str(tmp_path / "runs")))
        queue = (await executor._submitter())._queue
        await asyncio.to_thread(until, lambda: queue.qsize() == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.to_thread(until, lambda: queue.qsize() == 0)
        results = executor.map(abs, itertools.count(), buffersize=2)
        waiting = asyncio.create_task(anext(results))
        await asyncio.to_thread(until, lambda: queue.qsize() >= 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.to_thread(until, lambda: queue.qsize() == 0)
        with pytest.raises(TaskNotFound):
            await executor.result("nobody-1")
        await executor.shutdown()
        queue.delete()

    asyncio.run(main())
