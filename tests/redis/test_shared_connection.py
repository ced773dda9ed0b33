"""The quick calls of an event loop share one connection; its calls that wait share a few."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time

import inside
import pytest
import started
import waiting
from oracle import loops
from oracle.clients import LONG_LEASE, Client
from programs import aio_queues as programs
from waiting import LIMIT

from pressure_mp import BrokerUnavailable, Queue
from pressure_mp.drivers import adrive
from pressure_mp.engines.contract.session import Options

MANY = 1000


async def rest(client):
    return [await client.aget(block=False) for _ in range(await client.alength())]


def begin_all(operations):
    return [asyncio.ensure_future(operation) for operation in operations]


def test_calls_that_begin_at_once_in_a_fresh_loop_go_over_one_connection(client):
    before = client.observer.info("stats")["total_connections_received"]
    items = [b"%d" % number for number in range(MANY)]

    async def main():
        await asyncio.gather(*(client.aput(item, block=False) for item in items))
        assert client.observer.info("stats")["total_connections_received"] == before + 1
        return await asyncio.gather(*(client.aget(block=False) for _ in items))

    assert loops.run(main) == items


def test_calls_whose_connection_is_cut_are_done_once(own_server, proxy_of, name):
    proxy = proxy_of(own_server)
    client = Client(proxy.url, name, LONG_LEASE)
    items = [b"%d" % number for number in range(MANY)]

    async def main():
        await client.aopen()
        putting = begin_all(client.aput(item, block=False) for item in items)
        for _ in range(5):
            proxy.lose()
            await loops.until(lambda: not proxy._to_lose or all(p.done() for p in putting))
        await asyncio.gather(*putting)
        getting = begin_all(client.aget(block=False) for _ in items)
        proxy.lose()
        return await asyncio.gather(*getting)

    assert sorted(loops.run(main)) == sorted(items)
    assert proxy.lost > 1


def test_a_call_that_is_cancelled_twice_does_not_disturb_other_calls(client, own_server):

    async def main():
        await client.aput(b"warm")
        assert await client.aget() == b"warm"
        before = client.observer.info("stats")["total_connections_received"]
        with own_server.stopped():
            putting = begin_all(client.aput(b"%d" % number) for number in range(10))
            await asyncio.sleep(0.05)  # all are sent
            for _ in range(2):
                putting[4].cancel()
                await asyncio.sleep(0)
            await asyncio.wait([putting[4]], timeout=LIMIT)
            assert putting[4].cancelled()
        await asyncio.gather(*putting[:4], *putting[5:])
        got = await rest(client)
        assert sorted({*got, b"4"}) == [b"%d" % number for number in range(10)]
        assert len(got) == len(set(got))
        assert client.observer.info("stats")["total_connections_received"] == before

    loops.run(main)


def test_a_silent_server_is_given_up_when_the_time_is_up(client, own_server):
    """Calls that have time have their reply when it goes on."""

    async def main():
        await client.aput(b"warm")
        with own_server.stopped():
            begin = time.monotonic()
            options = Options(lease=LONG_LEASE, until=begin + 0.3)
            hasty = client.engine.bind(client.binding.name, "fifo", options)
            putting = begin_all(client.aput(b"%d" % number) for number in range(10))
            with pytest.raises(BrokerUnavailable):
                await adrive(client.operations.put(b"never", True, None), hasty.asession())
            assert time.monotonic() - begin < LIMIT
        await asyncio.gather(*putting)
        return await rest(client)

    got = loops.run(main)
    assert sorted({*got} - {b"never", b"warm"}) == [b"%d" % number for number in range(10)]
    assert len(got) == len(set(got))


class _Race:
    """Gets that are cancelled at random moments, beside puts; or the other way."""

    def __init__(self, client, number):
        self.client = client
        self.seed = random.randrange(2**32)
        self.random = random.Random(self.seed)
        self.items = [b"%d" % number for number in range(number)]
        self.got = []
        self.put = []
        print("seed", self.seed)

    async def _get(self):
        self.got.append(await self.client.aget())

    async def _put(self, item):
        await self.client.aput(item)
        self.put.append(item)

    async def cancelled_at_random(self, begin):
        """Begin some, and cancel about half of them, each after a few rounds of the loop."""
        tasks = begin_all(begin() for _ in range(self.random.randrange(1, 8)))
        for task in tasks:
            if self.random.random() < 0.5:
                for _ in range(self.random.randrange(6)):
                    await asyncio.sleep(0)
                task.cancel()
        await asyncio.wait(tasks, timeout=0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def check(self, left):
        assert sorted(self.got + left) == sorted(self.put)
        assert self.client.roles() == []
        getting = asyncio.ensure_future(self.client.aget())
        await self.client.aput(b"next")
        assert await getting == b"next"


def test_gets_that_are_cancelled_while_items_come_lose_and_double_nothing(client):
    race = _Race(client, 2000)

    async def produce():
        for item in race.items:
            await race._put(item)

    async def main():
        producing = asyncio.ensure_future(produce())
        while not producing.done():
            await race.cancelled_at_random(race._get)
        await producing
        await race.check(await rest(client))

    loops.run(main)


def test_puts_that_are_cancelled_while_items_go_are_done_or_not(client):
    race = _Race(client, 2000)
    items = iter(race.items)

    async def begin():
        item = next(items, None)
        if item is not None:
            await race._put(item)

    async def main():
        consuming = asyncio.ensure_future(consume())
        while len(race.put) < 500:
            await race.cancelled_at_random(begin)
        consuming.cancel()
        await asyncio.wait([consuming])
        assert consuming.cancelled()
        await race.check(await rest(client))

    async def consume():
        while True:
            await race._get()

    client.run(client.operations.set_bound(3))
    loops.run(main)


def test_a_loop_that_ends_with_calls_under_way_leaves_nothing_behind(client, own_server):
    before = client.connections()

    async def main():
        await client.aput(b"warm")
        tasks = begin_all(client.aput(b"%d" % number) for number in range(50))
        tasks += begin_all(client.aget() for _ in range(100))
        await asyncio.sleep(0)

    for _ in range(2):
        loops.run(main)
        waiting.until(lambda: client.connections() == before)
        assert client.roles() == []


def test_two_loops_in_two_threads_have_a_connection_each(client):
    items = [[b"%d:%d" % (loop, number) for number in range(300)] for loop in range(2)]

    def run(mine):
        async def main():
            await asyncio.gather(*(client.aput(item) for item in mine))
            return await asyncio.gather(*(client.aget() for _ in mine))

        return loops.run(main)

    threads = [waiting.Background(run, mine) for mine in items]
    got = [item for thread in threads for item in thread.result()]
    assert sorted(got) == sorted(items[0] + items[1])


def test_a_child_does_not_disturb_the_loop_of_its_parent(client):
    async def main():
        await client.aput(b"before")
        putting = begin_all(client.aput(b"%d" % number) for number in range(50))
        await asyncio.sleep(0)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                client.put(b"child")
                code = 0
            finally:
                os._exit(code)
        await asyncio.gather(*putting)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert status == 0
        return await rest(client)

    expected = [b"before", b"child", *(b"%d" % number for number in range(50))]
    assert sorted(loops.run(main)) == sorted(expected)


def test_a_forked_child_keeps_no_connection_of_its_parents_loop(own_server, name):
    """As long as it had one, the server would not notice the parent's death."""
    observer = own_server.client()
    parent = subprocess.Popen(
        [sys.executable, programs.__file__, "fork_while_a_task_waits", own_server.url, name],
        env=started.environment(),
        stdout=subprocess.PIPE,
    )
    child = int(parent.stdout.readline())
    try:
        with Queue(name=name, url=own_server.url) as q:
            q.put("to the parent")
            assert parent.stdout.readline() == b"to the parent\n"
        inside.engine(q).close()
        assert len(observer.client_list()) > 1
        parent.kill()
        parent.wait()
        waiting.until(lambda: len(observer.client_list()) == 1)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        os.kill(child, signal.SIGKILL)
        observer.close()
