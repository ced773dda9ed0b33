"""Of all tasks of an event loop that wait for the same, one waits at the server."""

from __future__ import annotations

import asyncio
import random

import inside
import pytest
from oracle import loops
from oracle.clients import LONG_LEASE, Client

from pressure_mp import Empty, JoinableQueue, Queue, TaskQueue, aio
from pressure_mp.engines.contract.items import Hold, Take
from pressure_mp.engines.contract.replies import InUse, NoItem
from pressure_mp.engines.redis import lines
from pressure_mp.engines.redis.loop_session import _LARGE

MANY = 1000
#: So many connections a loop has at most, however many of its tasks wait on one queue.
FEW = 4
#: So many of them ask together, if there seems to be enough.
TOGETHER = lines._TOGETHER


async def stand(client, number):
    """Wait until so many tasks wait."""
    await loops.until(lambda: client.waiters() == number)
    assert client.connections() <= FEW


class _Served:
    """Who was served, in that order."""

    def __init__(self, client):
        self.client = client
        self.order = []

    async def get(self, number):
        item = await self.client.aget()
        self.order.append(number)
        return item

    async def put(self, number):
        await self.client.aput(b"%d" % number)
        self.order.append(number)

    @property
    def is_in_order(self):
        """Whether nobody was served before another one who had come earlier."""
        return self.order == sorted(self.order)

    def begin(self, verb, numbers):
        return [asyncio.ensure_future(verb(number)) for number in numbers]


def test_many_gets_wait_over_few_connections_and_are_served_in_order(client):
    async def main():
        served = _Served(client)
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


def test_those_who_come_and_wait_while_items_come_are_served_in_order(client):
    """Some ask at once, some together, some wait; the items come from a thread, in fits."""
    there = Client(client.engine.address.url, client.binding.name, LONG_LEASE)
    chosen = random.Random(random.randrange(2**32))
    fits = [chosen.choice((1, 1, 2, TOGETHER)) for _ in range(200)]

    def feed():
        for number in fits:
            there.run(there.operations.put_many([b"item"] * number, True, None))

    async def main():
        served = _Served(client)
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


def test_what_comes_while_several_ask_is_for_the_first_of_them(client, own_server, proxy_of):
    proxy = proxy_of(own_server)
    proxy.in_between = lambda: client.put(b"second")
    client.put(b"first")

    async def main():
        served = _Served(Client(proxy.url, client.binding.name, LONG_LEASE))
        tasks = served.begin(served.get, range(3))
        await loops.until(lambda: len(served.order) == 2)
        client.put(b"third")
        assert await asyncio.gather(*tasks) == [b"first", b"second", b"third"]
        assert served.is_in_order

    loops.run(main)


def test_what_many_put_at_once_is_queued_in_order(client):
    """Where there is hardly ever space; and some are so large that they do not go with others."""
    client.run(client.operations.set_bound(5))
    items = [b"%d " % number + b"x" * (_LARGE if number % 50 == 10 else 0) for number in range(300)]

    async def main():
        putting = [asyncio.ensure_future(client.aput(item)) for item in items]
        got = [await client.aget() for _ in items]
        await asyncio.gather(*putting)
        assert got == items
        assert client.roles() == []

    loops.run(main)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, TaskQueue])
def test_those_who_waited_ask_together_when_there_is_enough_for_all(kind, valkey, name):
    twin = getattr(aio, kind.__name__)(name=name, url=valkey.url)

    async def main():
        async with twin:
            taking = [asyncio.ensure_future(take()) for _ in range(TOGETHER)]
            await loops.until(lambda: inside.in_lines(inside.engine(twin.sync)) == TOGETHER - 1)
            putting = asyncio.ensure_future(put())
            await loops.until(lambda: inside.calls_under_way(twin.sync) >= TOGETHER // 2)
            for task in (putting, *taking):
                task.cancel()
            await asyncio.wait([putting, *taking])
            await twin.delete()

    async def take():
        while True:
            found = await (twin.take() if kind is TaskQueue else twin.get())
            if kind is not Queue:  # else this process would have it when the server ends
                await (found.ack() if kind is TaskQueue else twin.task_done())

    async def put():
        while True:
            await twin.put_many(range(1000))

    loops.run(main)


def test_one_who_only_tries_passes_nobody_who_waits_in_another_process(client):
    there = client.binding.session()
    take = Take(hold=Hold("there", 1))
    assert there.call(take) == NoItem()
    client.put(b"item")

    async def main():
        here = client.binding.asession()
        assert isinstance(await here.call(Take(hold=Hold("here", 1))), InUse)
        await here.end()

    loops.run(main)
    assert there.call(take).items == [b"item"]
    there.end()


def test_many_puts_wait_over_few_connections_and_are_served_in_order(client):
    client.run(client.operations.set_bound(1))
    client.put(b"full")

    async def main():
        served = _Served(client)
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


def test_those_behind_one_who_is_cancelled_are_served(client):
    chosen = random.Random(random.randrange(2**32))

    async def main():
        served = _Served(client)
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
def test_a_turn_that_comes_to_one_who_is_cancelled_then_passes_on(client):
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


def test_one_whose_time_is_up_asks_the_server_and_leaves_the_line(client):
    async def main():
        first = asyncio.ensure_future(client.aget())
        await stand(client, 1)
        with pytest.raises(Empty):
            await client.aget(timeout=0.05)
        assert inside.in_lines(client.engine) == 0
        await client.aput(b"item")
        assert await first == b"item"

    loops.run(main)


def test_all_who_join_are_let_go_at_once(client):
    client.put(b"x")
    client.get()

    async def main():
        joining = [asyncio.ensure_future(client.ajoin()) for _ in range(100)]
        await stand(client, 100)
        await client.atask_done()
        assert await asyncio.gather(*joining) == [True] * 100

    loops.run(main)


@pytest.mark.usefixtures("no_ticks")
def test_who_comes_while_others_stand_in_line_asks_the_server_nothing(client):
    def calls():
        return client.observer.info("commandstats")["cmdstat_evalsha"]["calls"]

    async def main():
        getting = [asyncio.ensure_future(client.aget()) for _ in range(2)]
        await stand(client, 2)
        before = calls()
        client.binding.poll.is_open = True  # as if gets had been served at once again
        getting += [asyncio.ensure_future(client.aget()) for _ in range(50)]
        await stand(client, 52)
        assert calls() == before
        for number in range(52):
            await client.aput(b"%d" % number)
        got = await asyncio.gather(*getting)
        assert sorted(got) == sorted(b"%d" % number for number in range(52))

    loops.run(main)
