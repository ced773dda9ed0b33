"""A server without memory refuses what needs more of it, and does what makes space."""

from __future__ import annotations

import asyncio
import threading
import time

import engines
import pytest
from brokers.servers import Server
from engines import Can
from waiting import LIMIT, Background, parks, until

from pressure_mp import (
    BrokerFull,
    Empty,
    Executor,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    ShutDown,
    TaskQueue,
    aio,
)
from pressure_mp.engines.redis import session
from pressure_mp.engines.redis.refusals import refuse_wait


@pytest.fixture(params=engines.kinds(Can.PROTOCOL))
def server(request):
    server = Server(request.param, ("--maxmemory-policy", "noeviction")).start()
    yield server
    server.stop()


@pytest.fixture
def fill(server):
    """From now on the server has no memory left, whatever is removed."""

    def fill():
        with server.client() as client:
            client.config_set("maxmemory", 1)

    return fill


@pytest.mark.parametrize("reconnect", [10, 0])
def test_tasks_are_taken_and_ended_when_the_server_is_full(server, fill, reconnect):
    tasks = TaskQueue("jobs", url=server.url, reconnect=reconnect)
    for number in range(9):
        tasks.put(number)
    first, second, third, fourth = [tasks.take() for _ in range(4)]
    fill()
    with pytest.raises(BrokerFull):
        tasks.put("more")
    first.ack()
    second.bury()
    third.release()
    fourth.touch()
    again = TaskQueue.attach("jobs", url=server.url, reconnect=reconnect)
    taken = again.take_many(9)
    assert {task.data for task in taken} == {4, 5, 6, 7, 8, 2}
    tasks.ack_many(taken)
    assert sum(tasks.stats().counts.values()) == 2  # one is buried, and one still taken
    tasks.truncate()
    assert sum(tasks.stats().counts.values()) == 0
    tasks.shutdown()


def test_a_schedule_outlives_a_full_server(server, fill, caplog):
    tasks = TaskQueue("jobs", url=server.url)
    tasks.every(0.01, "data", name="often")

    def number_put():
        return tasks.stats().transitions.get("X-R", 0)

    stop = threading.Event()
    running = Background(tasks.run, lambda task: None, stop=stop)
    until(number_put)
    fill()
    until(lambda: "periodic tasks of 'jobs' are tried again" in caplog.text)
    before = number_put()
    with server.client() as client:
        client.config_set("maxmemory", 0)
    until(lambda: number_put() > before + 2)
    stop.set()
    running.result()
    assert [one.is_buried for one in tasks.schedules()] == [False]


@pytest.mark.parametrize("kind", [Queue, LifoQueue, PriorityQueue])
def test_items_are_got_and_purged_and_a_queue_is_shut_down_when_the_server_is_full(
    server, fill, kind
):
    queue = kind(name="jobs", url=server.url)
    for number in range(3):
        queue.put(number)
    fill()
    with pytest.raises(BrokerFull):
        queue.put(3)
    assert queue.get() in (0, 2)
    assert queue.purge() == 2
    with pytest.raises(Empty):
        queue.get_nowait()
    queue.shutdown()
    with pytest.raises(ShutDown):
        queue.get()
    queue.delete()


def test_items_are_acknowledged_when_the_server_is_full(server, fill):
    queue = JoinableQueue(name="jobs", url=server.url)
    queue.put_many([1, 2])
    fill()
    for _ in range(2):
        queue.get()
        queue.task_done()
    queue.join()


def get(queue, **options):
    return queue.get(**options)


def get_many(queue, **options):
    (item,) = queue.get_many(1, **options)
    return item


@pytest.mark.parametrize("way", [get, get_many])
@pytest.mark.parametrize("kind", [Queue, JoinableQueue, LifoQueue, PriorityQueue])
def test_gets_wait_for_their_items_while_the_server_is_full(server, fill, kind, way):
    queue = kind(name="jobs", url=server.url)
    queue.open()
    before = [Background(way, queue) for _ in range(2)]
    until(lambda: all(map(parks, before)))
    fill()
    with pytest.raises(Empty):
        way(kind(name="jobs", url=server.url), timeout=0.3)
    later = [Background(way, queue) for _ in range(2)]
    until(lambda: all(map(parks, later)))
    with server.client() as client:
        client.config_set("maxmemory", 0)
    for number in range(4):
        queue.put(number)
    assert sorted(getting.result() for getting in before + later) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_run_goes_on_while_the_server_is_full(server, fill, kind, caplog, monkeypatch):
    """It waits for tasks, and stores a large result when there is memory again."""
    stop, seen, refused = threading.Event(), [], threading.Semaphore(0)

    def refuse_and_say_so(*args):
        refused.release()
        return refuse_wait(*args)

    monkeypatch.setattr(session, "refuse_wait", refuse_and_say_so)

    def handler(task):
        seen.append(task.data)
        fill()
        return b"x" * 3_000_000

    async def run_on_loop():
        told = asyncio.Event()
        there = aio.TaskQueue("jobs", url=server.url)
        running = asyncio.ensure_future(there.run(handler, stop=told))
        await asyncio.get_running_loop().run_in_executor(None, stop.wait, LIMIT)
        told.set()
        await running

    def has_memory():
        with server.client() as client:
            client.config_set("maxmemory", 0)

    tasks = TaskQueue("jobs", url=server.url)
    tasks.open()
    fill()
    if kind == "threads":
        running = Background(tasks.run, handler, stop=stop)
    else:
        running = Background(asyncio.run, run_on_loop())
    for _ in range(3):
        assert refused.acquire(timeout=LIMIT)
    has_memory()
    id = tasks.put("task", result_ttl=60)
    until(lambda: "waits for the broker" in caplog.text)
    assert tasks.stats().counts["T"] == 1
    has_memory()
    assert len(tasks.result(id, timeout=LIMIT)) == 3_000_000
    stop.set()
    running.result()
    assert seen == ["task"]


def test_an_executor_goes_on_when_the_server_was_full_for_a_while(server, fill, caplog):
    with Executor(max_workers=1, url=server.url) as executor:
        assert executor.submit(pow, 2, 2).result(LIMIT) == 4
        future = executor.submit(time.sleep, 0.5)
        until(future.running)
        fill()
        until(lambda: "waits for the broker" in caplog.text)
        with server.client() as client:
            client.config_set("maxmemory", 0)
        assert future.result(LIMIT) is None
        assert executor.submit(pow, 2, 3).result(LIMIT) == 8


def test_leases_are_renewed_while_the_server_is_full(server, fill):
    held, other = [JoinableQueue(name=name, url=server.url, lease=1) for name in ("held", "other")]
    tasks = TaskQueue("tasks", url=server.url, lease=1)
    for queue in (held, other):
        queue.put("item")
        queue.get()
    tasks.put("task")
    task = tasks.take()

    def ends():
        seen = server.leases("held", "fifo"), server.leases("other", "fifo")
        return [end for leases in (*seen, server.leases("tasks", "tasks")) for _, end in leases]

    until(lambda: len(ends()) == 3)
    fill()
    before = max(ends())
    until(lambda: min(ends()) > before)
    task.ack()
    for queue in (held, other):
        queue.task_done()
