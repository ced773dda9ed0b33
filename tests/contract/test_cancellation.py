"""A wait that is ended early loses no item, holds no role and breaks no connection."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys

import pytest
import started
from oracle import interrupted, loops
from oracle.clients import Client
from waiting import HOURS, LIMIT

#: Milliseconds. A role that was left held would come free only after that.
LEASE = int(1000 * HOURS)

since_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio has it since 3.11")


@pytest.fixture
def client(url, name):
    """One queue with room for one item."""
    client = Client(url, name, LEASE)
    client.open(1)
    return client


@pytest.fixture(params=["cancel", "wait_for"])
def ending(request):
    """Two ways to end an operation early: begins a task, and ends it."""
    return {"cancel": _Cancel, "wait_for": _WaitFor}[request.param]()


class _Cancel:
    def begin(self, operation):
        return asyncio.ensure_future(operation)

    async def end(self, task):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class _WaitFor:
    def begin(self, operation):
        return asyncio.ensure_future(asyncio.wait_for(operation, HOURS))

    async def end(self, task):
        time_is_up()
        with pytest.raises(asyncio.TimeoutError):
            await task


def time_is_up():
    """A call with a timeout of hours runs into it now: asyncio's timer goes off."""
    loop = asyncio.get_running_loop()
    timers = [timer for timer in loop._scheduled if not timer.cancelled()]
    # A timer of the pool of connections has years.
    (timer,) = [one for one in timers if HOURS / 2 < one.when() - loop.time() < 2 * HOURS]
    loop.call_soon(timer._callback, *timer._args)
    timer.cancel()


async def parked(client, number):
    """Wait until so many operations are parked."""
    await loops.until(lambda: client.waiters() == number)


async def at_once(operation):
    """The operation's value. A role that was left held would keep it for hours."""
    return await operation


async def all_is_well(client):
    """Nothing is queued, no role is held, and no connection has a reply still to come."""
    assert await client.alength() == 0
    assert client.roles() == []
    for number in range(3):
        items = [b"%d:%d" % (number, n) for n in range(8)]
        getting = [asyncio.ensure_future(client.aget()) for _ in items]
        await asyncio.gather(*(client.aput(item) for item in items))
        assert sorted(await asyncio.gather(*getting)) == items
        assert await asyncio.gather(*(client.alength() for _ in range(8))) == [0] * 8
    assert client.roles() == []


def test_a_get_that_holds_the_role_on_an_empty_queue(client, ending):
    async def main():
        victim = ending.begin(client.aget())
        await parked(client, 1)
        await ending.end(victim)
        assert client.roles() == []
        await client.aput(b"item")
        assert await at_once(client.aget()) == b"item"
        await all_is_well(client)

    loops.run(main)


def test_a_get_that_holds_the_role_with_others_in_line(client, ending):
    async def main():
        victim = ending.begin(client.aget())
        await parked(client, 1)
        second = asyncio.ensure_future(client.aget())
        await parked(client, 2)
        third = asyncio.ensure_future(client.aget())
        await parked(client, 3)
        await ending.end(victim)
        await client.aput(b"second")
        assert await at_once(second) == b"second"
        await client.aput(b"third")
        assert await at_once(third) == b"third"
        await all_is_well(client)

    loops.run(main)


def test_a_get_in_line(client, ending):
    async def main():
        first = asyncio.ensure_future(client.aget())
        await parked(client, 1)
        victim = ending.begin(client.aget())
        await parked(client, 2)
        third = asyncio.ensure_future(client.aget())
        await parked(client, 3)
        await ending.end(victim)
        await parked(client, 2)
        await client.aput(b"first")
        assert await at_once(first) == b"first"
        await client.aput(b"third")
        assert await at_once(third) == b"third"
        await all_is_well(client)

    loops.run(main)


def test_a_put_that_holds_the_role_on_a_full_queue(client, ending):
    async def main():
        await client.aput(b"0")
        victim = ending.begin(client.aput(b"never"))
        await parked(client, 1)
        second = asyncio.ensure_future(client.aput(b"second"))
        await parked(client, 2)
        await ending.end(victim)
        assert await client.aget() == b"0"
        await at_once(second)
        assert await client.aget() == b"second"
        await all_is_well(client)

    loops.run(main)


def test_a_put_in_line(client, ending):
    async def main():
        await client.aput(b"0")
        first = asyncio.ensure_future(client.aput(b"first"))
        await parked(client, 1)
        victim = ending.begin(client.aput(b"never"))
        await parked(client, 2)
        third = asyncio.ensure_future(client.aput(b"third"))
        await parked(client, 3)
        await ending.end(victim)
        for item in [b"0", b"first", b"third"]:
            assert await at_once(client.aget()) == item
        await asyncio.gather(first, third)
        await all_is_well(client)

    loops.run(main)


def test_a_join(client, ending):
    async def main():
        await client.aput(b"0")
        other = asyncio.ensure_future(client.ajoin())
        await parked(client, 1)
        victim = ending.begin(client.ajoin())
        await parked(client, 2)
        await ending.end(victim)
        await client.aget()
        assert not other.done()
        await client.atask_done()
        assert await at_once(other) is True
        await all_is_well(client)

    loops.run(main)


def test_a_whole_line_at_once(client):
    """The get with the role and all gets behind it; another get is served afterwards."""

    async def main():
        victims = [asyncio.ensure_future(client.aget()) for _ in range(10)]
        await parked(client, 10)
        for victim in victims:
            victim.cancel()
        outcomes = await at_once(asyncio.gather(*victims, return_exceptions=True))
        assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 10
        await all_is_well(client)

    loops.run(main)


@pytest.mark.parametrize(
    "scenario", ["get_as_holder", "get_in_line", "put_as_holder", "put_in_line", "join"]
)
def test_control_c_in_a_thread_that_waits(url, name, scenario):
    """In a process of its own: SIGINT becomes KeyboardInterrupt in its main thread."""
    command = [sys.executable, "-W", "error", interrupted.__file__]
    done = subprocess.run(
        [*command, url, name, scenario],
        env=started.environment(),
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
    )
    assert (done.returncode, done.stderr) == (0, "")


class _Midway:
    """A server that keeps its answers to itself for a while: operations are caught between the
    script they sent and its reply."""

    def __init__(self, client):
        self._client = client
        self._server = client.observer

    async def caught(self):
        await parked(self._client, 1)  # the server counts a command that it put off as blocked

    async def __aenter__(self):
        self._server.client_pause(20_000, all=False)
        return self

    async def __aexit__(self, *_):
        self._server.client_unpause()


@pytest.fixture
def remote(own_server, name):
    """One queue on a server of its own, with one item, and its scripts loaded. While the server
    holds its replies back, no other test may ask it."""
    client = Client(own_server.url, name, LEASE)
    client.open()
    client.put(b"warm")
    client.get()
    client.put(b"item")
    yield client
    client.observer.client_unpause()


async def rest(client):
    """Gets the items that are still queued."""
    return [await client.aget(block=False) for _ in range(await client.alength())]


def test_a_task_that_is_a_get_is_cancelled_while_the_item_is_on_its_way(remote):
    async def main():
        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(remote.aget())
            await midway.caught()
            task.cancel()
        await asyncio.wait([task])
        got = [] if task.cancelled() else [task.result()]
        assert got + await rest(remote) == [b"item"]

    loops.run(main)


def test_a_consumer_is_cancelled_while_its_item_is_on_its_way(remote):
    """Whether it gets the item or not, it ends: the cancellation is not swallowed."""

    async def main():
        got = []

        async def consume():
            while True:
                got.append(await remote.aget())

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(consume())
            await midway.caught()
            task.cancel()
        await asyncio.wait([task], timeout=LIMIT)
        assert task.cancelled()
        assert got + await rest(remote) == [b"item"]
        assert remote.roles() == []

    loops.run(main)


def test_wait_for_gives_up_while_the_item_is_on_its_way(remote):
    async def main():
        got = []

        async def consume():
            try:
                got.append(await asyncio.wait_for(remote.aget(), HOURS))
            except asyncio.TimeoutError:
                pass
            await asyncio.sleep(0.1)  # no cancellation was for this
            return "well"

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(consume())
            await midway.caught()
            time_is_up()
            await asyncio.sleep(0.1)  # the task learns of it
        await asyncio.wait([task])
        assert not task.cancelled()
        assert task.result() == "well"
        assert got + await rest(remote) == [b"item"]

    loops.run(main)


def test_a_task_in_wait_for_is_cancelled_while_the_item_is_on_its_way(remote):
    async def main():
        got = []

        async def consume():
            while True:
                got.append(await asyncio.wait_for(remote.aget(), 20))

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(consume())
            await midway.caught()
            task.cancel()
        await asyncio.wait([task], timeout=LIMIT)
        assert task.cancelled()
        assert got + await rest(remote) == [b"item"]

    loops.run(main)


@since_3_11
def test_a_timeout_block_ends_while_the_item_is_on_its_way(remote):
    async def main():
        got = []

        async def consume():
            try:
                async with asyncio.timeout(HOURS):
                    got.append(await remote.aget())
            except TimeoutError:
                pass
            await asyncio.sleep(0.1)  # no cancellation was for this
            return "well"

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(consume())
            await midway.caught()
            time_is_up()
            await asyncio.sleep(0.1)  # the task learns of it
        await asyncio.wait([task])
        assert not task.cancelled()
        assert task.result() == "well"
        assert task.cancelling() == 0
        assert got + await rest(remote) == [b"item"]

    loops.run(main)


@since_3_11
def test_a_timeout_block_goes_on_after_the_item_and_still_ends(remote):
    """The time was up while the item came; what follows in the block is cut short as usual."""

    async def main():
        got = []

        async def consume():
            async with asyncio.timeout(HOURS):
                got.append(await remote.aget())
                await asyncio.sleep(20)

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(consume())
            await midway.caught()
            time_is_up()
            await asyncio.sleep(0.1)  # the task learns of it
        await asyncio.wait([task], timeout=LIMIT)
        assert task.done()
        assert isinstance(task.exception(), TimeoutError)
        assert got + await rest(remote) == [b"item"]

    loops.run(main)


@since_3_11
def test_a_timeout_block_in_the_cleanup_of_a_cancelled_task(remote):
    """The task was cancelled once and lives on; a block's end is no second time."""

    async def main():
        got = []

        async def consume():
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                pass
            try:
                async with asyncio.timeout(HOURS):
                    got.append(await remote.aget())
            except TimeoutError:
                pass
            await asyncio.sleep(0.1)  # no cancellation was for this
            return "well"

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(consume())
            await asyncio.sleep(0)
            task.cancel()
            await midway.caught()
            time_is_up()
            await asyncio.sleep(0.1)  # the task learns of it
        await asyncio.wait([task])
        assert not task.cancelled()
        assert task.result() == "well"
        assert got + await rest(remote) == [b"item"]

    loops.run(main)


@since_3_11
def test_a_task_group_fails_while_the_item_is_on_its_way(remote):
    async def main():
        got = []

        async def fail(midway):
            await midway.caught()
            raise RuntimeError("on purpose")

        async def group(midway):
            async with asyncio.TaskGroup() as tasks:
                getting = tasks.create_task(remote.aget())
                getting.add_done_callback(
                    lambda task: None if task.cancelled() else got.append(task.result())
                )
                tasks.create_task(fail(midway))

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(group(midway))
            await midway.caught()
            await asyncio.sleep(0.05)
        await asyncio.wait([task], timeout=LIMIT)
        assert isinstance(task.exception(), Exception)
        assert "1 sub-exception" in str(task.exception())
        assert got + await rest(remote) == [b"item"]

    loops.run(main)


def test_a_busy_producer_is_cancelled_while_its_put_is_on_its_way(remote):
    """It ends there and then, and what it was told is put is there, and nothing else."""

    async def main():
        put = []

        async def produce():
            while True:
                await remote.aput(b"%d" % len(put))
                put.append(b"%d" % len(put))

        async with _Midway(remote) as midway:
            task = asyncio.ensure_future(produce())
            await midway.caught()
            task.cancel()
        await asyncio.wait([task], timeout=LIMIT)
        assert task.cancelled()
        assert len(put) <= 1
        assert await rest(remote) == [b"item", *put]
        assert remote.roles() == []

    loops.run(main)


def test_a_busy_consumer_is_cancelled(remote):
    """Items that are always there at once do not keep it from ending."""

    async def main():
        for _ in range(200):
            await remote.aput(b"item")
        got = []

        async def consume():
            while True:
                got.append(await remote.aget())

        task = asyncio.ensure_future(consume())
        await loops.until(lambda: got)
        task.cancel()
        await asyncio.wait([task], timeout=LIMIT)
        assert task.cancelled()
        assert 0 < len(await rest(remote)) == 201 - len(got)

    loops.run(main)


def test_a_big_put_that_is_cancelled_half_way_is_not_there(server, name):
    """The server reads the first part of a command that never becomes whole."""
    client = Client(server.url, name, LEASE)
    client.open()

    async def main():
        await client.aput(b"before")
        server.process.send_signal(signal.SIGSTOP)
        try:
            task = asyncio.ensure_future(client.aput(b"x" * (16 << 20)))
            done, _ = await asyncio.wait([task], timeout=0.2)
            assert not done
            task.cancel()
            await asyncio.sleep(0)
        finally:
            server.process.send_signal(signal.SIGCONT)
        await asyncio.wait([task], timeout=LIMIT)
        assert task.cancelled()
        assert await rest(client) == [b"before"]
        await all_is_well(client)

    loops.run(main)


def test_a_second_cancellation_leaves_no_role_held(remote):
    """It may cost the connection, but no get has to wait for a lease to end."""

    async def main():
        await rest(remote)
        victim = asyncio.ensure_future(remote.aget())
        await parked(remote, 1)
        victim.cancel()
        await asyncio.sleep(0)
        victim.cancel()
        await asyncio.wait([victim], timeout=LIMIT)
        assert victim.cancelled()
        await remote.aput(b"item")
        assert await at_once(remote.aget()) == b"item"
        await all_is_well(remote)

    loops.run(main)


def test_a_second_cancellation_of_a_get_whose_turn_has_come(remote):
    """It was in line and is granted the role while it is on its way out, in a hurry."""

    async def main():
        await rest(remote)
        for turns in range(25):
            holder = asyncio.ensure_future(remote.aget())
            await parked(remote, 1)
            victim = asyncio.ensure_future(remote.aget())
            await parked(remote, 2)
            holder.cancel()
            victim.cancel()
            for _ in range(turns):
                await asyncio.sleep(0)
            victim.cancel()
            await asyncio.wait([holder, victim], timeout=LIMIT)
            assert holder.cancelled()
            assert victim.cancelled()
            await remote.aput(b"item")
            assert await at_once(remote.aget()) == b"item"
        assert remote.roles() == []

    loops.run(main)


def test_an_operation_that_is_cancelled_as_soon_as_it_begins_to_wait(remote):
    """At once, however far its request to wait got on its way to the server."""

    async def main():
        await rest(remote)
        holder = asyncio.ensure_future(remote.aget())
        await parked(remote, 1)
        for turns in range(25):
            victim = asyncio.ensure_future(remote.aget())
            for _ in range(turns):
                await asyncio.sleep(0)
            victim.cancel()
            await asyncio.wait([victim], timeout=LIMIT)
            assert victim.cancelled()
        await remote.aput(b"item")
        assert await at_once(holder) == b"item"
        await all_is_well(remote)

    loops.run(main)


class _Traffic:
    """Items through tasks that are ended and begun again at random; every item comes out once."""

    def __init__(self, client, items):
        self.client = client
        self.seed = random.randrange(2**32)
        self.random = random.Random(self.seed)
        self.items = [b"%d" % number for number in range(items)]
        self.to_put = list(self.items)
        self.got = []

    def _received(self, item):
        self.got.append(item)

    async def produce(self):
        while self.to_put:
            item = self.to_put.pop()
            try:
                await self.client.aput(item)
            except BaseException:
                self.to_put.append(item)
                raise

    async def consume(self):
        while True:
            self._received(await self.client.aget())

    async def consume_with_limits(self):
        while True:
            try:
                item = await asyncio.wait_for(self.client.aget(), self.random.uniform(0, 0.004))
            except asyncio.TimeoutError:
                continue
            self._received(item)

    async def keep_ending(self, kinds):
        """Cancel a task at a time, at random, and begin another like it in its place."""
        tasks = [(kind, asyncio.ensure_future(kind())) for kind in kinds]
        ended = 0
        while len(self.got) < len(self.items):
            await asyncio.sleep(self.random.choice([0, 0, 0.0005, 0.001, 0.002]))
            number = self.random.randrange(len(tasks))
            kind, task = tasks[number]
            if task.cancel():
                ended += 1
            await asyncio.wait([task], timeout=LIMIT)
            assert task.done(), "it was cancelled and goes on"
            if not task.cancelled():
                task.result()  # a producer that has nothing left; anything else raises
            tasks[number] = kind, asyncio.ensure_future(kind())
        return ended, tasks

    async def check(self, tasks):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await loops.others_end()
        assert sorted(self.got) == sorted(self.items)
        await all_is_well(self.client)


def test_tasks_that_are_cancelled_at_random_lose_and_double_nothing(url, name):
    client = Client(url, name, LEASE)
    client.open(5)
    traffic = _Traffic(client, 2000)
    print("seed", traffic.seed)

    async def main():
        kinds = [traffic.produce] * 4 + [traffic.consume] * 4
        ended, tasks = await traffic.keep_ending(kinds)
        assert ended > 50
        await traffic.check([task for _, task in tasks])

    loops.run(main, 110)


def test_gets_whose_time_is_up_at_random_lose_nothing(url, name):
    client = Client(url, name, LEASE)
    client.open(5)
    traffic = _Traffic(client, 1000)
    print("seed", traffic.seed)

    async def main():
        consuming = [asyncio.ensure_future(traffic.consume_with_limits()) for _ in range(4)]
        producing = [asyncio.ensure_future(traffic.produce()) for _ in range(2)]
        await asyncio.gather(*producing)
        await loops.until(lambda: len(traffic.got) >= 1000, 40)
        await traffic.check(consuming)

    loops.run(main, 110)
