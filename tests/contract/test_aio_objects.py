"""Objects through queues of asyncio, and through handles of both kinds to one queue."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import weakref

import numpy as np
import pytest
from oracle import loops
from oracle.clients import waiters

from pressure_mp import (
    AuthenticationError,
    DecodingError,
    Empty,
    EncodingError,
    Full,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    RejectedItemWarning,
    ShutDown,
    TaskDoneError,
    aio,
)
from pressure_mp.encoding.large import THRESHOLD

LARGE = os.urandom(1_500_000)
BAD = b"no pickle"


@pytest.fixture(params=[None, "a secret"], ids=["unsigned", "signed"])
def make(url, name, request):
    """Makes handles to one queue."""
    return lambda kind, *args, **options: kind(
        *args, name=name, url=url, authkey=request.param, **options
    )


def twin_of(handle):
    """A handle of asyncio to the same queue."""
    return getattr(aio, type(handle).__name__).of(handle)


def run(main):
    """Run a coroutine to its end."""
    return asyncio.run(main)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, LifoQueue, PriorityQueue])
def test_objects_go_in_and_out_one_by_one_and_many_at_a_time(make, kind):
    q = make(kind)
    twin = twin_of(q)

    async def main():
        await twin.put((1, "one"))
        await twin.put_many([(2, None), (3, {"three": 3}), (4, 4)])
        assert await twin.qsize() == 4
        first = await twin.get()
        found = [first, *await twin.get_many(3)]
        return found if kind is not LifoQueue else found[::-1]

    assert run(main()) == [(1, "one"), (2, None), (3, {"three": 3}), (4, 4)]
    q.put((5, 5))
    assert run(twin.get()) == (5, 5)
    run(twin.put((6, 6)))
    assert q.get() == (6, 6)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_waiting_gets_are_woken_and_calls_that_waited_in_vain_raise(make, kind):
    twin = twin_of(make(kind, 1))

    async def main():
        getting = [asyncio.ensure_future(twin.get()) for _ in range(3)]
        for number in range(3):
            await asyncio.sleep(0)
            await twin.put(number)
        assert sorted(await asyncio.gather(*getting)) == [0, 1, 2]
        with pytest.raises(Empty):
            await twin.get(timeout=0.01)
        await twin.put(3)
        with pytest.raises(Full):
            await twin.put(4, timeout=0.01)
        await twin.shutdown()
        assert await twin.get() == 3
        with pytest.raises(ShutDown):
            await twin.get()

    run(main())


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_large_objects_come_whole(make, kind):
    q = make(kind)
    twin = twin_of(q)

    async def main():
        await twin.put_many([b"before", LARGE, b"behind"])
        found = [await twin.get() for _ in range(2)]
        return [*found, *await twin.get_many(5)]

    assert run(main()) == [b"before", LARGE, b"behind"]
    assert q.empty()


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_join_waits_for_what_was_got(make, kind):
    q = make(kind)
    twin = twin_of(q)

    async def main():
        await twin.put_many([1, 2])
        joining = asyncio.ensure_future(twin.join())
        for number in (1, 2):
            assert await twin.get() == number
            assert not joining.done()
            await twin.task_done()
        await joining
        with pytest.raises(TaskDoneError):
            await twin.task_done()

    run(main())
    assert q.stats().in_flight == 0


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
@pytest.mark.parametrize("many", [False, True], ids=["get", "get_many"])
def test_an_item_that_cannot_be_decoded_is_set_aside_and_counts_as_done(url, name, kind, many):
    bytewise, q = Queue(name=name, url=url, serializer="raw"), kind(name=name, url=url)
    bytewise.put(BAD)
    twin = twin_of(q)

    async def main():
        with pytest.raises(DecodingError):
            await (twin.get_many(5) if many else twin.get())
        assert await twin.rejected() == [BAD]
        await twin.join()
        with pytest.raises(EncodingError):
            await twin.put(lambda: None)

    run(main())
    bytewise.put(BAD)
    q.put("good")
    with pytest.warns(RejectedItemWarning):
        assert run(twin.get_many(2)) == ["good"]
    assert run(twin.rejected()) == [BAD, BAD]


def test_a_large_object_of_another_key_is_set_aside_with_its_content(url, name):
    Queue(name=name, url=url, authkey="another").put(LARGE)
    twin = twin_of(Queue(name=name, url=url, authkey="a secret"))

    async def main():
        with pytest.raises(AuthenticationError):
            await twin.get()
        (rejected,) = await twin.rejected()
        return rejected

    assert len(run(main())) < len(LARGE)  # what its manifest says is not to be believed


def test_the_content_is_that_which_was_put(make):
    """Every byte of it, many at the same time."""
    twin = twin_of(make(Queue))
    contents = [os.urandom(600_000) for _ in range(4)]

    async def main():
        await asyncio.gather(*map(twin.put, contents))
        return await asyncio.gather(*(twin.get() for _ in contents))

    def digests(found):
        return sorted(hashlib.sha256(one).digest() for one in found)

    assert digests(run(main())) == digests(contents)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_an_item_that_a_get_waited_for_is_freed_with_its_last_reference(url, name, kind):
    """No call leaves it to the garbage collector."""
    q = kind(name=name, url=url)

    async def get_while_it_waits():
        async with twin_of(q) as twin:
            getting = asyncio.ensure_future(twin.get())
            await loops.until(lambda: waiters(q) == 1)
            await twin.put(np.zeros(THRESHOLD // 8))
            found = weakref.ref(await getting)
            del getting
            await loops.until(lambda: found() is None)  # a thread may have made the call

    gc.collect()
    gc.disable()
    try:
        run(get_while_it_waits())
    finally:
        gc.enable()
    q.delete()
