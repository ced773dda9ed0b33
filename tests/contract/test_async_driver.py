"""The cut: the same FIFO operations under the asyncio driver, on every engine and server."""

from __future__ import annotations

import asyncio
import time

import pytest
import waiting
from oracle import loops
from oracle.clients import Client

from pressure_mp.exceptions import Empty, Full, QueueDoesNotExistError, ShutDown


@pytest.fixture
def client(url, name):
    """One queue, not yet opened."""
    return Client(url, name, lease=int(3000 * waiting.HOURS))


async def parked(client, number):
    """Wait until so many operations are parked."""
    await loops.until(lambda: client.waiters() == number)


def test_items_come_out_in_the_order_they_went_in(client):
    async def main():
        await client.aopen()
        for item in [b"1", b"2", b"", b"\x00\xff"]:
            await client.aput(item)
        assert await client.alength() == 4
        return [await client.aget() for _ in range(4)]

    assert loops.run(main) == [b"1", b"2", b"", b"\x00\xff"]


def test_a_bounded_queue_holds_a_fast_producer_back(client):
    """At no moment is the producer further ahead than the bound and the item in its hands."""

    async def main():
        await client.aopen(3)
        ahead, most = 0, 0

        async def produce():
            nonlocal ahead, most
            for number in range(100):
                await client.aput(b"%d" % number)
                ahead += 1
                most = max(most, ahead)
            await client.aclose()

        async def consume():
            nonlocal ahead
            await parked(client, 1)  # the producer is as far ahead as it may be
            got = []
            try:
                while True:
                    got.append(await client.aget())
                    ahead -= 1
            except ShutDown:
                return got

        _, got = await asyncio.gather(produce(), consume())
        assert got == [b"%d" % number for number in range(100)]
        return most

    # One more when the consumer's task has its item but did not run yet.
    assert 3 <= loops.run(main) <= 4


def test_a_put_waits_for_space_and_a_get_for_an_item(client):
    async def main():
        await client.aopen(1)
        await client.aput(b"first")
        putting = asyncio.ensure_future(client.aput(b"second"))
        done, _ = await asyncio.wait([putting], timeout=0.1)
        assert not done
        assert await client.aget() == b"first"
        await putting
        assert await client.aget() == b"second"
        getting = asyncio.ensure_future(client.aget())
        done, _ = await asyncio.wait([getting], timeout=0.1)
        assert not done
        await client.aput(b"third")
        assert await getting == b"third"

    loops.run(main)


@pytest.mark.parametrize("timeout", [0, 0.2])
def test_a_timeout_lasts_as_long_as_it_says(client, timeout):
    async def main():
        await client.aopen(1)
        begin = time.monotonic()
        with pytest.raises(Empty):
            await client.aget(timeout=timeout)
        middle = time.monotonic()
        await client.aput(b"x")
        with pytest.raises(Full):
            await client.aput(b"y", timeout=timeout)
        end = time.monotonic()
        assert timeout <= middle - begin
        assert timeout <= end - middle
        assert await client.aget(block=False) == b"x"
        with pytest.raises(Empty):
            await client.aget(block=False)

    loops.run(main)


def test_waiting_tasks_are_served_in_the_order_they_came(client):
    async def main():
        await client.aopen()
        served = []

        async def consume(number):
            served.append((number, await client.aget()))

        tasks = []
        for number in range(5):
            tasks.append(asyncio.ensure_future(consume(number)))
            await parked(client, number + 1)
        for count, item in enumerate([b"a", b"b", b"c", b"d", b"e"], 1):
            await client.aput(item)
            await loops.until(lambda count=count: len(served) == count)
        await asyncio.gather(*tasks)
        return served

    assert loops.run(main) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"), (4, b"e")]


def test_waiting_producers_are_served_in_the_order_they_came(client):
    async def main():
        await client.aopen(1)
        await client.aput(b"0")
        tasks = []
        for number in range(1, 5):
            tasks.append(asyncio.ensure_future(client.aput(b"%d" % number)))
            await parked(client, number)
        got = [await client.aget() for _ in range(5)]
        await asyncio.gather(*tasks)
        return got

    assert loops.run(main) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_task_that_waits_leaves_the_loop_free(client):
    async def main():
        await client.aopen()
        getting = asyncio.ensure_future(client.aget())
        await parked(client, 1)  # which itself lets the loop run
        await client.aput(b"x")
        assert await getting == b"x"

    loops.run(main)


@pytest.mark.usefixtures("no_ticks")
def test_close_wakes_every_task_and_lets_the_rest_be_drained(client):
    async def main():
        await client.aopen(1)
        await client.aput(b"last")
        putting = [asyncio.ensure_future(client.aput(b"never")) for _ in range(3)]
        await parked(client, 3)
        await client.aclose()
        errors = await asyncio.gather(*putting, return_exceptions=True)
        assert [type(error) for error in errors] == [ShutDown] * 3
        assert await client.aget() == b"last"
        with pytest.raises(ShutDown):
            await client.aget()

    loops.run(main)


@pytest.mark.usefixtures("no_ticks")
def test_close_wakes_every_waiting_get(client):
    async def main():
        await client.aopen()
        getting = [asyncio.ensure_future(client.aget()) for _ in range(4)]
        await parked(client, 4)
        await client.aclose()
        errors = await asyncio.gather(*getting, return_exceptions=True)
        assert [type(error) for error in errors] == [ShutDown] * 4

    loops.run(main)


@pytest.mark.usefixtures("no_ticks")
def test_delete_wakes_every_task(client):
    async def main():
        await client.aopen(1)
        getting = [asyncio.ensure_future(client.aget()) for _ in range(3)]
        await parked(client, 3)
        await client.adelete()
        errors = await asyncio.gather(*getting, return_exceptions=True)
        assert [type(error) for error in errors] == [QueueDoesNotExistError] * 3
        with pytest.raises(QueueDoesNotExistError):
            await client.aput(b"x")

    loops.run(main)


def test_join_waits_until_every_item_is_done(client):
    async def main():
        await client.aopen()
        await client.aput(b"1")
        await client.aput(b"2")
        assert await client.ajoin(timeout=0.05) is False
        joining = [asyncio.ensure_future(client.ajoin()) for _ in range(2)]
        await parked(client, 2)
        for _ in range(2):
            assert not any(task.done() for task in joining)
            await client.aget()
            await client.atask_done()
        assert await asyncio.gather(*joining) == [True, True]

    loops.run(main)


def test_many_tasks_lose_and_invent_nothing(client):
    async def main():
        await client.aopen(5)
        got = []

        async def produce(producer):
            for number in range(50):
                await client.aput(b"%d:%d" % (producer, number))

        async def consume():
            mine = []
            try:
                while True:
                    mine.append(await client.aget())
            except ShutDown:
                got.extend(mine)
                return mine

        consuming = [asyncio.ensure_future(consume()) for _ in range(8)]
        await asyncio.gather(*(produce(producer) for producer in range(8)))
        await client.aclose()
        for mine in await asyncio.gather(*consuming):
            for producer in range(8):
                theirs = [item for item in mine if item.startswith(b"%d:" % producer)]
                assert theirs == sorted(theirs, key=lambda item: int(item.split(b":")[1]))
        stats = await client.astats()
        assert (stats.length, stats.produced_messages, stats.consumed_messages) == (0, 400, 400)
        return got

    assert sorted(loops.run(main)) == sorted(
        b"%d:%d" % (producer, number) for producer in range(8) for number in range(50)
    )


def test_tasks_and_threads_wait_for_each_other_on_one_queue(client):
    """A thread's put wakes a task, a task's get makes room for a thread, and the other way."""
    client.open(1)

    def produce():
        for number in range(50):
            client.put(b"%d" % number)

    async def main():
        thread = waiting.Background(produce)
        got = [await client.aget() for _ in range(50)]
        await asyncio.to_thread(thread.result)
        return got

    assert loops.run(main) == [b"%d" % number for number in range(50)]

    async def other_way():
        thread = waiting.Background(lambda: [client.get() for _ in range(50)])
        for number in range(50):
            await client.aput(b"%d" % number)
        return await asyncio.to_thread(thread.result)

    assert loops.run(other_way) == [b"%d" % number for number in range(50)]


def test_tasks_and_threads_stand_in_one_line(client):
    client.open()

    async def main():
        tasks = [asyncio.ensure_future(client.aget())]
        await parked(client, 1)
        thread = waiting.Background(client.get)
        await parked(client, 2)
        tasks.append(asyncio.ensure_future(client.aget()))
        await parked(client, 3)
        # One item at a time: a get that comes gets one at once if there is one for each in line.
        await client.aput(b"task")
        assert await tasks[0] == b"task"
        await client.aput(b"thread")
        assert await asyncio.to_thread(thread.result) == b"thread"
        await client.aput(b"task again")
        assert await tasks[1] == b"task again"

    loops.run(main)


def test_an_event_loop_leaves_no_connection_behind(server, name):
    observer = server.client()
    before = len(observer.client_list())

    async def main():
        client = Client(server.url, name)
        await client.aopen(1)
        getting = [asyncio.ensure_future(client.aget()) for _ in range(5)]
        for _ in range(5):
            await client.aput(b"x")
        await asyncio.gather(*getting)
        assert len(observer.client_list()) > before

    for _ in range(3):
        loops.run(main)
        waiting.until(lambda: len(observer.client_list()) == before)


def test_an_event_loop_that_ends_while_tasks_wait_leaves_nothing_behind(server, name):
    """asyncio.run cancels the tasks that are left: roles go back, and connections are closed."""
    observer = server.client()
    before = len(observer.client_list())

    async def main():
        client = Client(server.url, name)
        await client.aopen(1)
        tasks = [asyncio.ensure_future(client.aget()) for _ in range(3)]
        await parked(client, 3)
        return tasks

    tasks = loops.run(main)
    assert all(task.cancelled() for task in tasks)
    waiting.until(lambda: len(observer.client_list()) == before)
    for role in ["producer", "consumer"]:
        assert observer.llen(f"__pressure__:{name}:{role}_free") == 1


def test_each_event_loop_has_connections_of_its_own(client):
    """A queue goes on in the next loop, with nothing of the loop before."""

    async def put(item):
        await client.aopen()
        await client.aput(item)

    for item in [b"1", b"2", b"3"]:
        loops.run(lambda item=item: put(item))
    loops.run(client.aget)
    assert [client.get(), client.get()] == [b"2", b"3"]
