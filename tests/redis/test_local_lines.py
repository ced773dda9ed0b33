"""How tasks of an event loop that wait for the same ask together."""

from __future__ import annotations

import asyncio

import inside
import pytest
from oracle import loops
from oracle.clients import LONG_LEASE, Client
from served import Served

from pressure_mp import JoinableQueue, Queue, TaskQueue, aio
from pressure_mp.engines import lines
from pressure_mp.engines.contract.items import Hold, Take
from pressure_mp.engines.contract.replies import InUse, NoItem

MANY = 1000
#: So many connections a loop has at most, however many of its tasks wait on one queue.
FEW = 4
#: So many of them ask together, if there seems to be enough.
TOGETHER = lines._TOGETHER


def test_an_item_that_comes_while_several_gets_ask_goes_to_the_first_of_them(
    client, own_server, proxy_of
):
    proxy = proxy_of(own_server)
    proxy.in_between = lambda: client.put(b"second")
    client.put(b"first")

    async def main():
        served = Served(Client(proxy.url, client.binding.name, LONG_LEASE))
        tasks = served.begin(served.get, range(3))
        await loops.until(lambda: len(served.order) == 2)
        client.put(b"third")
        assert await asyncio.gather(*tasks) == [b"first", b"second", b"third"]
        assert served.is_in_order

    loops.run(main)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, TaskQueue])
def test_calls_that_waited_ask_together_when_there_is_enough_for_all(kind, valkey, name):
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


def test_a_take_that_does_not_wait_passes_no_take_that_waits_in_another_process(client):
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


@pytest.mark.usefixtures("no_ticks")
def test_a_get_that_comes_while_others_stand_in_line_asks_the_server_nothing(client):
    def calls():
        return client.observer.info("commandstats")["cmdstat_evalsha"]["calls"]

    async def main():
        getting = [asyncio.ensure_future(client.aget()) for _ in range(2)]
        await loops.until(lambda: client.waiters() == 2)
        before = calls()
        client.binding.get_at_once.is_open = True  # as if gets had been served at once again
        getting += [asyncio.ensure_future(client.aget()) for _ in range(50)]
        await loops.until(lambda: client.waiters() == 52)
        assert calls() == before
        for number in range(52):
            await client.aput(b"%d" % number)
        got = await asyncio.gather(*getting)
        assert sorted(got) == sorted(b"%d" % number for number in range(52))

    loops.run(main)
