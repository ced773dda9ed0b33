"""Handlers that are called with many tasks at a time."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import multiprocessing
import threading

import pytest
from engines import Can
from programs import tasks as programs
from waiting import HOURS, LIMIT, Background, until

from pressure_mp import ArgumentError, ArgumentTypeError, TaskFailed, TaskQueue, aio
from pressure_mp.aio.tasks.batches import Batches


@pytest.fixture(params=["threads", "asyncio"])
def run(request, url, name):
    """Runs a batch handler until the queue is shut down; the tasks of a handler are of its
    world."""

    def run(handler, **options):
        if request.param == "threads":
            queue = TaskQueue(name, url=url)
            queue.batch(**options)(handler)
            return Background(queue.run)

        async def main():
            queue = aio.TaskQueue(name, url=url)

            @queue.batch(**options)
            async def handle(tasks):
                found = handler(tasks)
                return [
                    await one if inspect.isawaitable(one) else one for one in found or ()
                ] or None

            await queue.run()

        return Background(lambda: asyncio.run(main()))

    return run


@pytest.fixture
def queue(url, name):
    queue = TaskQueue.create(name, url=url)
    yield queue
    queue.delete()


def end(queue, *runs):
    queue.shutdown()
    for one in runs:
        one.result()


def test_a_handler_is_called_with_full_batches(queue, run):
    queue.put_many(range(12))
    sizes = []
    running = run(
        lambda tasks: sizes.append(sorted(task.data for task in tasks)), size=4, wait=HOURS
    )
    until(lambda: queue.stats().counts["R"] == queue.stats().counts["T"] == 0)
    end(queue, running)
    assert [len(one) for one in sizes] == [4, 4, 4]
    assert sorted(itertools.chain(*sizes)) == [*range(12)]


def test_a_batch_that_is_not_full_is_handled_when_its_time_is_up(queue, run):
    queue.put_many(range(3))
    calls = []
    running = run(calls.append, size=100, wait=0.2)
    until(lambda: sum(map(len, calls)) == 3)
    end(queue, running)


def test_each_task_has_the_result_in_its_place(queue, run):
    ids = queue.put_many([1, 2, 3], result_ttl=60)
    running = run(lambda tasks: [task.data * 10 for task in tasks], size=3, wait=HOURS)
    assert [queue.result(id, timeout=LIMIT) for id in ids] == [10, 20, 30]
    end(queue, running)


def test_the_handler_settles_tasks_by_themselves_and_the_others_are_acknowledged(queue, run):
    ids = queue.put_many(["bury", "ack", "release"])

    def handle(tasks):
        by = {task.data: task for task in tasks}
        if len(by) == 3:
            return [by["bury"].bury(error="no"), by["release"].release(delay=3600), None]
        return None

    running = run(handle, size=3, wait=HOURS)
    until(lambda: queue.stats().counts["R"] == queue.stats().counts["T"] == 0)
    assert queue.peek(ids[0]).error == "no"
    assert queue.peek(ids[2]).state == "W"
    assert not any(task.id == ids[1] for task in queue.list("done"))
    queue.kill(ids[2])
    end(queue, running)
    assert sum(queue.stats().counts.values()) == 1


def test_when_the_handler_raises_each_task_fails(queue, run):
    ids = queue.put_many([1, 2], result_ttl=60)

    def handle(tasks):
        raise OSError(f"no disk for {len(tasks)}")

    running = run(handle, size=2, wait=HOURS, on_error="bury")
    for id in ids:
        with pytest.raises(OSError, match="no disk for 2"):
            queue.result(id, timeout=LIMIT)
    end(queue, running)


@pytest.mark.parametrize("returned", [[1], 7, "ab"])
def test_a_return_value_that_is_no_list_of_as_many_results_fails_the_tasks(
    queue, returned, url, name
):
    ids = queue.put_many([1, 2], result_ttl=60)
    queue.batch(size=2, wait=HOURS, on_error="bury")(lambda tasks: returned)
    running = Background(queue.run)
    for id in ids:
        with pytest.raises(
            (ArgumentTypeError, TaskFailed), match="batch of 2 tasks returns None or"
        ):
            queue.result(id, timeout=LIMIT)
    end(queue, running)


def test_several_batches_are_handled_at_the_same_time(queue):
    together = threading.Barrier(2)
    queue.put_many(range(4))
    queue.batch(size=2, wait=HOURS, concurrency=2)(lambda tasks: together.wait(LIMIT) and None)
    running = Background(queue.run)
    until(lambda: queue.stats().counts["R"] == queue.stats().counts["T"] == 0)
    end(queue, running)


def test_a_run_of_asyncio_that_has_no_more_time_cancels_the_handler_and_gives_all_back(queue, url):
    begun, cancelled = threading.Event(), threading.Event()
    queue.put_many(range(2))

    async def main():
        mine, stop = aio.TaskQueue(queue.name, url=url), asyncio.Event()

        @mine.batch(size=2, wait=HOURS)
        async def handle(tasks):
            begun.set()
            stop.set()
            try:
                await asyncio.sleep(HOURS)
            except asyncio.CancelledError:
                cancelled.set()
                raise

        await mine.run(stop=stop, grace=0)

    Background(lambda: asyncio.run(main())).result()
    assert begun.is_set()
    assert cancelled.is_set()
    assert queue.stats().counts["R"] == 2


def test_a_run_of_asyncio_handles_the_task_of_a_batch_that_an_earlier_run_left_open(queue, url):
    mine, handled = aio.TaskQueue(queue.name, url=url), []

    @mine.batch(size=10, wait=1)
    async def handle(tasks):
        handled.extend(task.data for task in tasks)

    async def run_until(is_over):
        stop = asyncio.Event()
        running = asyncio.create_task(mine.run(stop=stop, grace=0))
        while not await asyncio.to_thread(is_over):
            await asyncio.sleep(0.01)
        stop.set()
        await running

    def run(is_over):
        Background(lambda: asyncio.run(run_until(is_over))).result()

    queue.put("task")
    run(lambda: queue.stats().counts["R"] == 0)
    run(lambda: handled)
    assert handled == ["task"]


def test_a_batch_has_the_tasks_of_one_event_loop():
    handled = []

    async def handle(tasks):
        handled.append(tasks)
        return tasks

    batches = Batches(handle, 2, HOURS)

    async def main():
        waiting = asyncio.create_task(batches("task of the first loop"))
        await asyncio.sleep(0)
        other = Background(lambda: asyncio.run(run_other()))
        assert await asyncio.to_thread(other.result) == [1, 2]
        assert await batches("its last task") == "its last task"
        assert await waiting == "task of the first loop"

    async def run_other():
        return await asyncio.gather(batches(1), batches(2))

    asyncio.run(main())
    assert handled == [[1, 2], ["task of the first loop", "its last task"]]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"size": 0, "wait": 1}, ArgumentError),
        ({"size": "two", "wait": 1}, ArgumentTypeError),
        ({"size": 2, "wait": -1}, ArgumentError),
        ({"size": 2, "wait": float("nan")}, ArgumentError),
        ({"size": 2, "wait": 1, "concurrency": 0}, ArgumentError),
    ],
)
def test_wrong_options_are_refused(queue, options, error):
    with pytest.raises(error):
        queue.batch(**options)(print)


def test_a_batch_handler_of_asyncio_is_a_coroutine_function(queue, url):
    with pytest.raises(ArgumentTypeError, match="coroutine function"):
        aio.TaskQueue(queue.name, url=url).batch(size=2, wait=1)(print)


@pytest.mark.needs(Can.PROCESSES)
def test_tasks_that_a_killed_process_had_in_a_batch_come_again(queue):
    queue.put_many([1, 2, 3])
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=programs.hold_a_batch, args=(queue, there))
    process.start()
    assert here.recv() == [1, 2, 3]
    process.kill()
    process.join()
    assert sorted(queue.take(timeout=LIMIT).data for _ in range(3)) == [1, 2, 3]
