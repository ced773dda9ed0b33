"""A handler tells of its progress, and every process can ask for that."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal

import pytest
from engines import Can
from programs import tasks as programs
from waiting import LIMIT, Background, until

from pressure_mp import (
    AuthenticationError,
    DecodingError,
    EncodingError,
    ItemTooLargeError,
    NotOwner,
    NotTaken,
    TaskNotFound,
    TaskQueue,
    aio,
)
from pressure_mp.encoding.reports import LARGEST_PROGRESS


def test_every_call_that_asks_is_told_the_last_progress_of_a_taken_task(queue):
    id = queue.put("data")
    assert queue.progress(id) is None
    task = queue.take(0)
    assert (task.current_progress, queue.progress(id)) == (None, None)
    for value in (0.5, {"rows": [1, (2, b"\0\x1f")]}):
        assert task.progress(value) is None
        assert task.current_progress == queue.progress(id) == value
        assert queue.peek(id).current_progress == value
        assert [one.current_progress for one in queue.list("taken")] == [value]
    task.ack()
    assert task.current_progress is None
    with pytest.raises(TaskNotFound, match="was never put, or it was processed"):
        queue.progress(id)


@pytest.mark.parametrize("how", ["release", "bury", "snatch"])
def test_a_progress_is_gone_when_no_process_has_the_task_and_not_there_at_the_next(queue, how):
    id = queue.put("data")
    queue.take(0).progress("begun")
    getattr(queue, how)(id)
    if how == "bury":
        assert (queue.progress(id), queue.peek(id).current_progress) == (None, None)
        queue.kick(id)
    assert queue.progress(id) is None
    again = queue.take(LIMIT)
    assert (again.id, again.current_progress, queue.progress(id)) == (id, None, None)
    again.progress("begun again")
    assert queue.progress(id) == "begun again"


def test_the_error_of_an_earlier_delivery_stays_beside_the_progress(queue):
    queue.put("data")
    try:
        with queue.take(0, backoff=0) as task:
            raise ValueError("why")
    except ValueError:
        pass
    task = queue.take(0)
    before = task.error, task.traceback
    task.progress("x")
    found = queue.peek(task.id)
    assert (found.error, found.traceback) == before == ("ValueError: why", before[1])
    assert before[1].startswith("Traceback")


def test_the_progress_of_a_task_that_the_caller_has_no_more_is_refused(queue):
    ids = queue.put_many(range(4))
    taken_again, snatched, killed, released = queue.take_many(4)
    for task in (taken_again, snatched):
        queue.snatch(task.id)
    again = queue.take(0)
    assert again.id == taken_again.id
    queue.kill(killed.id)
    released.release()
    waiting = queue.peek(queue.put("never taken", delay=60))
    for task, error in [
        *((snatched, NotTaken), (taken_again, NotOwner), (killed, TaskNotFound)),
        *((released, NotTaken), (waiting, NotTaken), (queue.peek(ids[3]), NotTaken)),
    ]:
        with pytest.raises(error):
            task.progress("late")
    again.progress("in time")
    assert queue.progress(again.id) == "in time"
    assert [queue.progress(task.id) for task in (snatched, released, waiting)] == [None] * 3


def test_a_progress_leaves_the_ttr_the_state_and_the_other_tasks_of_its_take(queue):
    queue.configure(ttr=7200)
    queue.put_many(range(5))
    tasks = queue.take_many(5, ttr=3600)
    before = [(one.id, one.due, one.since) for one in queue.list("taken")]
    tasks[2].progress("x")
    assert sorted((one.id, one.due, one.since) for one in queue.list("taken")) == sorted(before)
    queue.ack_many(tasks)
    assert queue.stats().transitions == {"X-R": 5, "R-T": 5, "T-X": 5}


def test_a_progress_that_cannot_be_stored_leaves_what_was_told_before(queue):
    queue.put("data")
    task = queue.take(0)
    task.progress("begun")
    with pytest.raises(EncodingError):
        task.progress(lambda: None)
    with pytest.raises(ItemTooLargeError, match="8,192"):
        task.progress(bytes(LARGEST_PROGRESS))
    largest = bytes(LARGEST_PROGRESS - 100)
    assert queue.progress(task.id) == "begun"
    task.progress(largest)
    assert queue.progress(task.id) == largest


@pytest.mark.parametrize("serializer", ["json", "raw"])
def test_the_serializer_of_the_queue_makes_the_bytes_of_a_progress(url, name, serializer):
    queue = TaskQueue(name, url=url, serializer=serializer)
    value = b"bytes" if serializer == "raw" else {"a": [1]}
    id = queue.put(value)
    queue.take(0).progress(value)
    assert queue.progress(id) == value
    queue.delete()


def test_a_progress_is_signed_for_its_task(url, name):
    queue = TaskQueue(name, url=url, authkey=b"key")
    foreign = TaskQueue(name, url=url, authkey=b"other")
    id, _ = queue.put_many([1, 2])
    task, neighbour = queue.take_many(2)
    with queue.inbox() as inbox, foreign.inbox() as unable:
        for box in (inbox, unable):
            box.watch([id])
            assert [one.event for one in box.take(LIMIT)] == ["taken"]
        task.progress("secret")
        (event,) = inbox.take(LIMIT)
        assert (event.event, event.progress) == ("progress", "secret")
        (event,) = unable.take(LIMIT)
        assert isinstance(event.progress, AuthenticationError)
    assert queue.progress(id) == "secret"
    with pytest.raises(AuthenticationError):
        foreign.progress(id)
    exchanged = queue._at.operations._results.encode_progress(task.id_bytes, "secret")
    with pytest.raises(DecodingError, match="is not a result of that task"):
        queue._at.operations._results.decode_progress(neighbour.id_bytes, exchanged)
    queue.delete()


@pytest.mark.parametrize("number", [1, 2])
def test_an_inbox_hears_of_each_progress_while_it_waits_and_before_the_end(queue, number):
    with queue.inbox() as inbox, queue.inbox(takes=False) as of_ends:
        boxes = (inbox, of_ends)[:number]
        id = queue.put("data", inbox=boxes[0])
        of_ends.watch([id] if number == 2 else [])
        task = queue.take(0)
        assert [one.event for one in inbox.take(LIMIT)] == ["taken"]
        waiting = Background(inbox.take, LIMIT)
        task.progress(1)
        (event,) = waiting.result()
        assert event == (id, "progress", 1, None, 1)
        task.progress(2)
        task.progress(None)
        task.ack(result="done")
        events = inbox.take(LIMIT)
        assert [(one.event, one.progress) for one in events] == [
            *(("progress", 2), ("progress", None), ("processed", None))
        ]
        assert events[-1].result.get() == "done"
        if number == 2:
            assert [one.event for one in of_ends.take(LIMIT)] == ["processed"]


@pytest.mark.parametrize("how", ["coroutine", "thread"])
def test_a_handler_of_asyncio_tells_of_its_progress(queue, url, name, how):
    async def in_loop(task):
        await task.progress([task.data, 1])
        assert task.current_progress == [task.data, 1]
        assert await there.progress(task.id) == [task.data, 1]

    def in_thread(task):
        task.progress([task.data, 1])
        assert task.current_progress == queue.progress(task.id) == [task.data, 1]

    async def main():
        nonlocal there
        async with aio.TaskQueue(name, url=url) as there:
            await there.run(in_loop if how == "coroutine" else in_thread, on_error="bury")

    there = None
    with queue.inbox() as inbox:
        queue.put("data", inbox=inbox)
        running = Background(asyncio.run, main())
        events = []
        until(lambda: events.extend(inbox.take(0)) or [one for one in events if one.result])
    queue.shutdown()
    running.result()
    events[-1].result.get()
    assert [one.progress for one in events] == [None, ["data", 1], None]


@pytest.mark.needs(Can.PROCESSES)
def test_the_progress_of_a_killed_process_is_not_that_of_the_next_delivery(queue):
    id = queue.put("data")
    process = multiprocessing.get_context("spawn").Process(target=programs.tell, args=(queue,))
    process.start()
    until(lambda: queue.progress(id) == "halfway")
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    task = queue.take(LIMIT)
    assert (task.id, task.deliveries, task.current_progress) == (id, 2, None)
    task.progress("again")
    assert queue.progress(id) == "again"


@pytest.mark.needs(Can.PROCESSES)
def test_a_stopped_process_that_lost_its_lease_cannot_tell_of_its_progress(url, name):
    queue = TaskQueue(name, url=url, lease=0.5)
    id = queue.put("data")
    spawn = multiprocessing.get_context("spawn")
    reader, writer = spawn.Pipe(duplex=False)
    process = spawn.Process(target=programs.tell, args=(queue, writer))
    process.start()
    until(lambda: queue.progress(id) == "halfway")
    os.kill(process.pid, signal.SIGSTOP)
    task = queue.take(LIMIT)
    task.progress("again")
    os.kill(process.pid, signal.SIGCONT)
    assert reader.poll(LIMIT)
    assert reader.recv() == "NotOwner"
    assert queue.progress(id) == "again"
    process.kill()
    process.join()
    queue.delete()


def test_a_progress_outlives_a_restart_of_its_broker(durable, name):
    queue = TaskQueue(name, url=durable.url)
    id = queue.put("data")
    task = queue.take()
    task.progress("before")
    durable.kill()
    durable.start()
    assert queue.progress(id) == "before"
    task.progress("after")
    assert queue.progress(id) == "after"
    queue.delete()
