"""A task that is cancelled ends at once, and the handler that works on it is told."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from contextlib import suppress

import engines
import inside
import pytest
from engines import Can
from programs.tasks import cancel, delete
from sessions import ask
from waiting import LIMIT, Background, until

from pressure_mp import QueueDoesNotExistError, TaskFailed, TaskNotFound, aio
from pressure_mp.engines import registry
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.engines.contract.tasks import OtherOwner, OtherState, RenewTaker
from pressure_mp.sync.tasks import overdue

SERVERS = pytest.mark.parametrize("url", engines.able(Can.SERVER), indirect=True, ids=str)


def in_another_process(act, *args):
    """Act in a process that has nothing of this one."""
    process = multiprocessing.get_context("spawn").Process(target=act, args=args)
    process.start()
    process.join(LIMIT)
    assert process.exitcode == 0


def test_a_task_that_has_not_ended_is_removed(queue):
    ready, waiting = queue.put(1), queue.put(2, delay=60)
    queue.put(3, id="taken", priority=-1, result_ttl=60)
    taken = queue.take()
    for id in (ready, waiting, taken.id):
        assert queue.cancel(id)
        assert not queue.cancel(id)
    assert queue.list() == []
    with pytest.raises(TaskFailed, match="it was killed"):
        queue.result("taken", timeout=0)
    with pytest.raises(TaskNotFound):
        taken.ack()


def test_a_task_that_has_ended_stays_as_it_is(queue):
    queue.configure(keep=True)
    done, buried = queue.put(1), queue.put(2)
    queue.take().ack()
    queue.take().bury()
    assert not queue.cancel(done)
    assert not queue.cancel(buried)
    assert not queue.cancel("nowhere")
    assert [queue.peek(id).state for id in (done, buried)] == ["D", "B"]


@pytest.mark.parametrize("end", ["cancel", "kill"])
def test_the_taker_of_a_task_sees_that_it_is_cancelled(queue, end):
    queue.put_many([1, 2])
    task, other = queue.take_many(2)
    assert not task.cancelled
    assert not other.cancelled
    getattr(queue, end)(task.id)
    until(lambda: task.cancelled)
    assert queue._at.here.has_deliveries
    other.ack()
    assert not other.cancelled
    assert not queue._at.here.has_deliveries


@SERVERS
@pytest.mark.parametrize("act", [cancel, delete])
def test_the_taker_of_a_task_sees_that_another_process_cancels_it(queue, url, name, act):
    queue.put(1)
    task = queue.take()
    assert not task.cancelled
    in_another_process(act, url, name, *([task.id] if act is cancel else []))
    until(lambda: task.cancelled)


@SERVERS
def test_a_task_that_another_taker_has_is_not_cancelled(queue, url, name):
    queue.put(1)
    task = queue.take()
    assert not task.cancelled
    queue.snatch(task.id)
    again = queue.take()
    looks = queue._at.here.lease
    before = looks.looked
    until(lambda: looks.looked > before + 2 * looks.interval)
    assert not task.cancelled
    assert not again.cancelled
    again.ack()


def test_a_handler_whose_task_is_cancelled_can_end_the_run(queue):
    def leave(task):
        queue.cancel(task.id)
        raise SystemExit(3)

    queue.put("data")
    with pytest.raises(SystemExit):
        queue.run(leave, max_tasks=1)


def test_a_worker_process_goes_on_when_it_finds_that_an_acknowledged_task_is_gone(
    queue, monkeypatch
):
    """A look at the lease may have that reply while the acknowledgement is on its way."""
    ends, plain = [], overdue.Work.end

    class End:
        def cancel(self, task):
            ends.append(task)

    def end(work):
        plain(work)
        inside.presence(queue).note_removed(work.task.id_bytes)

    monkeypatch.setattr(overdue, "end_of_process", End())
    monkeypatch.setattr(overdue.Work, "end", end)
    queue.put("data")
    Background(queue.run, print, max_tasks=1).result()
    assert not ends


def test_a_handler_in_a_thread_sees_that_its_task_is_cancelled(queue, caplog):
    begun, seen, stop = threading.Event(), threading.Event(), threading.Event()

    def handler(task):
        begun.set()
        until(lambda: task.cancelled)
        seen.set()

    id = queue.put(1)
    running = Background(queue.run, handler, stop=stop)
    assert begun.wait(LIMIT)
    assert queue.cancel(id)
    assert seen.wait(LIMIT)
    until(lambda: "worked on a task that was removed" in caplog.text)
    queue.put(2)
    stop.set()
    running.result()


async def _run_until_cancelled(queue, cancel):
    """Run a handler that never ends; returns what it was told when its task is cancelled."""
    begun, told = asyncio.Event(), asyncio.Event()
    handled = []

    async def handler(task):
        handled.append(task.data)
        if task.data == "short":
            return
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            told.set()

    stop = asyncio.Event()
    running = asyncio.ensure_future(queue.run(handler, stop=stop))
    id = await queue.put("long")
    await asyncio.wait_for(begun.wait(), LIMIT)
    await cancel(id)
    await asyncio.wait_for(told.wait(), LIMIT)
    await queue.put("short")
    while len(handled) < 2 or await queue.qsize():
        await asyncio.sleep(0.002)
    stop.set()
    await running
    return handled


def test_a_coroutine_is_cancelled_with_its_task_and_the_run_goes_on(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            assert await _run_until_cancelled(queue, queue.cancel) == ["long", "short"]
            assert await queue.list() == []
            await queue.delete()

    asyncio.run(main())


@SERVERS
def test_a_coroutine_is_cancelled_when_another_process_cancels_its_task(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:

            async def cancel_there(id):
                await asyncio.to_thread(in_another_process, cancel, url, name, id)

            assert await _run_until_cancelled(queue, cancel_there) == ["long", "short"]
            await queue.delete()

    asyncio.run(main())


def test_one_task_of_a_batch_is_cancelled_and_the_others_are_processed(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            begun, go_on, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

            @queue.batch(size=2, wait=60)
            async def handler(tasks):
                begun.set()
                await go_on.wait()
                return [task.data for task in tasks]

            cancelled, other = await queue.put_many([1, 2], result_ttl=60)
            running = asyncio.ensure_future(queue.run(stop=stop))
            await asyncio.wait_for(begun.wait(), LIMIT)
            assert await queue.cancel(cancelled)
            go_on.set()
            assert await queue.result(other, timeout=LIMIT) == 2
            with pytest.raises(TaskFailed):
                await queue.result(cancelled)
            stop.set()
            await running
            await queue.delete()

    asyncio.run(main())


def test_a_renewal_tells_which_watched_tasks_are_lost(queue, url, name):
    queue.put_many([1, 2, 3, 4])
    *tasks, given_back, gone = queue.take_many(4)
    kept, elsewhere = tasks
    queue.release(given_back)
    queue.kill(gone.id)
    queue.snatch(elsewhere.id)
    engine = registry.engine(registry.parse(url).started())
    binding = engine.bind(name, "tasks")

    def lost():
        watched = [(task.id_bytes, task.record.call) for task in (kept, elsewhere)]
        watched += [(given_back.id_bytes, 1), (gone.id_bytes, 1)]
        return ask(binding, RenewTaker(owner, True, None, watched)).lost

    owner = kept.owner
    assert lost() == {1: OtherState("R"), 2: OtherState("R"), 3: Outcome.ABSENT}
    again = queue.take()
    assert again.id == elsewhere.id
    assert lost() == {1: OtherOwner(""), 2: OtherState("R"), 3: Outcome.ABSENT}
    with suppress(QueueDoesNotExistError):
        queue.delete()
