"""What an error leaves behind."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from pressure_mp import Empty, Full, Queue, aio


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_an_error_keeps_no_handle_alive(url, name, timeout):
    """It is in no cycle: a dropped handle goes at once, and an anonymous queue with its last."""
    q = Queue(1, name, url=url)
    q.put(1)
    gc.disable()
    try:
        with pytest.raises(Full):
            q.put(2, timeout=timeout)
        q.get()
        with pytest.raises(Empty):
            q.get(timeout=timeout)
        q.delete()
        handle = weakref.ref(q)
        del q
        assert handle() is None
    finally:
        gc.enable()


USES = {
    "put": lambda q: q.put(1),
    "count": lambda q: q.qsize(),
    "get": lambda q: q.get(timeout=0),
    "flush": lambda q: q.flush(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("buffering", [None, 0, 10])
def test_a_dropped_handle_of_asyncio_is_no_garbage(url, buffering, use):
    """It is in no cycle: an anonymous queue goes with its last handle."""

    async def main():
        q = aio.Queue(url=url, buffering=buffering)
        try:
            await USES[use](q)
            await q.flush()
        except Empty:
            pass
        await asyncio.sleep(0)
        return weakref.ref(q)

    gc.disable()
    try:
        assert asyncio.run(main())() is None
    finally:
        gc.enable()
