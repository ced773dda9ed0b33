"""In asyncio too the only process that gets from an anonymous queue reads ahead."""

from __future__ import annotations

import asyncio
import os
import random
import signal

import inside
import psutil
import pytest
from programs import aio_reading as programs
from waiting import HOURS, LIMIT, until

from pressure_mp import BrokerUnavailable, DecodingError, Queue, aio
from pressure_mp.buffering import pace, window

NUMBER = 2000


@pytest.fixture
def q(own_server):
    """A handle for threads, to a queue that has some items."""
    with Queue(url=own_server.url, lease=1, prefetch=0) as q:
        q.put_many(range(NUMBER))
        yield q


@pytest.fixture
def keeps(monkeypatch):
    """What was read is kept until it is handed out, or others are to see it."""
    monkeypatch.setattr(window, "KEPT", HOURS)
    monkeypatch.setattr(pace, "_WINDOW", HOURS)


def twin(q):
    """A handle of asyncio to the same queue, with the options of a handle that was given none."""
    twin = aio.Queue.of(inside.copy(q))
    inside.reserves(twin)
    return twin


def scripts_run(client):
    return client.info("commandstats")["cmdstat_evalsha"]["calls"]


async def get_some(handle, more=50):
    """Get until so many are read ahead; the last item that was handed out."""
    for expected in range(NUMBER):
        assert await handle.get() == expected
        if inside.reserved_in_loop(handle) >= more:
            return expected
    raise AssertionError("it read nothing ahead")


def test_the_only_consumer_gets_many_items_in_few_round_trips(q, own_server, keeps):
    async def main():
        async with twin(q) as handle:
            with own_server.client() as client:
                before = scripts_run(client)
                assert [await handle.get() for _ in range(NUMBER)] == list(range(NUMBER))
                assert scripts_run(client) - before < NUMBER / 20

    asyncio.run(main())
    stats = q.stats()
    assert (stats.length, stats.consumed_messages) == (0, NUMBER)
    assert stats.consumed_bytes == stats.produced_bytes


@pytest.mark.parametrize("look", ["qsize", "empty", "get_many", "close"])
def test_its_own_handle_counts_what_was_not_handed_out(q, keeps, look):
    async def main():
        handle = twin(q)
        left = NUMBER - await get_some(handle) - 1
        if look == "get_many":
            assert (await handle.get_many(3))[0] == NUMBER - left
            left -= 3
        elif look == "qsize":
            assert await handle.qsize() == left
        else:
            assert not await getattr(handle, look)()
        assert inside.reserved_in_loop(handle) == 0
        return left

    left = asyncio.run(main())
    assert q.qsize() == left


def test_items_that_are_not_handed_out_soon_are_for_others(q):
    async def main():
        handle = twin(q)
        last = await get_some(handle)
        # In a thread: the loop goes on, and ends the reservation.
        assert await asyncio.to_thread(q.get, timeout=LIMIT) == last + 1

    asyncio.run(main())


def test_tasks_that_share_a_handle_get_every_item_once(q):
    async def main():
        handle, found = twin(q), []

        async def get(number):
            for _ in range(number):
                found.append(await handle.get())
                if len(found) % 7 == 0:
                    await asyncio.sleep(0)

        await asyncio.gather(*(get(NUMBER // 8) for _ in range(8)))
        await handle.close()
        return found

    assert sorted(asyncio.run(main())) == list(range(NUMBER))


def test_a_get_that_is_cancelled_takes_nothing(q):
    async def main():
        handle, found = twin(q), []
        while len(found) < NUMBER:
            getting = asyncio.ensure_future(handle.get())
            for _ in range(random.randrange(6)):
                await asyncio.sleep(0)
            getting.cancel()
            await asyncio.wait([getting])
            if not getting.cancelled():
                found.append(getting.result())
            elif len(found) < NUMBER:
                found.append(await handle.get())
        await handle.close()
        return found

    assert sorted(asyncio.run(main())) == list(range(NUMBER))
    assert q.empty()


def test_an_end_that_did_not_reach_the_broker_hands_out_nothing(q, keeps, monkeypatch):
    async def main():
        handle = twin(q)
        last = await get_some(handle)
        reserving = inside.incoming_in_loop(handle)
        monkeypatch.setattr(reserving, "_once", lost)
        await handle.qsize()
        monkeypatch.undo()
        await handle.close()
        return last

    async def lost(operation):
        operation.close()
        raise BrokerUnavailable("lost")

    last = asyncio.run(main())
    assert q.get() == last + 1


def test_items_that_cannot_be_decoded_are_set_aside_one_by_one(own_server, keeps):
    with Queue(url=own_server.url, serializer="raw", authkey=None, name="undecodable") as raw:
        raw.put_many([b"no pickle"] * 3)

        async def main():
            handle = aio.Queue.of(Queue(name="undecodable", url=own_server.url))
            inside.reserves(handle)
            for _ in range(3):
                with pytest.raises(DecodingError):
                    await handle.get()
            assert await handle.rejected() == [b"no pickle"] * 3
            assert await handle.unfinished_tasks() == 0
            await handle.close()

        asyncio.run(main())
        raw.delete()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_items_handed_to_a_killed_consumer_do_not_come_again(q, start, method):
    process, pipe = start(programs.get_and_be_killed, twin(q), method=method)
    last = pipe.recv()
    process.join()
    assert [q.get(timeout=LIMIT) for _ in range(NUMBER - last - 1)] == list(range(last + 1, NUMBER))


def test_a_consumer_that_was_stopped_for_long_hands_out_nothing_that_others_got(q, start):
    process, pipe = start(programs.get_some_and_stop, twin(q), method="spawn")
    last = pipe.recv()
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    others = [q.get(timeout=LIMIT) for _ in range(500)]
    assert others == list(range(last + 1, last + 501))
    os.kill(process.pid, signal.SIGCONT)
    assert pipe.recv() == [last + 501, last + 502, last + 503]
    process.join()


def test_a_loop_that_ends_leaves_the_rest_at_once(q, start):
    process, pipe = start(programs.end_the_loop, twin(q), method="spawn")
    last = pipe.recv()
    assert pipe.recv() == "ended"
    assert q.get_nowait() == last + 1
    pipe.send("end")
    process.join()
