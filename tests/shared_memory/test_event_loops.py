"""Tasks of asyncio at queues in shared memory: they wait without a thread, and other processes wake
their loops."""

from __future__ import annotations

import asyncio
import errno
import multiprocessing
import os
import signal
import threading

import pytest
from in_memory import is_here, move, waiting_loops
from programs import waiting_loops as programs
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import Full, JoinableQueue, Queue, ShutDown, aio
from pressure_mp.engines import wake_sockets
from pressure_mp.engines.shared import held_items, items, linux, loop_waits, waking
from pressure_mp.engines.shared.shared_items import SharedItems
from pressure_mp.identity import shared_folder

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
forking = multiprocessing.get_context("fork")


@pytest.fixture(params=[True, False], ids=["ordered", "unordered"])
def make(request, server, monkeypatch):
    """Queues whose waits end by being woken, on a processor of either kind."""
    monkeypatch.setattr(linux, "IS_ORDERED", linux.IS_ORDERED and request.param)
    monkeypatch.setattr(items, "TICK", HOURS)
    made = []

    def make(*args, kind=Queue, **options):
        made.append(kind(*args, url=server.url, **options))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


@pytest.fixture
def waiter(start):
    """Start a process whose event loop waits for an item; returns it, and its pipe."""

    def waiter(queue, program=programs.get_and_tell):
        before = waiting_loops(queue)
        here, there = forking.Pipe()
        process = start(program, queue, there)
        until(lambda: waiting_loops(queue) > before)
        return process, here

    return waiter


def heard(pipe):
    assert pipe.poll(LIMIT)
    return pipe.recv()


async def waits_at(queue, number=1):
    """Let tasks run until so many event loops wait."""
    while waiting_loops(queue) < number:
        await asyncio.sleep(0.001)


def test_a_queue_of_asyncio_is_in_memory_until_a_call_needs_the_broker(server):
    async def main():
        queue = aio.Queue(url=server.url)
        await queue.put(1)
        await queue.put_many([2, 3])
        assert [await queue.get(), await queue.get_nowait()] == [1, 2]
        assert (await queue.qsize(), await queue.peek()) == (1, [3])
        assert (await queue.stats()).produced_messages == 3
        for _ in range(2):
            await queue.task_done()
        assert await queue.unfinished_tasks() == 1
        assert is_here(queue)
        assert await queue.rejected() == []
        assert not is_here(queue)
        assert await queue.get() == 3
        await queue.shutdown()
        with pytest.raises(ShutDown):
            await queue.get()
        await queue.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", [aio.JoinableQueue, aio.Queue])
def test_tasks_work_through_a_queue_with_a_bound(server, kind):
    async def main():
        queue = kind(3, url=server.url)
        found = []

        async def work():
            while True:
                found.append(await queue.get())
                await queue.task_done()

        workers = [asyncio.ensure_future(work()) for _ in range(4)]
        for number in range(200):
            await queue.put(number)
        await queue.join()
        assert sorted(found) == list(range(200))
        assert is_here(queue)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for number in range(3):
            await queue.put(number)
        with pytest.raises(Full):
            await queue.put(3, timeout=0.01)
        await queue.close()

    asyncio.run(main())


def test_an_item_of_another_process_wakes_a_task(make, waiter):
    queue = make()
    _, pipe = waiter(queue)
    queue.put("item")
    assert heard(pipe) == "item"
    assert is_here(queue)


def test_a_task_waits_without_a_thread(make):
    queue = make()

    async def main():
        before = threading.active_count()
        waits = asyncio.ensure_future(aio.Queue.of(queue).get())
        await waits_at(queue)
        assert threading.active_count() == before
        queue.put("item")
        assert await waits == "item"

    asyncio.run(main())


def test_a_get_of_another_process_wakes_a_task_that_waits_for_space(make):
    queue = make(1)
    queue.put(0)

    async def main():
        there = aio.Queue.of(queue)
        waits = asyncio.ensure_future(there.put(1))
        await waits_at(queue)
        assert not waits.done()
        assert queue.get() == 0
        await waits

    asyncio.run(main())
    assert queue.get() == 1


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_the_end_of_all_work_wakes_a_task_that_joins(make, kind):
    queue = make(kind=kind)
    queue.put(0)

    async def main():
        waits = asyncio.ensure_future(programs.handle_of(queue).join())
        await waits_at(queue)
        assert queue.get() == 0
        assert not waits.done()
        queue.task_done()
        await waits

    asyncio.run(main())


def test_the_end_of_the_queue_wakes_all_tasks_that_wait(make):
    queue = make()

    async def main():
        there = aio.Queue.of(queue)
        waiting = [asyncio.ensure_future(there.get()) for _ in range(5)]
        await waits_at(queue)
        queue.shutdown()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(one, ShutDown) for one in found)

    asyncio.run(main())


def test_tasks_of_a_loop_are_served_in_the_order_in_which_they_came(make):
    queue = make()

    async def main():
        there = aio.Queue.of(queue)
        waiting = [asyncio.ensure_future(there.get()) for _ in range(10)]
        await waits_at(queue)
        for number in range(10):
            queue.put(number)
        assert await asyncio.gather(*waiting) == list(range(10))

    asyncio.run(main())


def test_threads_and_loops_that_wait_are_served_by_as_many_items(make, waiter):
    queue = make()
    threads = [Background(queue.get) for _ in range(4)]
    until(lambda: all(map(parks, threads)))
    pipes = [waiter(queue)[1] for _ in range(4)]
    for number in range(8):
        queue.put(number)
    found = [thread.result() for thread in threads] + [heard(pipe) for pipe in pipes]
    assert sorted(found) == list(range(8))


@pytest.fixture
def meanwhile(monkeypatch):
    """Have a function called when the next wake is over, and before its caller goes on."""

    def meanwhile(module, function):
        wake, calls = module.wake, [function]

        def wake_and_call(*arguments):
            woken = wake(*arguments)
            if calls:
                calls.pop()()
            return woken

        monkeypatch.setattr(module, "wake", wake_and_call)

    return meanwhile


def test_two_puts_at_a_time_wake_two_threads(make, meanwhile):
    queue = make(10)
    threads = [Background(queue.get) for _ in range(2)]
    until(lambda: all(map(parks, threads)))
    meanwhile(linux, lambda: queue.put(2))
    queue.put(1)
    assert sorted(thread.result() for thread in threads) == [1, 2]


def test_two_puts_at_a_time_wake_two_loops(make, waiter, meanwhile):
    queue = make(10)
    pipes = [waiter(queue)[1] for _ in range(2)]
    meanwhile(wake_sockets, lambda: queue.put(2))
    queue.put(1)
    assert sorted(map(heard, pipes)) == [1, 2]


def test_an_item_wakes_the_next_loop_if_the_first_was_killed(make, waiter):
    queue = make()
    killed, _ = waiter(queue)
    _, pipe = waiter(queue)
    killed.kill()
    killed.join()
    queue.put("item")
    assert heard(pipe) == "item"


def test_a_child_does_not_keep_the_place_of_a_loop_that_was_killed(make, waiter):
    queue = make()
    killed, told = waiter(queue, programs.fork_while_waiting)
    child = heard(told)
    try:
        _, pipe = waiter(queue)
        killed.kill()
        killed.join()
        queue.put("item")
        assert heard(pipe) == "item"
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_cancelled_task_passes_on_what_it_was_told(make, waiter):
    queue = make()

    async def main():
        waits = asyncio.ensure_future(aio.Queue.of(queue).get())
        await waits_at(queue)
        _, pipe = waiter(queue)
        queue.put("item")  # which this loop is told, since it waits for longer
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert heard(pipe) == "item"

    asyncio.run(main())


def test_tasks_that_wait_go_on_at_the_broker_when_the_items_move(make):
    queue = make()

    async def main():
        there = aio.Queue.of(queue)
        waiting = [asyncio.ensure_future(there.get()) for _ in range(3)]
        await waits_at(queue)
        await asyncio.to_thread(move, queue)
        await there.put_many([0, 1, 2])
        assert await asyncio.gather(*waiting) == [0, 1, 2]

    asyncio.run(main())


def test_the_items_move_when_more_loops_wait_than_there_is_room_for(make, waiter, monkeypatch):
    monkeypatch.setattr(waking, "MOST_LOOPS", 1)
    queue = make()
    _, pipe = waiter(queue)

    async def main():
        waits = asyncio.ensure_future(aio.Queue.of(queue).get())
        while is_here(queue):
            await asyncio.sleep(0.001)
        queue.put_many([0, 1])
        return await waits

    assert sorted([asyncio.run(main()), heard(pipe)]) == [0, 1]


def test_the_items_move_when_a_loop_gets_no_socket(make, monkeypatch):
    def refuse(name):
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(wake_sockets, "listen", refuse)
    queue = make()

    async def main():
        waits = asyncio.ensure_future(aio.Queue.of(queue).get())
        while is_here(queue):
            await asyncio.sleep(0.001)
        await asyncio.to_thread(queue.put, "item")
        return await waits

    assert asyncio.run(main()) == "item"


def test_an_item_in_flight_comes_again_when_its_process_was_killed(make, waiter, monkeypatch):
    queue = make(kind=JoinableQueue)
    killed, told = waiter(queue, programs.get_and_keep)
    queue.put("item")
    assert heard(told) == "item"
    killed.kill()
    killed.join()
    monkeypatch.setattr(items, "TICK", 0.05)

    async def main():
        return await aio.JoinableQueue.of(queue).get(timeout=LIMIT)

    assert asyncio.run(main()) == "item"
    assert is_here(queue)


def test_a_loop_goes_on_while_another_process_keeps_the_lock(make, start):
    queue = make()
    queue.put("item")
    here, there = forking.Pipe()
    process = start(programs.hold_the_lock, queue, there)
    assert heard(here)

    async def main():
        rounds = 0

        async def count():
            nonlocal rounds
            while True:
                await asyncio.sleep(0)
                rounds += 1

        counting = asyncio.ensure_future(count())
        waits = asyncio.ensure_future(aio.Queue.of(queue).get())
        while rounds < 100:
            await asyncio.sleep(0.01)
        assert not waits.done()
        process.kill()
        assert await waits == "item"
        counting.cancel()

    asyncio.run(main())


@pytest.fixture
def slow_look(make, monkeypatch):
    """A queue from which an item was got, and two events: a thread has begun to look for items of
    processes that have ended; and it may go on."""
    begun, may_end = threading.Event(), threading.Event()
    look = SharedItems.requeue_lost

    def requeue_lost(self):
        if not begun.is_set():
            begun.set()
            assert may_end.wait(LIMIT)
        look(self)

    queue = make(kind=JoinableQueue, max_deliveries=5)
    queue.put("item")
    queue.get()
    queue.task_done()
    monkeypatch.setattr(SharedItems, "requeue_lost", requeue_lost)
    monkeypatch.setattr(held_items, "CHECK", HOURS)
    queue._at.binding.items.ring.looked = -2 * HOURS
    yield queue, begun, may_end
    may_end.set()


def test_tasks_keep_their_order_while_the_first_looks_for_lost_items(slow_look):
    queue, begun, may_end = slow_look
    queue.put_many([0, 1])

    async def main():
        there = aio.JoinableQueue.of(queue)
        first = asyncio.ensure_future(there.get())
        await asyncio.to_thread(begun.wait, LIMIT)
        second = asyncio.ensure_future(there.get())
        while not (second.done() or len(loop_waits.of_loop().lines)):
            await asyncio.sleep(0.001)
        may_end.set()
        assert [await first, await second] == [0, 1]

    asyncio.run(main())


def test_a_task_that_is_cancelled_while_it_looks_for_lost_items_takes_nothing(slow_look):
    queue, begun, may_end = slow_look
    queue.put("item")

    async def main():
        getting = asyncio.ensure_future(aio.JoinableQueue.of(queue).get())
        await asyncio.to_thread(begun.wait, LIMIT)
        getting.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await getting

    asyncio.run(main())
    assert queue.qsize() == 1


@pytest.mark.parametrize("put", ["put_nowait", "put_many"])
def test_a_put_that_may_not_wait_is_done_when_the_lock_is_released_soon(make, monkeypatch, put):
    queue = make(2)
    tries, released, have = [], threading.Event(), threading.Event()
    do = SharedItems.put

    def spy(*arguments):
        tries.append(arguments)
        return do(*arguments)

    def stay():
        have.set()
        assert released.wait(LIMIT)

    monkeypatch.setattr(SharedItems, "put", spy)
    holding = Background(queue._at.attached().items.ring.putting.run, stay)
    assert have.wait(LIMIT)

    async def main():
        there = aio.Queue.of(queue)
        await there.open()
        putting = there.put_nowait(1) if put == "put_nowait" else there.put_many([1], block=False)
        trying = asyncio.ensure_future(putting)
        while not (tries or trying.done()):
            await asyncio.sleep(0.001)
        released.set()
        await trying

    asyncio.run(main())
    holding.result()
    assert queue.get() == 1


@pytest.mark.parametrize("bound", [0, 1000])
def test_a_task_that_gets_many_items_lets_other_tasks_run(make, bound):
    queue = make(bound)
    queue.put_many(range(500))

    async def main():
        there, ran = aio.Queue.of(queue), []
        assert await there.get() == 0
        asyncio.get_running_loop().call_soon(ran.append, True)
        for number in range(1, 500):
            assert await there.get() == number
        assert ran

    asyncio.run(main())


def test_two_loops_pass_items_there_and_back(make, start):
    there, back = make(), make()
    start(programs.echo, there, back, 200)

    async def main():
        goes, comes = aio.Queue.of(there), aio.Queue.of(back)
        for number in range(200):
            await goes.put(number)
            assert await comes.get() == number

    asyncio.run(main())
    assert is_here(there)
    assert is_here(back)


def test_no_loop_leaves_a_file(make):
    queue = make()

    async def main():
        waits = asyncio.ensure_future(aio.Queue.of(queue).get())
        await waits_at(queue)
        number = loop_waits.of_loop()._number
        path = wake_sockets._path(shared_folder.find(), waking.name_of(number))
        assert os.path.exists(path)
        return path, waits

    path, waits = asyncio.run(main())
    assert waits.cancelled()
    until(lambda: not os.path.exists(path))
