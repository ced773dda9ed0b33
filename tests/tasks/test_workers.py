"""The workers of a queue of tasks, as other programs see them."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
import time

import inside
import pytest
from engines import Can
from programs.tasks import print_all
from waiting import LIMIT, until

import pressure_mp
from pressure_mp import Executor, TaskQueue, aio
from pressure_mp.drivers import drive
from pressure_mp.encoding.worker_texts import WorkerText
from pressure_mp.engines.contract.session import Options
from pressure_mp.operations.task_leases import TaskLeaseOperations


@contextlib.contextmanager
def running(queue, handler=None, **options):
    """A run in a thread, until the end of the block."""
    stop = threading.Event()
    thread = threading.Thread(target=queue.run, args=(handler,), kwargs={**options, "stop": stop})
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()


def there(queue, number):
    """So many workers, once they are there."""
    until(lambda: len(queue.workers()) == number)
    return queue.workers()


def hold(started, over):
    """A handler that holds its task."""

    def handle(task):
        started.set()
        assert over.wait(LIMIT)

    return handle


def test_a_worker_is_seen_until_it_ends_also_without_a_task(queue):
    assert queue.workers() == []
    before = queue.stats().now
    with running(queue, print, concurrency=3, tube="a"):
        (worker,) = there(queue, 1)
        assert (worker.concurrency, worker.tubes, worker.tasks) == (3, ("a",), ())
        assert worker.version == pressure_mp.__version__
        assert worker.process[1:3] == (os.uname().nodename, os.getpid())
        assert worker.process.alive is True
        assert before - 1 <= worker.since <= queue.stats().now
        assert worker.lease_left > 0
    there(queue, 0)


def test_a_worker_has_the_tasks_that_it_is_at(queue):
    started, over = threading.Event(), threading.Event()
    queue.put("data", id="one", tube="a")
    queue.put("mine", id="two")
    with running(queue, hold(started, over), tube="a"), running(queue, print, tube="b"):
        assert started.wait(LIMIT)
        mine = queue.take()
        by_tube = {worker.tubes: worker for worker in there(queue, 3)}
        (task,) = by_tube["a",].tasks
        assert (task.id, task.deliveries, task.tube) == ("one", 1, "a")
        assert task.since == queue.peek("one").since
        assert by_tube["b",].tasks == ()
        assert [one.id for one in by_tube[()].tasks] == ["two"]
        assert by_tube[()].concurrency is by_tube[()].version is None
        mine.ack()
        assert len(queue.workers()) == 2
        over.set()
    there(queue, 0)


def test_several_runs_of_a_process_are_several_workers_with_tasks_of_their_own(queue):
    over = threading.Event()
    begun = [threading.Event(), threading.Event()]
    with running(queue, hold(begun[0], over)), contextlib.ExitStack() as stack:
        there(queue, 1)
        queue.put(1)
        assert begun[0].wait(LIMIT)
        stack.enter_context(running(queue, hold(begun[1], over)))
        there(queue, 2)
        queue.put(2)
        assert begun[1].wait(LIMIT)
        first, second = sorted(queue.workers(), key=lambda worker: worker.since)
        assert [first.number, second.number] == sorted({first.number, second.number})
        assert [len(worker.tasks) for worker in (first, second)] == [1, 1]
        over.set()


def test_a_worker_of_asyncio_is_seen(queue):
    async def main():
        tasks = aio.TaskQueue.of(queue)
        stop = asyncio.Event()
        run = asyncio.ensure_future(tasks.run(print, concurrency=2, stop=stop))
        while not (found := await tasks.workers()):
            await asyncio.sleep(0.01)
        stop.set()
        await run
        return found

    (worker,) = asyncio.run(main())
    assert (worker.concurrency, worker.tubes, worker.tasks) == (2, (None,), ())
    there(queue, 0)


def test_a_task_whose_ttr_is_over_is_told_while_its_handler_goes_on_and_until_it_is_done(queue):
    started, over = threading.Event(), threading.Event()
    queue.put("data", id="one")
    assert not queue.why_blocked().late
    with running(queue, hold(started, over), ttr=0.3):
        until(lambda: any(task.process for task in queue.why_blocked().late))
        found = queue.why_blocked()
        assert [(one.id, one.process.pid) for one in found.late] == [("one", os.getpid())]
        assert queue.workers()[0].late == ("one",)
        goes_on = f"whose handler goes on in pid {os.getpid()} on host {os.uname().nodename}"
        assert str(found).splitlines()[-1] == found.too_slow
        assert found.too_slow.startswith(f"The ttr of task 'one', {goes_on}, was over")
        over.set()
        until(lambda: not queue.qsize() and not queue.workers()[0].tasks)
        until(lambda: not queue.workers()[0].late)
    assert not queue.why_blocked().too_slow


def test_a_task_of_asyncio_whose_ttr_is_over_is_told_while_its_handler_goes_on(queue):
    async def main():
        tasks, stop, over = aio.TaskQueue.of(queue), asyncio.Event(), asyncio.Event()

        async def handle(task):
            await over.wait()

        run = asyncio.ensure_future(tasks.run(handle, ttr=0.3, stop=stop))
        while not any(worker.late for worker in await tasks.workers()):
            await asyncio.sleep(0.01)
        over.set()
        while any(worker.late for worker in await tasks.workers()):
            await asyncio.sleep(0.01)
        stop.set()
        await run

    queue.put("data", id="one")
    asyncio.run(main())


def test_a_task_whose_ttr_was_over_is_told_when_no_worker_has_it(queue):
    queue.put_many(["a", "b"], ids=["one", "two"])
    queue.take(0, ttr=0.001)
    until(lambda: queue.peek("one").error)
    queue.take(0, ttr=0.001)
    until(lambda: queue.why_blocked().late)
    found = queue.why_blocked()
    assert [(one.id, one.process) for one in found.late] == [("one", None)]
    assert found.too_slow.startswith("The ttr of task 'one' was over before the worker was done")
    for task in queue.take_many(2, 0):
        task.progress(0.5)
    assert queue.why_blocked().late == found.late  # it is another delivery of that task


@pytest.mark.needs(Can.PROCESSES)
def test_a_killed_worker_is_gone_and_its_task_is_ready(queue):
    process = multiprocessing.get_context("spawn").Process(target=print_all, args=(queue,))
    process.start()
    (worker,) = there(queue, 1)
    assert worker.process.pid == process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert queue.workers() == []


def test_a_worker_of_another_host_is_gone_with_its_lease(queue):
    queue.open()
    text = WorkerText(1, 4, ("",), 1000, "9.9").write()
    binding = inside.engine(queue).bind(queue.name, "tasks", Options(lease=500))
    leases = TaskLeaseOperations(queue.name)
    owner = "elsewhere-0123456789ab/1/1/aaaaaaaa"
    drive(leases.renew(owner, False, [text, "of another version"]), binding.session())
    (worker,) = queue.workers()
    assert worker.process[:5] == (owner, "elsewhere", 1, None, None)
    assert (worker.concurrency, worker.tubes, worker.since) == (4, (None,), 1.0)
    assert worker.version == "9.9"
    until(lambda: not queue.workers())


@pytest.mark.needs(Can.PROCESSES)
def test_a_worker_process_of_an_executor_is_seen(any_server):
    with Executor(2, url=any_server.url, name="calls") as executor:
        executor.submit(time.sleep, 1.5)
        queue = TaskQueue.attach("calls", url=any_server.url)
        until(lambda: any(one.tasks and one.concurrency == 1 for one in queue.workers()))
    TaskQueue.attach("calls", url=any_server.url).delete()
