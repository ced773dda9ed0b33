"""What handles of asyncio do as such: they open later, are cancelled, pickled, and left."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import pickle
import random
import sys
import threading
import weakref

import inside
import pytest
import started
from oracle import loops
from oracle.clients import waiters
from programs import aio_queues as programs
from waiting import HOURS, LIMIT

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    BrokerUnavailable,
    HandleClosedError,
    JoinableQueue,
    LifoQueue,
    Queue,
    QueueAlreadyExistsError,
    QueueDoesNotExistError,
    QueueMismatchError,
    aio,
)
from pressure_mp.identity.processes import incarnation

KINDS = [aio.Queue, aio.JoinableQueue, aio.LifoQueue, aio.PriorityQueue]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def make(url, name, request):
    """Makes handles to one queue, of each kind."""
    return lambda maxsize=0, **options: request.param(maxsize, name, url=url, **options)


@pytest.fixture
def joinable(url, name):
    """Makes handles to one JoinableQueue."""
    return lambda maxsize=0, **options: aio.JoinableQueue(maxsize, name, url=url, **options)


async def parked(handle, number):
    """Wait until so many calls wait at the broker."""
    await loops.until(lambda: waiters(handle.sync) == number)


# To open


def test_to_make_a_handle_asks_nothing_and_the_first_call_opens_the_queue(make, url, name):
    q = make(3)
    assert inside.binding(q.sync) is None

    async def main():
        looking = aio.PressureQueue(name, url=url)
        if type(q) is aio.Queue:
            assert not await looking.exists()
        assert await q.maxsize() == 3
        assert inside.binding(q.sync) is not None
        if type(q) is aio.Queue:
            assert await looking.exists()

    loops.run(main)


def test_many_tasks_open_a_handle_once(make, monkeypatch):
    q, opened = make(), []
    opens = q._open_now

    async def count():
        opened.append(1)
        await opens()

    monkeypatch.setattr(q, "_open_now", count)

    async def main():
        await asyncio.gather(*(q.put(number) for number in range(20)), q.open(), q.open())
        assert sorted([await q.get() for _ in range(20)]) == list(range(20))

    loops.run(main)
    assert opened == [1]


def test_a_task_that_is_cancelled_while_it_opens_stops_no_other(make):
    async def main():
        for steps in range(12):
            q = make()
            first, *others = [asyncio.ensure_future(q.open()) for _ in range(4)]
            for _ in range(steps):
                await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(*others)
            await asyncio.wait([first])
            await q.put(steps)
            assert await q.get() == steps

    loops.run(main)


def test_an_opening_that_failed_is_tried_again(url, name):
    async def main():
        q = aio.Queue(5, name, url=url)
        async with aio.Queue(3, name, url=url) as other:
            for _ in range(2):
                with pytest.raises(QueueMismatchError):
                    await q.open()
            await other.delete()
        await q.put(1)
        assert await q.maxsize() == 5

    loops.run(main)


def test_create_insists_on_a_new_queue_and_attach_on_an_old_one(url, name):
    async def main():
        with pytest.raises(QueueDoesNotExistError):
            await aio.LifoQueue.attach(name, url=url)
        made = await aio.LifoQueue.create(name, 2, url=url)
        assert type(made) is aio.LifoQueue
        with pytest.raises(QueueAlreadyExistsError):
            await aio.LifoQueue.create(name, url=url)
        assert await (await aio.LifoQueue.attach(name, url=url)).maxsize() == 2
        await made.delete()

    loops.run(main)


def test_handles_of_both_worlds_are_made_of_each_other(url, name):
    q = JoinableQueue(name=name, url=url)
    twin = aio.JoinableQueue.of(q)
    assert twin.sync is q
    assert (twin.name, twin.url, twin.prefix) == (q.name, q.url, q.prefix)
    with pytest.raises(ArgumentTypeError, match=r"aio.LifoQueue.of\(\) takes a LifoQueue"):
        aio.LifoQueue.of(q)

    async def main():
        await twin.put("there")
        assert await asyncio.to_thread(q.get) == "there"
        await asyncio.to_thread(q.task_done)
        await asyncio.to_thread(q.put, "back")
        assert await twin.get() == "back"
        await twin.task_done()
        await twin.join()

    loops.run(main)
    assert q.stats().in_flight == 0
    assert isinstance(aio.LifoQueue(name=name + "2", url=url).sync, LifoQueue)


def test_a_queue_of_asyncio_does_not_prefetch(url):
    with pytest.raises(ArgumentError, match="does not prefetch"):
        aio.Queue(url=url, prefetch=3)


# To pass on, and to end


def test_a_handle_is_pickled_when_it_is_open(make):
    q = make()
    with pytest.raises(ArgumentError, match="not open yet"):
        pickle.dumps(q)

    async def main():
        await q.put("there")
        copy = pickle.loads(pickle.dumps(q))
        assert (type(copy), copy.name) == (type(q), q.name)
        assert await copy.get() == "there"

    loops.run(main)


def test_an_iteration_ends_when_the_queue_is_shut_down_and_empty(make):
    async def main():
        async with make() as q:
            for number in (1, 1, 1):
                await q.put(number)
            await q.shutdown()
            assert [item async for item in q] == [1, 1, 1]
        with pytest.raises(HandleClosedError):
            await q.get()
        with pytest.raises(HandleClosedError):
            await q.put(1)
        await q.close()

    loops.run(main)


def test_async_with_closes_the_handle_also_after_an_error(make):
    q = make()

    async def fail():
        async with q as same:
            assert same is q
            raise ZeroDivisionError

    async def main():
        with pytest.raises(ZeroDivisionError):
            await fail()
        with pytest.raises(HandleClosedError):
            await q.put(1)

    loops.run(main)


def test_an_error_keeps_no_handle_alive(make):
    async def main():
        q = make(1)
        await q.put(1)
        gc.disable()
        try:
            for block, timeout in ((True, 0.01), (False, None)):
                with pytest.raises(asyncio.QueueFull):
                    await q.put(2, block, timeout)
            await q.get()
            for block, timeout in ((True, 0.01), (False, None)):
                with pytest.raises(asyncio.QueueEmpty):
                    await q.get(block, timeout)
            await q.delete()
            handle = weakref.ref(q)
            del q
            assert handle() is None
        finally:
            gc.enable()

    loops.run(main)


# Cancelled


def test_a_get_that_was_waited_for_in_vain_takes_nothing(make):
    async def main():
        q = make()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(q.get(), 0.05)
        if sys.version_info >= (3, 11):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await q.get()
        await q.put("whole")
        assert await asyncio.wait_for(q.get(), HOURS) == "whole"
        assert await q.empty()

    loops.run(main)


def test_items_of_cancelled_gets_come_back_and_nothing_stays_in_flight(joinable):
    """Each is cancelled at a random moment; some have their item by then."""
    number, rng = 60, random.Random(7)

    async def main():
        q = joinable()
        await q.put_many(range(number))
        got = []

        async def get_and_say():
            item = await q.get()
            got.append(item)
            await q.task_done()

        while len(got) < number:
            tasks = [asyncio.ensure_future(get_and_say()) for _ in range(5)]
            for task in tasks:
                for _ in range(rng.randrange(12)):
                    await asyncio.sleep(0)
                if rng.random() < 0.3:
                    await asyncio.sleep(rng.random() * 0.003)
                task.cancel()
            await asyncio.wait(tasks)
            if rng.random() < 0.2 and len(got) < number:
                await get_and_say()
        # A task_done() that was cancelled may or may not have been done.
        await loops.until(lambda: not inside.presence(q.sync).lease.has_doubts)
        stats = await q.stats()
        return got, stats

    got, stats = loops.run(main)
    assert set(got) == set(range(number))
    assert stats.length == 0


@pytest.mark.usefixtures("no_looks")
def test_a_get_that_is_cancelled_leaves_nothing_in_flight(joinable):
    """It has given everything back when it ends: no thread in the background does it."""
    number, rng = 30, random.Random(11)

    async def main():
        q = joinable()
        await q.put_many(range(number))
        for _ in range(60):
            getting = asyncio.ensure_future(q.get())
            for _ in range(rng.randrange(10)):
                await asyncio.sleep(0)
            if rng.random() < 0.4:
                await asyncio.sleep(rng.random() * 0.003)
            getting.cancel()
            await asyncio.wait([getting])
            if not getting.cancelled():
                getting.result()
                await q.task_done()
                await q.put(number)
        stats = await q.stats()
        assert (stats.length, stats.in_flight, stats.unfinished) == (number, 0, number)

    loops.run(main)


def test_each_task_acknowledges_what_it_got_itself(joinable):
    async def main():
        q = joinable()
        await q.put_many("abcd")
        order = asyncio.Queue()

        async def work(turn, after):
            first, second = await q.get(), await q.get()
            await order.put((first, second))
            await turn.wait()
            await q.task_done()
            after.set()

        one, two, done_one, done_two = (asyncio.Event() for _ in range(4))
        tasks = [asyncio.ensure_future(work(one, done_one))]
        mine = await order.get()
        tasks.append(asyncio.ensure_future(work(two, done_two)))
        theirs = await order.get()
        two.set()
        await done_two.wait()
        one.set()
        await done_one.wait()
        await asyncio.gather(*tasks)
        requeuing = inside.operations(q.sync).requeue(incarnation())
        await asyncio.to_thread(inside.run, q.sync, requeuing)
        assert [await q.get(), await q.get()] == ["b", "d"]
        return mine, theirs

    assert loops.run(main) == (("a", "b"), ("c", "d"))


# Several loops


def test_a_handle_goes_on_in_the_next_event_loop(make):
    q = make()
    loops.run(lambda: q.put(1))
    assert loops.run(q.get) == 1
    loops.run(lambda: q.put(2))
    assert loops.run(q.get) == 2


def test_two_event_loops_in_threads_share_a_handle(make):
    q, got, number = make(2), [], 40
    begun = threading.Barrier(2)

    def run(main):
        begun.wait()
        try:
            asyncio.run(main())
        except BaseException as error:
            got.append(error)

    async def put():
        for one in range(number):
            await q.put(one)

    async def get():
        for _ in range(number):
            got.append(await q.get())

    threads = [threading.Thread(target=run, args=(main,)) for main in (put, get)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(got) == list(range(number))


@pytest.mark.parametrize(
    ("kind", "loop"),
    [("Queue", "asyncio"), ("JoinableQueue", "asyncio"), ("JoinableQueue", "uvloop")],
)
def test_items_of_a_loop_that_is_closed_with_gets_under_way_go_back(url, name, kind, loop):
    pytest.importorskip(loop)
    here, there = started.quickly.Pipe()
    child = started.quickly.Process(
        target=programs.close_a_loop_with_gets, args=(there, url, name, kind, loop)
    )
    child.start()
    there.close()
    assert here.poll(LIMIT)
    assert here.recv() == ("item", [])
    child.join()


def test_a_spawned_child_uses_a_pickled_handle_in_its_own_loop(server, name):
    q = aio.JoinableQueue(name=name, url=server.url)
    loops.run(lambda: q.put("an order"))
    here, there = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(
        target=programs.get_and_say, args=(q, there)
    )
    child.start()
    assert here.recv() == "an order"
    child.join()
    assert child.exitcode == 0

    async def main():
        assert await q.get() == "an order"  # the child ended and had not acknowledged it
        assert await q.get() == "an answer"

    loops.run(main)


@pytest.mark.parametrize("reconnect", [0, 0.1])
def test_a_broker_that_is_away_is_told_of_by_each_call(name, reconnect):
    async def main():
        q = aio.Queue(name=name, url="redis://127.0.0.1:1/0", reconnect=reconnect)
        for call in (q.open, q.get, lambda: q.put(1), q.qsize):
            with pytest.raises(BrokerUnavailable):
                await call()

    loops.run(main)


def test_a_queue_whose_opening_fails_when_no_task_waits_any_more_says_nothing(name):
    told = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        q = aio.Queue(name=name, url="redis://127.0.0.1:1/0", reconnect=0.2)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(q.open(), 0.05)
        await asyncio.wait({q._opens})

    asyncio.run(main())
    gc.collect()
    assert not told


def test_a_queue_for_threads_and_one_of_asyncio_stand_in_one_line(url, name):
    async def main():
        q = aio.Queue(name=name, url=url)
        await q.open()
        before = waiters(q.sync)
        first = asyncio.ensure_future(q.get())
        await parked(q, before + 1)
        thread = asyncio.ensure_future(asyncio.to_thread(Queue(name=name, url=url).get))
        await parked(q, before + 2)
        for item, waits in (("task", first), ("thread", thread)):
            await q.put(item)
            assert await waits == item

    loops.run(main)
