"""Calls of asyncio that are cancelled while the broker is slow, or says nothing."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading

import inside
import pytest
from oracle import loops
from waiting import LIMIT, Background, blocked, until

from pressure_mp import TaskQueue, aio
from pressure_mp.engines.redis import scripts

#: Bytes: its content is beside the queue.
LARGE = 1 << 19


def called(proxy, op, discipline="fifo"):
    """Whether that script was called through a proxy."""
    return scripts.load(discipline)[op].sha.encode() in proxy.requests


async def end_while_nothing_answers(server, *calls):
    """Calls that are begun, and cancelled once, while the server is stopped; it goes on later."""
    with server.stopped():
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0.1)  # they are sent
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=LIMIT)
        assert [task.done() and task.cancelled() for task in tasks] == [True] * len(calls)


KINDS = [aio.Queue, aio.JoinableQueue, aio.PriorityQueue]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_calls_that_are_cancelled_end_while_the_broker_is_silent_and_lose_nothing(
    own_server, name, kind
):
    async def main():
        q = kind(name=name, url=own_server.url, buffering=0)
        await q.put(1)
        await q.put(2)
        await end_while_nothing_answers(
            own_server, q.qsize(), q.stats(), q.get(), q.put(3), q.get()
        )
        assert sorted([await q.get(timeout=LIMIT) for _ in range(2)]) == [1, 2]
        rest = await q.get_many(10, timeout=0.1) if await q.qsize() else []
        assert rest in ([], [3])
        await q.delete()

    loops.run(main)


def test_a_loop_ends_while_the_broker_is_silent(own_server, name):
    """Its tasks are cancelled; so is what they left to be done behind them."""
    q = aio.Queue(name=name, url=own_server.url, buffering=0)

    async def main():
        await q.put(1)
        with contextlib.suppress(asyncio.TimeoutError):
            own_server.process.send_signal(signal.SIGSTOP)
            await asyncio.wait_for(q.get(), 0.1)

    async def after():
        assert await q.get(timeout=LIMIT) == 1
        await q.delete()

    try:
        loops.run(main)
    finally:
        own_server.process.send_signal(signal.SIGCONT)
    loops.run(after)


def test_an_item_goes_back_when_the_loop_ends_before_the_server_says_that_it_lacks_the_script(
    own_server, name
):
    """The server has the script that takes an item, and not yet the one that gives it back."""
    q = aio.Queue(name=name, url=own_server.url, buffering=0)

    async def main():
        await q.put_many([1, 2])
        assert await q.get() == 1
        with own_server.client() as client:
            assert client.script_exists(scripts.load("fifo")["take_back"].sha) == [False]
        own_server.process.send_signal(signal.SIGSTOP)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(q.get(), 0.1)
        going_on.start()

    async def after():
        assert await q.get(timeout=LIMIT) == 2
        await q.delete()

    going_on = threading.Timer(0.2, own_server.process.send_signal, (signal.SIGCONT,))
    loops.run(main)
    going_on.join()
    loops.run(after)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_get_that_is_cancelled_when_its_large_item_can_no_longer_go_back_returns_it(
    server, name, proxy_of, times
):
    proxy = proxy_of(server)

    async def main():
        q = aio.Queue(name=name, url=proxy.url, buffering=0)
        got = []

        async def consume():
            got.append(len(await q.get()))
            await asyncio.sleep(LIMIT)

        await q.put(bytes(LARGE))
        proxy.requests, proxy.delay = bytearray(), 0.02
        task = asyncio.ensure_future(consume())
        await loops.until(lambda: called(proxy, "sweep"))
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([task], timeout=LIMIT)
        assert task.cancelled()
        proxy.delay = 0.0
        assert got == [LARGE]
        assert await q.empty()
        await q.delete()

    loops.run(main)


def test_a_cancelled_get_requeues_the_item_it_took_and_nothing_if_it_only_waited(
    valkey, name, proxy_of
):
    proxy = proxy_of(valkey)
    proxy.requests = bytearray()

    async def main():
        async with aio.JoinableQueue(name=name, url=proxy.url) as q:
            waiting = [asyncio.ensure_future(q.get()) for _ in range(20)]
            await loops.until(lambda: inside.in_lines(inside.engine(q.sync)) == len(waiting) - 1)
            await loops.until(lambda: b"BLMOVE" in proxy.requests)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            assert not called(proxy, "requeue")
            await q.put(1)
            proxy.requests, proxy.delay = bytearray(), 0.02
            getting = asyncio.ensure_future(q.get())
            await loops.until(lambda: called(proxy, "take"))
            getting.cancel()
            await asyncio.wait([getting])
            assert called(proxy, "requeue")
            assert not inside.presence(q.sync).lease.has_doubts
            proxy.delay = 0.0
            assert await q.get() == 1
            await q.task_done()
            await q.delete()

    loops.run(main)


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("late", [False, True], ids=["with its reply", "while it tells others"])
def test_a_task_whose_put_is_cancelled_is_put_and_its_taker_told(valkey, name, proxy_of, late):
    proxy = proxy_of(valkey)
    taker = TaskQueue(name=name, url=valkey.url)
    before = blocked(valkey.client())
    taking = Background(lambda: taker.take(tube="slow"))
    until(lambda: blocked(valkey.client()) == before + 1)

    async def main():
        async with aio.TaskQueue(name=name, url=proxy.url) as queue:
            ids = []

            async def put():
                ids.append(await queue.put("data", tube="slow"))
                await asyncio.sleep(LIMIT)

            await queue.put("before", tube="other")  # from here on the server has the script
            proxy.requests, proxy.delay = bytearray(), 0.02
            putting = asyncio.ensure_future(put())
            await loops.until(
                lambda: b"LPUSH" in proxy.requests if late else called(proxy, "put", "tasks")
            )
            putting.cancel()
            await asyncio.wait([putting], timeout=LIMIT)
            assert putting.cancelled()
            return ids

    ids = loops.run(main)
    assert [taking.result().id] == ids
    taker.delete()


def test_a_put_on_its_way_is_done_and_returns_however_often_it_is_cancelled(valkey, name, proxy_of):
    """anyio cancels in each round of the loop, until the task has left the scope."""
    proxy = proxy_of(valkey)

    async def main():
        async with aio.Queue(name=name, url=proxy.url, buffering=0) as q:
            done = []

            async def put():
                await q.put("cancelled")
                done.append(True)
                await asyncio.sleep(LIMIT)

            await q.put("before")  # from here on the server has the script
            proxy.requests, proxy.delay = bytearray(), 0.02
            putting = asyncio.ensure_future(put())
            await loops.until(lambda: called(proxy, "put_at_once"))
            while not putting.done():
                putting.cancel()
                await asyncio.sleep(0)
            assert putting.cancelled()
            assert done
            proxy.delay = 0.0
            assert await q.get_many(3) == ["before", "cancelled"]
            await q.delete()

    loops.run(main)
