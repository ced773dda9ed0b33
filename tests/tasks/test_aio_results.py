"""Results of tasks in asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from waiting import LIMIT

import pressure_mp
from pressure_mp import (
    EncodingError,
    QueueDoesNotExistError,
    RemoteTraceback,
    ResultTimeout,
    TaskFailed,
    TaskResult,
    aio,
)


@pytest.fixture
def run(url, name):
    """Runs a program with a queue."""

    def run(program):
        async def main():
            async with aio.TaskQueue(name, url=url) as queue:
                return await program(queue)

        return asyncio.run(main())

    yield run
    with contextlib.suppress(QueueDoesNotExistError):
        pressure_mp.TaskQueue.attach(name, url=url).delete()


def test_a_waiting_call_gets_the_result_or_the_error(run):
    async def program(queue):
        ids = await queue.put_many(range(4), result_ttl=60)
        tasks = await queue.take_many(4)
        waiting = [asyncio.ensure_future(queue.result(id)) for id in ids]
        gathered = asyncio.ensure_future(collect(queue.results(ids)))
        await tasks[0].ack(result="small")
        large = bytearray(300_000)
        tasks[1].result = large
        async with tasks[1]:
            pass
        await tasks[2].bury(error=KeyError("bad"))
        await queue.kill(ids[3])
        assert await waiting[0] == "small"
        assert await waiting[1] == large
        with pytest.raises(KeyError) as raised:
            await waiting[2]
        assert isinstance(raised.value.__cause__, RemoteTraceback)
        with pytest.raises(TaskFailed):
            await waiting[3]
        found = await gathered
        assert [one.id for one in found] == ids
        assert [one.outcome for one in found] == ["processed", "processed", "buried", "killed"]
        with pytest.raises(ResultTimeout):
            await queue.result(await queue.put(1, result_ttl=60), 0.01)

    run(program)


async def collect(results):
    return [one async for one in results]


def test_an_inbox_whose_take_is_cancelled_loses_nothing(run):
    async def program(queue):
        async with await queue.inbox() as inbox:
            for number in range(20):
                id = await queue.put(number, inbox=inbox)
                taking = asyncio.ensure_future(inbox.take())
                await asyncio.sleep(0)
                task = await queue.take()
                await asyncio.sleep(0)
                taking.cancel()
                heard = []
                with contextlib.suppress(asyncio.CancelledError):
                    heard += await taking
                await task.ack(result=number)
                while not heard or heard[-1].event == "taken":
                    heard += await inbox.take(LIMIT)
                assert [event.event for event in heard] == ["taken", "processed"]
                assert heard[-1].result == TaskResult(id, "processed", number)

    run(program)


def test_handlers_return_results(run):
    async def program(queue):
        finished = asyncio.Event()

        @queue.worker(tube="coroutine", on_error="bury")
        async def in_the_loop(task):
            if task.data == "unsaid":
                return threading.Lock()
            return task.data * 2

        @queue.worker(tube="thread")
        def in_a_thread(task):
            task.result = task.data * 3

        good, unsaid = await queue.put_many(["a", "unsaid"], tube="coroutine", result_ttl=60)
        plain = await queue.put("b", tube="thread", result_ttl=60)
        running = asyncio.ensure_future(queue.run(stop=finished))
        assert await queue.result(good, LIMIT) == "aa"
        with pytest.raises(EncodingError):
            await queue.result(unsaid, LIMIT)
        assert await queue.result(plain, LIMIT) == "bbb"
        finished.set()
        await running

    run(program)
