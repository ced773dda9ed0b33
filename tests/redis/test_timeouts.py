"""Waits with a time limit: the client or the server ends them, and when."""

from __future__ import annotations

import asyncio
import time

import engines
import inside
import pytest
from brokers.lossy import LossyProxy
from brokers.servers import Server
from engines import Can

from pressure_mp import Empty, Full, JoinableQueue, LifoQueue, PressureQueue, Queue, SimpleQueue
from pressure_mp.drivers import adrive

#: The command of a wait, and the one sent at its end: it has no words, and no reply.
WAIT, NOTHING = b"BLMOVE", b"*0\r\n"
#: One may end because the server happens to look at its clock just then; not so many.
TIMES = 8


@pytest.fixture(params=engines.kinds(Can.PROTOCOL))
def rare(request):
    """A way to a server that looks at its clock once a second, if nothing arrives there."""
    server = Server(request.param, ("--hz", "1")).start()
    proxy = LossyProxy(server.port)
    yield proxy
    proxy.stop()
    server.stop()


def ends(proxy):
    """How many waits were ended by the client since the last call."""
    _, *waits = bytes(proxy.requests).split(WAIT)
    proxy.requests = bytearray()
    assert waits, "no call waited"
    return sum(NOTHING in wait for wait in waits)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, SimpleQueue, LifoQueue])
def test_a_get_ends_its_wait_itself_when_its_time_is_up(rare, name, kind):
    q = kind(name=name, url=rare.url)
    rare.requests = bytearray()
    for _ in range(TIMES):
        begin = time.monotonic()
        with pytest.raises(Empty):
            q.get(timeout=0.02)
        assert time.monotonic() - begin >= 0.02
    assert ends(rare)
    q.put("x")
    assert q.get(timeout=0.02) == "x", "the connection is in step"


def test_a_put_ends_its_wait_itself_when_its_time_is_up(rare, name):
    q = PressureQueue(name, url=rare.url)
    q.create(1)
    q.put(b"full")
    rare.requests = bytearray()
    for _ in range(TIMES):
        with pytest.raises(Full):
            q.put(b"x", timeout=0.02)
    assert ends(rare)
    assert q.get() == b"full"


def test_a_task_ends_its_wait_itself_when_its_time_is_up(rare, name):
    q = Queue.create(name, url=rare.url, serializer="raw")
    binding = inside.bind(q)

    async def get():
        for _ in range(TIMES):
            with pytest.raises(Empty):
                await adrive(inside.operations(q).get(True, 0.02), binding.asession())
        q.put(b"x")
        return await adrive(inside.operations(q).get(True, 0.02), binding.asession())

    rare.requests = bytearray()
    assert asyncio.run(get()) == b"x"
    assert ends(rare)
