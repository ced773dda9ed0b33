"""A run outlives an outage of its broker that is longer than ``reconnect``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time

import engines
import pytest
from engines import Can
from waiting import LIMIT, Background, until

from pressure_mp import ArgumentError, ArgumentTypeError, BrokerUnavailable, TaskQueue, aio
from pressure_mp.sync.tasks import outages
from pressure_mp.sync.tasks.dispatch import Dispatch

pytestmark = pytest.mark.parametrize("run_in", ["threads", "asyncio"])

#: Seconds for which one call tries to reach the broker.
OPTIONS = {"reconnect": 0.2}


@pytest.fixture(params=engines.one_of_each(Can.SERVER), ids=str)
def server(request):
    """A server of its own that may be killed."""
    with request.param.make(durable=True).serving() as made:
        yield made


@pytest.fixture
def queue(server, name):
    return TaskQueue(name, url=server.url, **OPTIONS)


@pytest.fixture
def begin(server, name, run_in):
    """Begins a run of a handler. It ends when the queue is shut down, or by an event."""

    def begin(handler, stop=None, **options):
        if run_in == "threads":
            there = TaskQueue(name, url=server.url, **OPTIONS)
            return Background(there.run, handler, stop=stop, **options)
        return Background(asyncio.run, on_loop(handler, stop, options))

    async def on_loop(handler, stop, options):
        told, loop = asyncio.Event(), asyncio.get_running_loop()
        there = aio.TaskQueue(name, url=server.url, **OPTIONS)
        running = asyncio.ensure_future(there.run(handler, stop=told, **options))
        if stop is not None:
            await loop.run_in_executor(None, stop.wait, LIMIT)
            told.set()
        await running

    return begin


def lines(caplog, text):
    return [record for record in caplog.records if text in record.getMessage()]


def waits(caplog):
    """Wait until a run has found that the broker does not answer."""
    until(lambda: lines(caplog, "waits for the broker"))


def put(queue, data):
    """Put a task, however long the broker needs to begin."""
    while True:
        try:
            return queue.put(data)
        except BrokerUnavailable:
            time.sleep(0.05)


def test_idle_workers_handle_the_next_task_when_the_broker_is_back(
    server, queue, begin, caplog, run_in
):
    seen = []
    running = begin(lambda task: seen.append(task.data), concurrency=3)
    queue.put("before")
    until(lambda: seen == ["before"])
    for outage in (1, 2):
        caplog.clear()
        server.kill()
        waits(caplog)
        server.start()
        began = time.monotonic()
        until(lambda: lines(caplog, "goes on: the broker answers"))
        assert time.monotonic() - began < 2
        put(queue, outage)
        until(lambda outage=outage: seen[-1] == outage)
        assert len(lines(caplog, f"a run of {queue.name!r}")) == 2
    queue.shutdown()
    running.result()


def test_a_run_that_begins_during_the_outage_handles_the_next_task_after_it(
    server, queue, begin, caplog
):
    seen = []
    server.kill()
    running = begin(lambda task: seen.append(task.data), concurrency=3)
    waits(caplog)
    server.start()
    put(queue, "after")
    until(lambda: seen == ["after"])
    queue.shutdown()
    running.result()


@pytest.mark.parametrize("fails", [False, True])
def test_a_handler_that_ends_during_the_outage_settles_its_task_after_it(
    server, queue, begin, caplog, run_in, fails
):
    begun, go_on, runs = threading.Event(), threading.Event(), []

    def handler(task):
        runs.append(task.data)
        begun.set()
        assert go_on.wait(LIMIT)
        if fails:
            raise ValueError("it cannot be done")

    running = begin(handler, concurrency=2, on_error="bury")
    queue.put("slow")
    assert begun.wait(LIMIT)
    server.kill()
    waits(caplog)  # the other worker
    go_on.set()
    time.sleep(1)  # the handler ends, and a call or two fail
    server.start()
    ended = "T-B" if fails else "T-X"
    until(lambda: queue.stats().transitions.get(ended) == 1)
    assert runs == ["slow"]
    if fails:
        assert queue.list("B")[0].error == "ValueError: it cannot be done"
    queue.shutdown()
    running.result()


class Holding:
    """A handler that goes on when it is told to, and then fails for the task ``fails``."""

    def __init__(self):
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()

    def __call__(self, task):
        self.begun.release()
        assert self.go_on.wait(LIMIT)
        if task.data == "fails":
            raise ValueError("it cannot be done")


def test_tasks_that_a_run_has_when_it_ends_in_an_outage_are_ready_after_it(
    server, queue, begin, caplog, run_in
):
    stop, handler = threading.Event(), Holding()
    queue.put_many(["ends", "ends too", "fails", "is not begun"])
    running = begin(handler, stop, concurrency=3, prefetch=3, grace=LIMIT)
    for _ in range(3):
        assert handler.begun.acquire(timeout=LIMIT)
    until(lambda: queue.stats().counts["T"] == 4)
    server.kill()
    stop.set()
    until(lambda: lines(caplog, "1 tasks of"))
    handler.go_on.set()
    with pytest.raises(BrokerUnavailable):
        running.result()
    server.start()
    until(lambda: queue.stats().counts["R"] == 4)
    deliveries = {task.data: task.deliveries for task in queue.list("ready")}
    assert deliveries == {"ends": 1, "ends too": 1, "fails": 1, "is not begun": 0}


def test_no_task_that_a_worker_settles_in_an_outage_when_the_grace_is_over_stays_taken(
    server, queue, begin, caplog, run_in
):
    stop, handler = threading.Event(), Holding()
    queue.put_many(["ends", "ends too", "fails"])
    running = begin(handler, stop, concurrency=3, grace=0)
    for _ in range(3):
        assert handler.begun.acquire(timeout=LIMIT)
    server.kill()
    handler.go_on.set()
    waits(caplog)
    stop.set()
    with contextlib.suppress(BrokerUnavailable):  # or the run has ended before its worker
        running.result()
    server.start()
    until(lambda: queue.stats().counts["T"] == 0)


def test_a_run_ends_when_the_outage_is_longer_than_it_may_be(server, queue, begin, run_in):
    running = begin(lambda task: None, concurrency=2, max_outage=1)
    queue.put("a task")
    until(lambda: queue.stats().transitions.get("T-X") == 1)
    killed = time.monotonic()
    server.kill()
    with pytest.raises(BrokerUnavailable):
        running.result()
    assert time.monotonic() - killed >= 1


def test_the_time_in_which_a_call_waited_for_a_task_is_no_outage(run_in):
    error, now = BrokerUnavailable("it is away"), time.monotonic()
    # Each waited, and then tried for 10 seconds.
    outages.Outages("a run", longest=60, reconnect=10).failed(error, now - 3600)
    with pytest.raises(BrokerUnavailable):
        outages.Outages("a run", longest=10, reconnect=10).failed(error, now - 3600)
    # Other calls were answered meanwhile.
    heard = outages.Outages("a run", longest=10, reconnect=60)
    heard.answered()
    heard.failed(error, now - 20)


@pytest.mark.parametrize("has_a_task", [False, True])
def test_a_run_that_is_stopped_during_the_outage_ends_and_raises_if_it_cannot_settle_a_task(
    server, queue, begin, caplog, monkeypatch, run_in, has_a_task
):
    stop, begun, go_on = threading.Event(), threading.Event(), threading.Event()
    waits_for_task, note = threading.Semaphore(0), Dispatch.waits

    def note_and_say_so(book, is_waiting):
        note(book, is_waiting)
        if is_waiting:
            waits_for_task.release()

    monkeypatch.setattr(Dispatch, "waits", note_and_say_so)

    def handler(task):
        begun.set()
        if has_a_task:
            assert go_on.wait(LIMIT)

    running = begin(handler, stop, concurrency=1 + has_a_task)
    assert waits_for_task.acquire(timeout=LIMIT)
    queue.put("a task")
    assert begun.wait(LIMIT)
    assert waits_for_task.acquire(timeout=LIMIT)
    server.kill()
    waits(caplog)
    stop.set()
    go_on.set()
    if not has_a_task:
        running.result()
        return
    with pytest.raises(BrokerUnavailable):
        running.result()


def test_a_run_tells_each_minute_that_it_waits(server, queue, begin, caplog, monkeypatch, run_in):
    monkeypatch.setattr(outages, "_INTERVAL", 0.8)
    seen = []
    running = begin(lambda task: seen.append(task.data), concurrency=2)
    queue.put(1)
    until(lambda: seen)
    server.kill()
    until(lambda: len(lines(caplog, "s for the broker")) == 2)
    server.start()
    put(queue, 2)
    until(lambda: len(seen) == 2)
    first, second, *_ = [line.created for line in lines(caplog, "s for the broker")]
    assert second - first >= 0.7
    assert all(one.levelno == logging.WARNING for one in lines(caplog, "a run of"))
    queue.shutdown()
    running.result()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(-1, ArgumentError), (float("nan"), ArgumentError), ("1", ArgumentTypeError)],
)
def test_a_time_that_an_outage_cannot_last_is_refused(queue, begin, run_in, wrong, error):
    with pytest.raises(error, match="max_outage"):
        begin(lambda task: None, max_outage=wrong).result()
