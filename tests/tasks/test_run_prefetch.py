"""A run that prefetches: what it takes ahead, when it acknowledges, and what becomes of tasks that
no worker begins."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from waiting import LIMIT, until

from pressure_mp import TaskQueue, aio
from pressure_mp.handles.task_verbs import TaskVerbs
from pressure_mp.sync.tasks import dispatch
from pressure_mp.sync.tasks.dispatch import MOMENT


@pytest.fixture
def queue(url, name):
    found = TaskQueue(name, url=url)
    yield found
    found.delete()


@pytest.fixture(params=["threads", "asyncio"])
def run(request, queue, url):
    """Runs a handler in threads, by a queue for threads or for asyncio, until the event is set or
    the queue is shut down."""
    if request.param == "threads":
        return lambda handler, stop=None, **options: queue.run(handler, stop=stop, **options)

    async def run_on_loop(handler, stop, options):
        async with aio.TaskQueue(queue.name, url=url) as there:
            told = asyncio.Event()
            running = asyncio.ensure_future(there.run(handler, stop=told, **options))
            if stop is not None:
                await asyncio.get_running_loop().run_in_executor(None, stop.wait, LIMIT)
                told.set()
            await running

    return lambda handler, stop=None, **options: asyncio.run(run_on_loop(handler, stop, options))


def counted(monkeypatch, method):
    calls, made = [], getattr(TaskVerbs, method)

    def note(*args, **options):
        calls.append(args)
        return made(*args, **options)

    monkeypatch.setattr(TaskVerbs, method, note)
    return calls


def test_many_tasks_are_taken_and_acknowledged_in_few_calls(queue, run, monkeypatch):
    takes = counted(monkeypatch, "_take_for_run")
    acknowledgements = counted(monkeypatch, "_acknowledge_for_run")
    monkeypatch.setattr(dispatch, "MOMENT", LIMIT)
    seen, in_hand = [], []

    def handler(task):
        seen.append(task.data)
        if task.data % 10 == 0:
            in_hand.append(queue.stats().counts["T"])

    queue.put_many(range(200))
    queue.shutdown()
    run(handler, prefetch=39)
    assert seen == list(range(200))
    assert 20 < max(in_hand) <= 40
    assert len(takes) < 20
    assert len(acknowledgements) < 40
    assert queue.stats().transitions["T-X"] == 200


def test_a_task_is_acknowledged_before_the_next_begins_if_it_took_long(queue, run):
    seen = []

    def handler(task):
        seen.append(queue.stats().transitions.get("T-X", 0))
        time.sleep(2 * MOMENT)

    queue.put_many("abcd")
    queue.shutdown()
    run(handler, prefetch=8)
    assert seen == [0, 1, 2, 3]


def test_tasks_that_no_worker_began_are_released_when_the_run_ends(queue, run):
    begun, go_on, late = threading.Event(), threading.Event(), threading.Event()

    def handler(task):
        begun.set()
        go_on.wait(LIMIT)
        late.set()

    queue.put_many("abcd")
    run(handler, stop=begun, prefetch=8, grace=0.05)
    assert queue.stats().counts["R"] == 4
    go_on.set()
    assert late.wait(LIMIT)


def test_a_task_whose_ttr_is_over_before_a_worker_has_time_is_left_to_others(queue, run, caplog):
    seen = []

    def handler(task):
        seen.append((task.data, task.deliveries))
        if task.data == "a":
            queue.touch(task.id, 3600)
            until(lambda: queue.stats().counts["R"] == 1)
            time.sleep(0.1)  # the run counts from when the reply came

    queue.put_many("ab")
    queue.shutdown()
    run(handler, prefetch=8, ttr=0.3)
    assert seen == [("a", 1), ("b", 2)]
    assert "before a worker had time" in caplog.text
