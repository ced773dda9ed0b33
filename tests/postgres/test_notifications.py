"""A change is told by NOTIFY only to the process of a call that can go on by it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import psycopg
import pytest
from brokers import postgres as servers
from tasks.takers import parked
from waiting import LIMIT, Background, until

from pressure_mp import Queue, QueueDoesNotExistError, TaskQueue, aio
from pressure_mp.engines import registry

WAITING = """
import sys
from pressure_mp import Queue
print(Queue(name=sys.argv[2], url=sys.argv[1], lease=3600.0).get(), flush=True)
"""


@pytest.fixture
def others(postgres, name):
    """Two other processes that wait for an item, the first one first."""
    engine = registry.engine(registry.parse(postgres.limited_url))
    Queue(name=name, url=postgres.limited_url)
    command = [sys.executable, "-c", WAITING, postgres.limited_url, name]
    found = []
    try:
        for number in (1, 2):
            found.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            until(lambda number=number: servers.waiters(engine, name) == number)
        yield found
    finally:
        for one in found:
            one.kill()
            one.communicate()


def test_only_the_process_of_the_first_waiting_get_is_notified(postgres, name, others):
    q, idle = (
        Queue(name=name, url=postgres.limited_url),
        Queue(name=f"{name}-idle", url=postgres.url),
    )
    slot = f"pressure_mp.slot('__pressure__', 'items', '{name}')"
    waiting = f"SELECT listener FROM pressure_mp.waiting WHERE slot = {slot} ORDER BY place"
    channels = [f"pressure_mp_{number}" for (number,) in postgres.execute(waiting)]
    with psycopg.connect(postgres.url, autocommit=True) as hearing:
        for channel in channels:
            hearing.execute(f"LISTEN {channel}")
        for item in range(5):  # no call waits for these
            idle.put(item)
            idle.get()
        q.put("first")
        assert others[0].stdout.readline() == "first\n"
        assert heard(hearing, LIMIT) == channels[:1]
        q.put("second")
        assert others[1].stdout.readline() == "second\n"
        assert heard(hearing, LIMIT) == channels[1:]
        assert heard(hearing) == []


def test_a_get_that_waits_in_the_same_process_needs_no_notification(postgres, name, no_ticks):
    q = Queue(name=name, url=postgres.limited_url)
    engine = registry.engine(registry.parse(postgres.limited_url))
    getting = Background(q.get)
    until(lambda: servers.waiters(engine, name) == 1)
    with psycopg.connect(postgres.url, autocommit=True) as hearing:
        hearing.execute(f"LISTEN pressure_mp_{engine.listener.number}")
        q.put("item")
        assert getting.result() == "item"
        assert heard(hearing) == []


def heard(connection, patience=0):
    """The channels of what was notified until now; the first is waited for."""
    connection.execute("SELECT 1")
    return [notice.channel for notice in connection.notifies(timeout=patience, stop_after=1)]


def test_takes_that_waited_at_a_deleted_queue_leave_no_places_at_its_name(postgres, name):
    """A place there would be the first in line of the next queue of that name."""
    queue = TaskQueue(name, url=postgres.limited_url)
    takers = [parked(queue) for _ in range(2)]
    slot = f"pressure_mp.slot('__pressure__', 'tasks', '{name}')"
    places = f"SELECT line FROM pressure_mp.waiting WHERE slot = {slot}"
    until(lambda: postgres.execute(places) == [("t",)] * 2)
    queue.delete()
    for taker in takers:
        with pytest.raises(QueueDoesNotExistError):
            taker.result()
    assert postgres.execute(places) == []


@pytest.mark.parametrize("verb", ["get", "put", "take"])
def test_after_tasks_of_a_loop_called_together_in_vain_the_first_one_waits_at_the_server(
    postgres, name, verb
):
    url, kind = postgres.limited_url, "tasks" if verb == "take" else "items"
    slot = f"pressure_mp.slot('__pressure__', '{kind}', '{name}')"
    waiting = f"SELECT count(*) FROM pressure_mp.waiting WHERE slot = {slot}"

    async def call():
        q = aio.TaskQueue(name, url=url) if verb == "take" else aio.Queue(1, name=name, url=url)
        await q.open()
        if verb != "put":
            await q.put("item")
        what = (lambda: q.put("item")) if verb == "put" else getattr(q, verb)
        calls = {asyncio.ensure_future(what()) for _ in range(4)}
        done, calls = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(until, lambda: postgres.execute(waiting) == [(1,)])
        assert len(done) == 1
        for one in calls:
            one.cancel()
        await asyncio.wait(calls)

    asyncio.run(call())
