"""Items that are put through handles of asyncio and sent by a task: their order, errors and end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import inside
import pytest
import started
from oracle import loops
from oracle.clients import waiters
from programs import aio_queues as programs
from waiting import LIMIT, until

from pressure_mp import JoinableQueue, Queue, QueueDoesNotExistError, ShutDown, aio


@pytest.fixture
def make(url, name):
    """Makes handles to one queue, each of which sends in the background."""
    return lambda buffering=1000, **options: aio.Queue(
        name=name, url=url, buffering=buffering, **options
    )


def is_buffered(q):
    return any(map(len, inside.outgoing_in_loops(q)))


def test_an_anonymous_queue_without_a_bound_sends_in_the_background(server, monkeypatch):
    monkeypatch.setenv("PRESSURE_SHARED_MEMORY", "0")

    async def main():
        q = aio.Queue(url=server.url)
        await q.put(1)
        assert is_buffered(q)
        await q.flush()
        assert not is_buffered(q)
        bounded = aio.Queue(5, url=server.url)
        await bounded.put(1)
        assert not is_buffered(bounded)
        return [await q.get(), await bounded.get()]

    assert loops.run(main) == [1, 1]


def test_puts_through_two_handles_arrive_in_their_order(make, name):
    async def main():
        one, two = make(), make()
        for number in range(600):
            await (one if number % 3 else two).put(number)
        assert inside.outgoing_in_loops(one)
        assert inside.outgoing_in_loops(two)
        await one.flush()
        await two.flush()
        got = []
        while len(got) < 600:
            got += await one.get_many(600 - len(got))
        return got

    assert loops.run(main) == list(range(600))


def test_an_item_put_into_a_second_queue_is_sent_after_those_put_into_the_first(server, name):
    """A program that sees an item of the second sees the item put into the first before it."""

    async def main():
        first, second = (aio.Queue(name=name + end, url=server.url, buffering=1000) for end in "12")
        there = [aio.Queue(name=name + end, url=server.url) for end in "12"]
        for _ in range(50):
            await first.put("a")
            await second.put("b")
            assert await there[1].get() == "b"
            assert await there[0].get(block=False) == "a"

    loops.run(main)


def test_a_full_buffer_is_waited_for(make):
    async def main():
        q = make(buffering=3)
        for number in range(50):
            await q.put(number)
            assert sum(map(len, inside.outgoing_in_loops(q))) <= 3
        assert [await q.get() for _ in range(50)] == list(range(50))

    loops.run(main)


def test_the_next_call_raises_an_error_of_sending_with_the_rest(make):
    async def main():
        q, other = make(), make()
        await q.put(1)
        await q.flush()
        await other.delete()
        await q.put(2)
        await q.put(3)
        with pytest.raises(QueueDoesNotExistError) as caught:
            await q.flush()
        assert caught.value.rest == [2, 3]
        await q.flush()  # it was told once

    loops.run(main)


def test_a_put_into_a_queue_that_was_shut_down_says_so_at_the_next_call(make):
    async def main():
        q, other = make(), make()
        await q.put(1)
        await q.flush()
        await other.shutdown()
        await q.put(2)
        await loops.until(lambda: not is_buffered(q))
        with pytest.raises(ShutDown) as caught:
            await q.put(3)
        assert caught.value.rest == [2]

    loops.run(main)


def test_a_put_through_the_handle_that_shut_the_queue_down_says_so_itself(make):
    async def main():
        q = make()
        await q.put(1)
        await q.shutdown()
        for put in (q.put, q.put_nowait):
            with pytest.raises(ShutDown):
                await put(2)
        assert [item async for item in q] == [1]

    loops.run(main)


@pytest.mark.parametrize("puts", [0, 1, 17, 300])
def test_the_end_of_asyncio_run_sends_what_was_put(make, puts):
    """Whatever is on its way then is there once."""
    q = make()

    async def main(steps):
        for number in range(puts):
            await q.put((steps, number))
        for _ in range(steps):
            await asyncio.sleep(0)

    for steps in range(12):
        loops.run(lambda steps=steps: main(steps))
    assert not is_buffered(q)

    async def rest():
        return [await q.get() for _ in range(12 * puts)], await q.qsize()

    assert loops.run(rest) == ([(step, number) for step in range(12) for number in range(puts)], 0)


@pytest.mark.parametrize(
    "program", ["run_to_its_end", "stop_and_exit", "leave_a_loop_in_a_thread", "raise_an_error"]
)
def test_a_program_that_ends_behind_a_put_has_sent_it(server, name, program):
    ended = subprocess.run(
        [sys.executable, programs.__file__, program, server.url, name],
        env=started.environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    q = Queue(name=name, url=server.url)
    assert [q.get_nowait() for _ in range(programs.NUMBER)] == list(range(programs.NUMBER))
    assert q.empty()


def test_two_event_loops_in_threads_put_through_one_handle(make, name):
    q, number = make(), 300
    begun = threading.Barrier(2)

    def run(producer):
        async def main():
            begun.wait()
            for one in range(number):
                await q.put((producer, one))
            await q.flush()

        asyncio.run(main())

    threads = [threading.Thread(target=run, args=(producer,)) for producer in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)

    async def rest():
        return [await q.get(timeout=LIMIT) for _ in range(2 * number)]

    got = loops.run(rest)
    for producer in "ab":
        of_this = [one for one in got if one[0] == producer]
        assert of_this == [(producer, one) for one in range(number)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_has_nothing_to_send_and_a_loop_of_its_own(server, name):
    async def main():
        q = aio.Queue(name=name, url=server.url, buffering=1000)
        await q.put("before")
        await q.flush()
        await q.put("the parent's")
        assert is_buffered(q)
        child = os.fork()
        if not child:
            status = 1
            try:
                asyncio.events._set_running_loop(None)
                asyncio.run(in_child(q))
                status = 0
            finally:
                os._exit(status)
        assert await asyncio.to_thread(os.waitpid, child, 0) == (child, 0)
        await q.flush()
        return sorted([await q.get() for _ in range(3)]), await q.qsize()

    async def in_child(q):
        await q.put("the child's")
        await q.flush()

    assert loops.run(main) == (["before", "the child's", "the parent's"], 0)


@pytest.mark.parametrize("call", ["get", "put", "join"])
def test_the_others_go_on_when_one_that_waits_is_killed(server, name, call):
    """It waits in asyncio; another consumer, producer or joiner comes behind it."""
    q = JoinableQueue(1, name, url=server.url)
    if call != "get":
        q.put("full")
    waits = waiters(q)
    doomed = subprocess.Popen(
        [sys.executable, programs.__file__, "wait_in", server.url, name, call],
        env=started.environment(),
        stdout=subprocess.PIPE,
    )
    try:
        assert doomed.stdout.readline() == b"waits\n"
        until(lambda: waiters(q) > waits)
        os.kill(doomed.pid, signal.SIGKILL)
    finally:
        doomed.kill()
        doomed.wait()
        doomed.stdout.close()

    async def main():
        mine = aio.JoinableQueue(name=name, url=server.url)
        if call == "get":
            getting = asyncio.ensure_future(mine.get(timeout=LIMIT))
            await mine.put("full")
            assert await getting == "full"
        elif call == "put":
            assert await mine.get() == "full"
            await mine.put("next", timeout=LIMIT)
            assert await mine.get(timeout=LIMIT) == "next"
            await mine.task_done()
        else:
            assert await mine.get() == "full"
        await mine.task_done()
        await asyncio.wait_for(mine.join(), LIMIT)

    loops.run(main)


def uvloop_run(main):
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def anyio_run(main):
    pytest.importorskip("anyio").run(main, backend="asyncio")


def eager_run(main):
    if sys.version_info < (3, 12):
        pytest.skip("asyncio has eager tasks since 3.12")

    async def eagerly():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        await main()

    asyncio.run(eagerly())


@pytest.mark.parametrize("run", [uvloop_run, anyio_run, eager_run])
def test_another_event_loop_and_another_library_serve_as_well(url, name, run):
    async def main():
        q = aio.JoinableQueue(3, name, url=url)
        getting = [asyncio.ensure_future(q.get()) for _ in range(3)]
        for number in range(6):
            await q.put(number)
        got = [await one for one in getting]
        got += [await q.get() for _ in range(3)]
        assert sorted(got) == list(range(6))
        with pytest.raises(asyncio.QueueEmpty):
            await q.get(timeout=0.01)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(q.get(), 0.01)
        for _ in range(6):
            await q.task_done()
        await q.join()
        sends = aio.Queue(name=name + "2", url=url, buffering=100)
        for number in range(250):
            await sends.put(number)
        assert [await sends.get() for _ in range(250)] == list(range(250))
        many = [q.put(number) for number in range(20)], [q.get() for _ in range(20)]
        assert sorted((await asyncio.gather(*many[0], *many[1]))[20:]) == list(range(20))
        await q.delete()
        await sends.delete()

    run(main)


def test_scopes_of_anyio_end_a_wait(url, name):
    anyio = pytest.importorskip("anyio")

    async def main():
        q = aio.JoinableQueue(name=name, url=url)
        with anyio.move_on_after(0.05) as scope:
            await q.get()
        assert scope.cancelled_caught
        async with anyio.create_task_group() as group:
            group.start_soon(q.get)
            group.start_soon(q.get)
            await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        await q.put("whole")
        assert await q.get() == "whole"
        await q.task_done()
        stats = await q.stats()
        assert (stats.length, stats.in_flight) == (0, 0)

    anyio_run(main)


def test_scopes_of_anyio_end_calls_that_are_under_way(url, name):
    anyio = pytest.importorskip("anyio")

    async def cancel(scope, rounds):
        for _ in range(rounds):
            await asyncio.sleep(0)
        scope.cancel()

    async def main():
        async with aio.Queue(name=name, url=url) as q:
            for rounds in range(40):
                with anyio.CancelScope() as scope:
                    cancelling = asyncio.ensure_future(cancel(scope, rounds))
                    while True:
                        await q.put(rounds)
                        await q.get()
                        await asyncio.sleep(0)  # in memory, no call suspends
                assert scope.cancelled_caught
                await cancelling

    anyio_run(main)
