"""A server that refuses calls for a while is waited for: it runs a long script, or cannot write to
its disk."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager

import engines
import pytest
from brokers import rights
from brokers.servers import Server
from engines import Can
from waiting import LIMIT, Background, until

import pressure_mp
from pressure_mp import (
    BrokerError,
    BrokerUnavailable,
    Executor,
    JoinableQueue,
    Queue,
    TaskQueue,
    aio,
)


@pytest.fixture(params=engines.kinds(Can.PROTOCOL))
def server(request):
    server = Server(request.param).start()
    yield server
    server.stop()


@contextmanager
def a_long_script(server):
    """Meanwhile it runs a script, and replies BUSY to all other calls."""
    with server.client() as client:
        client.config_set("lua-time-limit", 1)
    running = Background(run_for_ever, server)
    with server.client() as client:
        until(lambda: is_busy(client))
        try:
            yield "BUSY"
        finally:
            client.script_kill()
    running.join()


def run_for_ever(server):
    with server.client() as client, pytest.raises(Exception, match="killed"):
        client.eval("while true do end", 0)


def is_busy(client):
    try:
        client.get("key")
    except Exception as error:
        return "BUSY" in str(error) or "busy" in str(error)
    return False


@contextmanager
def a_broken_disk(server):
    """Meanwhile it could not save its data, and replies MISCONF to all calls that write."""
    (server.directory / "dump.rdb" / "in the way").mkdir(parents=True)
    with server.client() as client:
        client.config_set("save", "3600 100000")
        client.execute_command("BGSAVE")
        until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
        try:
            yield "MISCONF"
        finally:
            client.config_set("stop-writes-on-bgsave-error", "no")
            client.config_set("save", "")  # else it refuses to end


refusals = pytest.mark.parametrize("refuses", [a_long_script, a_broken_disk])


@refusals
def test_a_call_to_a_server_that_refuses_for_a_while_is_done_after_it(server, refuses):
    q = Queue(name="jobs", url=server.url)
    q.put("first")
    impatient = Queue.attach("jobs", url=server.url, reconnect=0)
    with refuses(server) as why:
        with pytest.raises(BrokerUnavailable, match=why):
            impatient.put("refused")
        putting = Background(q.put, "second")
        time.sleep(0.3)
        assert putting.is_alive()
    putting.result()
    assert [q.get(), q.get()] == ["first", "second"]
    assert q.empty()


@pytest.mark.parametrize(
    ("refuse", "login", "told"),
    [
        (("CONFIG", "SET", "maxclients", "1"), "", "maxclients"),
        (("CONFIG", "SET", "maxclients", "1"), ":password@", "maxclients"),
        (("REPLICAOF", "127.0.0.1", "1"), "", "its primary"),
    ],
)
def test_the_error_of_a_server_that_refuses_for_a_while_says_why_and_what_to_do(
    server, refuse, login, told
):
    url = f"redis://{login}127.0.0.1:{server.port}"
    shown = f"redis://127.0.0.1:{server.port}/0"
    with server.client() as client:
        client.ping()
        client.execute_command(*refuse)
        with pytest.raises(BrokerUnavailable, match=told) as caught:
            Queue(name="jobs", url=url, reconnect=0).put("refused")
        assert str(caught.value).startswith(f"the broker at {shown} is not ready: ")


def test_the_error_of_a_login_that_needs_a_password_says_that_the_url_has_none(server):
    with server.client() as client:
        client.config_set("requirepass", "secret")
    with pytest.raises(BrokerError, match="login, for which the URL has no password"):
        Queue(name="jobs", url=server.url).put("refused")


@pytest.mark.parametrize("run_in", ["threads", "asyncio"])
def test_calls_that_are_refused_for_a_while_log_it_once(server, run_in, caplog):
    async def put_in_a_loop(item):
        async with aio.Queue(name="jobs", url=server.url) as of_loop:
            await of_loop.put(item)

    q = Queue(name="jobs", url=server.url)
    q.put("before")
    told = "trying for another"
    with a_broken_disk(server):
        if run_in == "threads":
            putting = Background(q.put, "refused")
        else:
            putting = Background(asyncio.run, put_in_a_loop("refused"))
        until(lambda: told in caplog.text)
        with server.client() as client:
            seen = refused(client)
            until(lambda: refused(client) >= seen + 4)
    putting.result()
    assert [q.get(), q.get()] == ["before", "refused"]
    assert caplog.text.count(told) == 1


def refused(client):
    """How many calls the server refused."""
    return client.info("errorstats")["errorstat_MISCONF"]["count"]


@refusals
def test_all_that_waits_goes_on_when_the_server_refused_for_a_while(server, refuses):
    stop, done = threading.Event(), []

    async def get():
        async with aio.Queue(name="of a loop", url=server.url) as q:
            return await q.get()

    tasks = TaskQueue("tasks", url=server.url)
    tasks.open()
    items, of_loop = Queue(name="items", url=server.url), Queue(name="of a loop", url=server.url)
    of_loop.open()
    joined = JoinableQueue(name="joined", url=server.url)
    joined.put("item")
    joined.get()
    with Executor(max_workers=1, url=server.url) as executor:
        assert executor.submit(pow, 2, 2).result(LIMIT) == 4
        future = executor.submit(time.sleep, 0.3)
        until(future.running)
        running = Background(tasks.run, lambda task: done.append(task.data), stop=stop)
        getting = Background(items.get), Background(asyncio.run, get())
        joining = Background(joined.join)
        time.sleep(0.3)
        with refuses(server):
            time.sleep(2)
        assert future.result(LIMIT) is None
        assert executor.submit(pow, 2, 3).result(LIMIT) == 8
    for q in (items, of_loop):
        q.put("item")
    assert [one.result() for one in getting] == ["item", "item"]
    joined.task_done()
    joining.result()
    tasks.put("task")
    until(lambda: done == ["task"])
    stop.set()
    running.result()


@pytest.mark.parametrize("run_in", ["threads", "asyncio"])
def test_tasks_that_a_run_has_when_it_ends_since_its_user_lost_a_right_are_ready_later(
    server, run_in
):
    there = TaskQueue("jobs", url=server.url)
    there.put_many(["ends", "fails"])
    begun, go_on = threading.Semaphore(0), threading.Event()

    def handler(task):
        begun.release()
        assert go_on.wait(LIMIT)
        if task.data == "fails":
            raise ValueError("it cannot be done")

    async def run_on_a_loop():
        async with aio.TaskQueue("jobs", url=rights.url(server)) as q:
            await q.run(handler, concurrency=2)

    with server.client() as client:
        rights.make_user(client)
        q = TaskQueue("jobs", url=rights.url(server))
        if run_in == "threads":
            running = Background(q.run, handler, concurrency=2)
        else:
            running = Background(asyncio.run, run_on_a_loop())
        for _ in range(2):
            assert begun.acquire(timeout=LIMIT)
        client.execute_command("ACL", "SETUSER", "app", "-@all")
        go_on.set()
        with pytest.raises(BrokerError, match="NOPERM"):
            running.result()
        rights.make_user(client)
    until(lambda: there.stats().counts["R"] == 2)


@pytest.mark.parametrize("run_in", ["threads", "asyncio"])
@pytest.mark.parametrize("kind", ["Queue", "PriorityQueue"])
def test_an_item_whose_reply_was_lost_goes_back_when_the_login_is_accepted_again(
    server, proxy_of, kind, run_in
):
    proxy = proxy_of(server)
    url = rights.url(server).replace(str(server.port), str(proxy.port))

    def lose_the_next_reply():
        client.execute_command("ACL", "SETUSER", "app", "off")
        proxy.lose()

    def get():
        assert q.get() == "got"
        lose_the_next_reply()
        q.get()

    async def get_in_a_loop():
        of_loop = getattr(aio, kind)(name="jobs", url=url)
        assert await of_loop.get() == "got"
        lose_the_next_reply()
        await of_loop.get()

    with server.client() as client:
        rights.make_user(client)
        q = getattr(pressure_mp, kind)(name="jobs", url=url)
        for item in ("got", "on its way"):
            q.put(item)
        with pytest.raises(BrokerError, match="refuses the login"):
            get() if run_in == "threads" else asyncio.run(get_in_a_loop())
        rights.make_user(client)
    assert q.get(timeout=LIMIT) == "on its way"
