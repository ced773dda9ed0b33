"""Calls of asyncio that are cancelled while the broker is slow, or says nothing."""

from __future__ import annotations

import asyncio

import pytest
from oracle import loops
from waiting import LIMIT

from pressure_mp import aio
from pressure_mp.engines.redis import scripts

#: Bytes: its content is beside the queue.
LARGE = 1 << 19


def called(proxy, op):
    """Whether that script was called through a proxy."""
    return scripts.load("fifo")[op].sha.encode() in proxy.requests


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_large_item_is_got_by_one_who_is_cancelled_when_it_can_no_longer_go_back(
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
