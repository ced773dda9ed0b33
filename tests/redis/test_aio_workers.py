"""Worker processes with an event loop that are told to stop, and killed."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from programs import aio_workers as programs
from waiting import HOURS, blocked, until

from pressure_mp import TaskQueue, aio

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

#: A handler that is a coroutine function, and one that is a plain one.
BOTH = pytest.mark.parametrize("is_plain", [False, True], ids=["coroutine", "function"])


@pytest.fixture
def queue(server, name):
    # What waits for the end of a lease does not end.
    with TaskQueue(name, url=server.url, lease=HOURS) as queue:
        yield queue
        queue.delete()


@pytest.fixture
def work(queue, start):
    return lambda **options: start(programs.work, aio.TaskQueue.of(queue), **options)


def counts(queue):
    return {state: number for state, number in queue.stats().counts.items() if number}


@BOTH
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_end_finishes_what_it_has_and_begins_nothing(
    queue, work, number, is_plain
):
    queue.put_many("abc")
    process, pipe = work(concurrency=2, is_plain=is_plain)
    assert {pipe.recv(), pipe.recv()} == {"a", "b"}
    os.kill(process.pid, number)
    assert not pipe.poll(0.1)
    pipe.send("go on")
    pipe.send("go on")
    assert pipe.recv() == ("ended", True, [])
    process.join()
    assert process.exitcode == 0
    assert counts(queue) == {"R": 1}


@BOTH
def test_a_task_not_finished_within_the_grace_is_given_back_and_the_process_ends(
    queue, work, is_plain
):
    queue.put("a")
    process, pipe = work(grace=0.1, is_plain=is_plain)
    assert pipe.recv() == "a"
    process.terminate()
    ended, restored, (warning,) = pipe.recv()
    assert (ended, restored) == ("ended", True)
    assert "before it was finished" in warning
    assert queue.take(0).error
    process.join()
    assert process.exitcode == 0


@BOTH
def test_a_second_signal_ends_the_time_that_tasks_have(queue, work, is_plain):
    queue.put("a")
    process, pipe = work(grace=None, is_plain=is_plain)
    assert pipe.recv() == "a"
    process.terminate()
    while not pipe.poll(0.2):  # two of a kind that come at once are one
        process.terminate()
    assert pipe.recv()[0] == "ended"
    assert counts(queue) == {"R": 1}
    process.join()


def test_a_worker_that_waits_ends_at_once(queue, work, server):
    process, pipe = work(concurrency=3)
    with server.client() as client:
        until(lambda: blocked(client))
    process.terminate()
    assert pipe.recv()[:2] == ("ended", True)
    process.join()


@BOTH
def test_a_waiting_take_gets_the_tasks_of_a_killed_worker_at_once(queue, work, is_plain):
    queue.put_many("ab")
    process, pipe = work(concurrency=2, is_plain=is_plain)
    assert {pipe.recv(), pipe.recv()} == {"a", "b"}
    process.kill()

    async def take():
        ours = aio.TaskQueue.of(queue)
        return [await ours.take() for _ in range(2)]

    tasks = asyncio.run(take())
    assert sorted((task.data, task.deliveries) for task in tasks) == [("a", 2), ("b", 2)]
    queue.ack_many(task.id for task in tasks)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_handle_goes_to_a_child(queue, start, method):
    async def main():
        ours = aio.TaskQueue.of(queue)
        process, pipe = start(programs.take_and_put, ours, method=method)
        await ours.put("a")
        task = await ours.take(tube="back")
        assert task.data == ("a", 20)
        await task.ack()
        assert pipe.recv() == "done"
        process.join()

    asyncio.run(main())
