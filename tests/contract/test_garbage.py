"""What an error leaves behind."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from pressure_mp import Empty, Full, JoinableQueue, Queue, aio
from pressure_mp.in_flight import Asking, ItemInFlight


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


def test_calls_that_succeed_leave_nothing_to_the_garbage_collector(url, name):
    q = JoinableQueue(name=name, url=url, buffering=0, prefetch=0)

    def use():
        q.put(1)
        q.get()
        q.task_done()

    def garbage():
        gc.collect()
        for _ in range(10):
            use()
        return gc.collect()

    gc.disable()
    try:
        assert min(garbage() for _ in range(5)) == 0  # now and then another thread leaves some
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


def number_in_flight():
    return sum(isinstance(one, (Asking, ItemInFlight)) for one in gc.get_objects())


def test_what_was_acknowledged_is_no_garbage(url, name, world):
    """The call and its item are in no cycle: only the last ones are kept."""
    with world(JoinableQueue)(0, name, url=url) as q:
        gc.disable()
        try:
            before = number_in_flight()
            for number in range(20):
                q.put(number)
                q.get()
                q.task_done()
            assert number_in_flight() - before <= 2
        finally:
            gc.enable()
        q.delete()
