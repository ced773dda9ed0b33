"""Executors in asyncio."""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import threading
import time
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest
from brokers.servers import Server
from executors import functions
from executors.threads import Workers
from waiting import LIMIT, until

from pressure_mp import BrokerUnavailable, ExecutorShutDown, Full, TaskNotFound, aio
from pressure_mp.executor.call_queue import CallQueue


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


def test_a_task_that_is_cancelled_takes_its_call_back(url, name, tmp_path):
    async def main():
        executor = aio.Executor(0, name, url=url)
        waiting = asyncio.create_task(executor.submit(functions.note, str(tmp_path / "runs")))
        queue = (await executor._opened())._queue
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
        await executor.shutdown()
        queue.delete()

    asyncio.run(main())


def test_calls_that_are_submitted_when_the_loop_ends_are_taken_back(
    executor, url, monkeypatch, caplog
):
    put, at_broker, left = CallQueue.put_calls, threading.Event(), []

    def put_slowly(self, *call):
        at_broker.set()
        time.sleep(0.3)
        put(self, *call)

    async def main():
        other = await aio.Executor.attach(executor.name, url=url)
        left.append(await other._opened())
        waiting = asyncio.create_task(other.submit(abs, -1))
        await asyncio.to_thread(at_broker.wait)
        assert not waiting.done()

    monkeypatch.setattr(CallQueue, "put_calls", put_slowly)
    asyncio.run(main())
    until(lambda: executor._queue.stats().transitions["R-X"] == 1)
    assert executor._queue.qsize() == 0
    left[0].shutdown()
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_an_executor_that_could_not_be_opened_is_opened_by_the_next_call(name):
    server = Server("valkey")
    server.start()
    server.kill()

    async def main():
        executor = aio.Executor(0, name, url=server.url, reconnect=0)
        with pytest.raises(BrokerUnavailable):
            await executor.open()
        await asyncio.to_thread(server.start)
        async with executor:
            assert await executor.open() is executor

    asyncio.run(main())
    server.stop()


def test_an_executor_whose_opening_fails_when_no_task_waits_any_more_says_nothing(name, caplog):
    async def main():
        executor = aio.Executor(0, name, url="redis://127.0.0.1:1/0", reconnect=0.2)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(executor.open(), 0.05)
        await asyncio.wait({executor._opening})

    asyncio.run(main())
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_a_call_that_cannot_be_withdrawn_is_logged(name, caplog):
    server = Server("valkey").start()

    async def main():
        executor = aio.Executor(0, name, url=server.url, reconnect=0.2)
        waiting = asyncio.create_task(executor.submit(abs, -1))
        client = (await executor._opened())._manager.client
        await asyncio.to_thread(until, lambda: client.pending and not client._on_the_way)
        server.kill()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        said = "the call of a cancelled task could not be withdrawn"
        await asyncio.to_thread(until, lambda: said in caplog.text)
        await asyncio.to_thread(server.start)
        await executor.shutdown(wait=False)
        for thread in client._threads:
            await asyncio.to_thread(thread.join, LIMIT)
            assert not thread.is_alive()

    asyncio.run(main())
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]
    server.stop()


@asynccontextmanager
async def full(name, url):
    """An executor with a call for which it has no worker, and ten tasks that wait for space."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    executor = aio.Executor(0, name, url=url, max_pending=1)
    first = asyncio.create_task(executor.submit(abs, -100))
    queue = (await executor._opened())._queue
    await asyncio.to_thread(until, lambda: queue.qsize() == 1)
    waiting = [asyncio.create_task(executor.submit(abs, -number)) for number in range(10)]
    await asyncio.to_thread(int)  # they have begun, and left a thread
    yield executor, first, waiting
    await executor.shutdown()
    queue.delete()


def test_tasks_that_wait_for_space_need_no_thread_and_can_be_cancelled(url, name):
    async def main():
        async with full(name, url) as (executor, first, waiting):
            queue = (await executor._opened())._queue
            with pytest.raises(Full):
                await executor.options(block=False).submit(abs, -1)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            first.cancel()
            await asyncio.to_thread(until, lambda: queue.qsize() == 0)
            assert queue.stats().transitions["X-R"] == 1

    asyncio.run(main())


def test_tasks_that_wait_for_space_submit_when_calls_are_taken(url, name):
    async def main():
        async with full(name, url) as (executor, first, waiting):
            waiting.pop(0).cancel()
            workers = Workers((await executor._opened())._queue)
            workers.begin()
            assert await asyncio.gather(first, *waiting) == [100, *range(1, 10)]
            workers.end()

    asyncio.run(main())


def test_tasks_that_wait_for_space_fail_when_the_executor_is_shut_down(url, name):
    async def main():
        async with full(name, url) as (executor, first, waiting):
            await executor.shutdown(wait=False, cancel_futures=True)
            found = await asyncio.gather(first, *waiting, return_exceptions=True)
            assert isinstance(found[0], futures.CancelledError)
            assert {type(error) for error in found[1:]} == {ExecutorShutDown}

    asyncio.run(main())


def test_a_coroutine_that_a_worker_runs_goes_on_when_its_task_is_cancelled(
    executor, workers, url, tmp_path
):
    running, go_on = str(tmp_path / "running"), tmp_path / "go on"
    workers.begin()

    async def main():
        async with await aio.Executor.attach(executor.name, url=url) as other:
            waiting = asyncio.create_task(
                other.submit(functions.hold_event_loop, running, str(go_on))
            )
            await asyncio.to_thread(until, lambda: functions.runs(running))
            (call,) = await asyncio.to_thread(executor._queue.list)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            again = asyncio.create_task(other.result(call.id))
            go_on.touch()
            assert await again == "held"
            assert await other.submit(functions.double, 21) == 42

    asyncio.run(main())


def test_the_result_of_a_call_is_awaited_by_its_id(executor, workers, url):
    done, failed, late = (executor.submit(divmod, 1, number) for number in (1, 0, 2))

    async def main():
        async with await aio.Executor.attach(executor.name, url=url) as other:
            waiting = asyncio.create_task(other.result(late.id))
            await asyncio.sleep(0)
            workers.begin()
            assert await waiting == (0, 1)
            assert await other.result(done.id) == (1, 0)
            with pytest.raises(ZeroDivisionError):
                await other.result(failed.id)
            with pytest.raises(TaskNotFound):
                await other.result("nobody-1")

    asyncio.run(main())


def test_a_call_has_an_id_by_which_another_waits_for_it(executor, workers, url):
    async def main():
        options = {"url": url}
        async with (
            await aio.Executor.attach(executor.name, **options) as one,
            await aio.Executor.attach(executor.name, **options) as other,
        ):
            calls = [one.submit(divmod, 7, 2), one.options(priority=-1).submit(divmod, 8, 2)]
            assert len({call.id for call in calls}) == 2
            with pytest.raises(TaskNotFound):  # a call is submitted when it is awaited
                await other.result(calls[0].id)
            submitted = [asyncio.create_task(call) for call in calls]
            await asyncio.to_thread(until, lambda: executor._queue.qsize() == 2)
            waiting = [asyncio.create_task(other.result(call.id)) for call in calls]
            workers.begin()
            assert await asyncio.gather(*submitted) == [(3, 1), (4, 0)]
            assert await asyncio.gather(*waiting) == [(3, 1), (4, 0)]
            with pytest.raises(RuntimeError):
                await calls[0]

    asyncio.run(main())


def test_a_future_keeps_nothing_of_waits_that_were_cancelled(executor, url):
    id = executor.submit(abs, -1).id

    async def main():
        other = await aio.Executor.attach(executor.name, url=url)
        for _ in range(5):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(other.result(id), 0.05)
        assert not (await other._opened()).future(id)._done_callbacks
        await other.shutdown(wait=False)

    asyncio.run(main())


def test_a_cancelled_wait_for_a_result_by_its_id_leaves_the_call(executor, workers, url):
    future = executor.submit(divmod, 7, 2)

    async def main():
        async with await aio.Executor.attach(executor.name, url=url) as other:
            waiting = asyncio.create_task(other.result(future.id))
            client = (await other._opened())._manager.client
            await asyncio.to_thread(until, lambda: client.pending)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(other.result(future.id), 0.01)
            assert await asyncio.to_thread(executor._queue.qsize) == 1
            workers.begin()
            assert await other.result(future.id) == (3, 1)

    asyncio.run(main())
    assert future.result() == (3, 1)
