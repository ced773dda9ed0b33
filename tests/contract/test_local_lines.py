"""Of all tasks of an event loop that wait for the same, one waits at the server."""

from __future__ import annotations

import asyncio
import random

import inside
import pytest
from oracle import loops
from oracle.clients import LONG_LEASE, Client
from served import Served

from pressure_mp import Empty
from pressure_mp.engines import lines

MANY = 1000
#: So many connections a process has at most, however many of its tasks wait on one queue.
FEW = 4
#: So many of them ask together, if there seems to be enough.
TOGETHER = lines._TOGETHER


async def stand(client, number):
    """Wait until so many tasks wait."""
    await loops.until(lambda: client.waiters() == number)
    assert client.connections() <= FEW


def test_many_gets_wait_over_few_connections_and_are_served_in_order(client):
    async def main():
        served = Served(client)
        tasks = served.begin(served.get, range(MANY))
        await stand(client, MANY)
        most = 0
        for number in range(MANY):
            await client.aput(b"%d" % number)
            await tasks[number]
            if number % 100 == 0:
                most = max(most, client.connections())
        assert await asyncio.gather(*tasks) == [b"%d" % number for number in range(MANY)]
        assert served.order == list(range(MANY))
        assert most <= FEW
        assert client.roles() == []

    loops.run(main)


def test_gets_that_come_while_items_come_are_served_in_order(client):
    """Some ask at once, some together, some wait; the items come from a thread, in fits."""
    there = Client(client.engine.address.url, client.binding.name, LONG_LEASE)
    chosen = random.Random(random.randrange(2**32))
    fits = [chosen.choice((1, 1, 2, TOGETHER)) for _ in range(200)]

    def feed():
        for number in fits:
            there.run(there.operations.put_many([b"item"] * number, True, None))

    async def main():
        served = Served(client)
        feeding = asyncio.ensure_future(asyncio.to_thread(feed))
        tasks = []
        for number in fits:
            tasks += served.begin(served.get, range(len(tasks), len(tasks) + number))
            for _ in range(chosen.randrange(8)):
                await asyncio.sleep(0)
        await asyncio.gather(feeding, *tasks)
        assert served.is_in_order
        assert client.connections() <= FEW
        assert client.roles() == []

    loops.run(main)


def test_items_of_many_puts_at_once_are_queued_in_order(client):
    """Where there is hardly ever space; and some are so large that they do not go with others."""
    client.run(client.operations.set_bound(5))
    items = [
        b"%d " % number + b"x" * (lines.LARGE if number % 50 == 10 else 0) for number in range(300)
    ]

    async def main():
        putting = [asyncio.ensure_future(client.aput(item)) for item in items]
        got = [await client.aget() for _ in items]
        await asyncio.gather(*putting)
        assert got == items
        assert client.roles() == []

    loops.run(main)


def test_many_puts_wait_over_few_connections_and_are_served_in_order(client):
    client.run(client.operations.set_bound(1))
    client.put(b"full")

    async def main():
        served = Served(client)
        tasks = served.begin(served.put, range(MANY))
        await stand(client, MANY)
        assert await client.aget() == b"full"
        got = [await client.aget() for _ in range(MANY)]
        assert client.connections() <= FEW
        await asyncio.gather(*tasks)
        assert got == [b"%d" % number for number in range(MANY)]
        assert served.order == list(range(MANY))
        assert client.roles() == []

    loops.run(main)


def test_gets_and_puts_that_wait_for_each_other_have_few_connections(client):
    client.run(client.operations.set_bound(2))

    async def main():
        getting = [asyncio.ensure_future(client.aget()) for _ in range(MANY)]
        putting = [asyncio.ensure_future(client.aput(b"%d" % n)) for n in range(MANY)]
        most = 0
        while not all(task.done() for task in putting):
            most = max(most, client.connections())
            await asyncio.sleep(0.01)
        await asyncio.gather(*putting)
        got = await asyncio.gather(*getting)
        assert sorted(got) == sorted(b"%d" % number for number in range(MANY))
        assert 0 < most <= FEW
        assert client.roles() == []

    loops.run(main)


def test_gets_behind_a_cancelled_get_are_served(client):
    chosen = random.Random(random.randrange(2**32))

    async def main():
        served = Served(client)
        tasks = served.begin(served.get, range(400))
        await stand(client, 400)
        victims = list(range(0, 400, 2))
        chosen.shuffle(victims)
        items = (b"%d" % number for number in range(400))
        put = []
        for victim in victims:
            if chosen.random() < 0.5:
                put.append(next(items))
                await client.aput(put[-1])
            for _ in range(chosen.randrange(4)):
                await asyncio.sleep(0)
            tasks[victim].cancel()
        await asyncio.wait([tasks[victim] for victim in victims])
        left = 400 - sum(task.cancelled() for task in tasks)
        while len(put) < left:
            put.append(next(items))
            await client.aput(put[-1])
        await asyncio.wait(tasks)
        got = [task.result() for task in tasks if not task.cancelled()]
        got += [await client.aget(block=False) for _ in range(await client.alength())]
        assert sorted(got) == sorted(put)
        assert served.is_in_order
        assert client.roles() == []

    loops.run(main)


@pytest.mark.usefixtures("no_ticks")
def test_a_turn_that_comes_to_a_get_as_it_is_cancelled_passes_on(client):
    async def main():
        first = asyncio.ensure_future(client.aget())
        await stand(client, 1)
        second, third = (asyncio.ensure_future(client.aget()) for _ in range(2))
        await stand(client, 3)
        for rounds in range(5):
            first.cancel()
            for _ in range(rounds):
                await asyncio.sleep(0)
            second.cancel()
            await asyncio.wait([first, second])
            assert first.cancelled()
            assert second.cancelled()
            first, second = third, asyncio.ensure_future(client.aget())
            third = asyncio.ensure_future(client.aget())
            await stand(client, 3)
        await client.aput(b"item")
        assert await first == b"item"
        for task in (second, third):
            task.cancel()
        await asyncio.wait([second, third])
        assert client.roles() == []

    loops.run(main)


def test_a_get_whose_time_is_up_asks_the_server_and_leaves_the_line(client):
    async def main():
        first = asyncio.ensure_future(client.aget())
        await stand(client, 1)
        with pytest.raises(Empty):
            await client.aget(timeout=0.05)
        assert inside.in_lines(client.engine) == 0
        await client.aput(b"item")
        assert await first == b"item"

    loops.run(main)


def test_all_waiting_joins_end_at_once(client):
    client.put(b"x")
    client.get()

    async def main():
        joining = [asyncio.ensure_future(client.ajoin()) for _ in range(100)]
        await stand(client, 100)
        await client.atask_done()
        assert await asyncio.gather(*joining) == [True] * 100

    loops.run(main)
