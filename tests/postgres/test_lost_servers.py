"""Clients and servers end at any moment."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from brokers import postgres as servers
from ports import free_port
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import Empty, Queue, TaskQueue
from pressure_mp.engines import registry
from pressure_mp.engines.contract.session import ONE_TRY
from pressure_mp.engines.postgres import outage, session
from pressure_mp.exceptions import BrokerUnavailable

WAITING = """
import sys
from pressure_mp import Queue
Queue(name=sys.argv[2], url=sys.argv[1], lease=3600.0).get()
"""


@pytest.fixture
def own_postgres():
    """A server that only this test uses."""
    with servers.Postgres().serving() as server:
        yield server


def test_a_process_that_is_killed_while_it_waits_keeps_no_other_waiting(
    own_postgres, name, no_ticks
):
    url = own_postgres.limited_url
    q = Queue(name=name, url=url, lease=HOURS)
    engine = registry.engine(registry.parse(url))
    doomed = subprocess.Popen([sys.executable, "-c", WAITING, url, name])
    until(lambda: servers.waiters(engine) == 1)
    second = Background(q.get)
    until(lambda: servers.waiters(engine) == 2)
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait()
    until(lambda: not listeners(engine, 2))
    q.put("item")
    assert second.result() == "item"


def listeners(engine, number):
    """Whether so many processes listen."""
    found = servers.look(engine, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
    return found[0][0] >= number


def test_a_server_that_crashes_and_comes_back_has_what_was_put(own_postgres, name):
    q = Queue(name=name, url=own_postgres.limited_url)
    q.put("before")
    own_postgres.kill()
    with pytest.raises(BrokerUnavailable):
        Queue(name=name, url=own_postgres.limited_url, reconnect=0).qsize()
    own_postgres.start()
    q.put("after")
    assert [q.get(), q.get()] == ["before", "after"]
    with pytest.raises(Empty):
        q.get_nowait()


@pytest.mark.parametrize("many", [False, True])
def test_a_wait_for_tasks_ends_when_its_time_is_up_although_the_server_was_killed(
    own_postgres, name, many
):
    tasks = TaskQueue(name, url=own_postgres.limited_url, reconnect=HOURS)
    waiting = Background(tasks.take_many, 5, 3.0) if many else Background(tasks.take, 3.0)
    places = "SELECT count(*) FROM pressure_mp.waiting WHERE listener IS NOT NULL"
    until(lambda: own_postgres.execute(places) == [(1,)])
    own_postgres.kill()
    with pytest.raises(BrokerUnavailable):
        waiting.result()
    own_postgres.start()


def test_a_call_waits_for_a_server_that_restarts(own_postgres, name):
    q = Queue(name=name, url=own_postgres.limited_url, reconnect=60)
    own_postgres.kill()
    putting = Background(q.put, "item")
    time.sleep(0.1)
    own_postgres.start()
    putting.result()
    assert q.get() == "item"


def test_a_waiting_get_goes_on_when_the_server_restarts(own_postgres, name):
    url = own_postgres.limited_url
    q = Queue(name=name, url=url, reconnect=60)
    engine = registry.engine(registry.parse(url))
    waiting = Background(q.get)
    until(lambda: servers.waiters(engine) == 1)
    own_postgres.kill()
    own_postgres.start()
    q.put("item")
    assert waiting.result() == "item"


def test_backends_that_are_ended_lose_nothing(own_postgres, name):
    q = Queue(name=name, url=own_postgres.limited_url, maxsize=5)
    got, end = [], time.monotonic() + 2

    def consume():
        while (item := q.get()) is not None:
            got.append(item)

    consuming = Background(consume)

    def disturb():
        while time.monotonic() < end:
            own_postgres.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'worker'"
            )
            time.sleep(0.02)

    disturbing = Background(disturb)
    number = 0
    while time.monotonic() < end or number < 50:
        q.put(number)
        number += 1
    disturbing.result()
    q.put(None)
    consuming.join(LIMIT)
    assert got == list(range(number))


def test_a_put_that_was_told_that_the_server_is_away_waits_for_it_no_longer(
    own_postgres, name, monkeypatch
):
    ends = []

    async def note(pool, options, end, *rest):
        if threading.current_thread() is putting:
            ends.append(end)
        return await outage.persist(pool, options, end, *rest)

    q = Queue(name=name, maxsize=1, url=own_postgres.limited_url, reconnect=0.5)
    q.put(1)
    putting = Background(q.put, 2)
    until(lambda: parks(putting))
    monkeypatch.setattr(session, "persist", note)
    own_postgres.kill()
    with pytest.raises(BrokerUnavailable):
        putting.result()
    assert ends == [None, ONE_TRY]  # the call, and to leave the line


def test_a_server_that_cannot_be_reached_is_an_error_that_names_it(name):
    with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:1/db.*refused"):
        Queue(name=name, url="postgresql://user@127.0.0.1:1/db", reconnect=0).open()


@pytest.mark.parametrize("behind", [False, True])
def test_a_host_that_says_nothing_does_not_keep_a_call_from_the_next_host(
    caller, postgres, name, behind
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ports = [silent.getsockname()[1], postgres.port]
        if behind:
            ports.reverse()
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        url = f"postgresql://{servers.ROLE}@{hosts}/postgres?target_session_attrs=read-write"
        q = caller.queues.Queue(name=name, url=url, reconnect=0)
        caller.do(q.put("item"))
        assert caller.do(q.get()) == "item"


def test_hosts_that_say_nothing_or_refuse_are_named(name):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port, other = silent.getsockname()[1], free_port()
        url = f"postgresql://postgres@127.0.0.1:{port},127.0.0.1:{other}/postgres"
        q = Queue(name=name, url=url, reconnect=0.1)
        with pytest.raises(BrokerUnavailable) as caught:
            q.put("item", timeout=0.1)
    assert f"no answer from 127.0.0.1, port {port} within" in str(caught.value)
    assert f"port {other} failed: Connection refused" in str(caught.value)
