"""A server that does not do what it is asked: the error says why, nothing is lost, and the same
handles go on when it can."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import secrets
import signal
import threading
import time

import psutil
import psycopg
import pytest
from brokers import postgres as servers
from brokers.postgres import ROLE
from disks import small_disk
from executors import functions
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import Empty, Executor, Queue, TaskQueue, aio
from pressure_mp.engines import registry
from pressure_mp.engines.blocking_coroutines import finish
from pressure_mp.engines.postgres import installing
from pressure_mp.exceptions import BrokerError, BrokerUnavailable, CallCancelledError
from pressure_mp.executor import worker


@pytest.fixture
def for_role(own_postgres):
    """What an administrator sets for the role of the queues; the connections that there are end."""
    url = own_postgres.limited_url

    def execute(text):
        own_postgres.execute(f"ALTER ROLE {ROLE} {text}")
        end_connections(own_postgres)
        # After that: none of them comes back from a call that was under way.
        registry.engine(registry.parse(url)).close()

    yield execute
    own_postgres.execute(f"ALTER ROLE {ROLE} RESET ALL")
    own_postgres.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT -1")


def end_connections(server):
    """Those that were made before."""
    now = server.execute("SELECT now()::text")[0][0]
    chosen = f"FROM pg_stat_activity WHERE usename = '{ROLE}' AND backend_start < '{now}'"
    until(lambda: not server.execute(f"SELECT pg_terminate_backend(pid) {chosen}"))


def lock(server, name, kind="items"):
    """Lock the queue until the connection that this returns is closed."""
    connection = psycopg.connect(server.url)
    slot = f"pressure_mp.slot('__pressure__', '{kind}', '{name}')"
    connection.execute(f"SELECT pg_advisory_xact_lock({slot})")
    return connection


def test_a_statement_timeout_is_an_error_after_which_nothing_was_done(own_postgres, for_role, name):
    q = Queue(name=name, url=own_postgres.limited_url)
    q.put(1)
    for_role("SET statement_timeout = '200ms'")
    with lock(own_postgres, name):
        with pytest.raises(BrokerError, match=r"statement_timeout.*nothing was done"):
            q.put(2)
        with pytest.raises(BrokerError, match="statement_timeout"):
            q.get()
    q.put(3)
    assert [q.get(), q.get()] == [1, 3]


def test_a_run_goes_on_after_calls_that_a_statement_timeout_ended(
    own_postgres, for_role, name, caplog
):
    tasks, stop = TaskQueue(name, url=own_postgres.limited_url), threading.Event()
    id = tasks.put("task", result_ttl=60)
    for_role("SET statement_timeout = '1s'")
    with lock(own_postgres, name, "tasks"):
        with pytest.raises(CallCancelledError, match="nothing was done"):
            tasks.put("more")
        running = Background(tasks.run, lambda task: task.data, stop=stop)
        until(lambda: "waits for the broker" in caplog.text)
    assert tasks.result(id, timeout=LIMIT) == "task"
    stop.set()
    running.result()


@contextlib.contextmanager
def writes_that_fail(server, state):
    """Meanwhile each statement that writes to a table of the schema fails with that SQLSTATE."""
    server.execute(
        "CREATE OR REPLACE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE 'could not write' USING ERRCODE = '{state}'; END $$"
    )
    tables = server.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'pressure_mp' ORDER BY 1"
    )
    for (table,) in tables:
        server.execute(
            f"CREATE TRIGGER fails BEFORE INSERT OR UPDATE OR DELETE ON pressure_mp.{table} "
            "EXECUTE FUNCTION public.fail()"
        )
    try:
        yield
    finally:
        for (table,) in tables:
            server.execute(f"DROP TRIGGER fails ON pressure_mp.{table}")


@pytest.mark.parametrize("state", ["53000", "58030"])
def test_what_waits_goes_on_when_the_server_had_no_file_left_or_could_not_write_one(
    own_postgres, name, state
):
    url = own_postgres.url
    tasks, stop, done = TaskQueue(f"{name}-tasks", url=url), threading.Event(), []
    q = Queue(name=name, url=url)
    tasks.open()
    q.open()
    impatient = Queue.attach(name, url=url, reconnect=0)
    with Executor(1, url=url) as executor:
        assert executor.submit(pow, 2, 2).result(LIMIT) == 4
        running = Background(tasks.run, lambda task: done.append(task.data), stop=stop)
        getting = Background(q.get)
        future = executor.submit(time.sleep, 0.3)
        until(future.running)
        until(lambda: parks(getting))
        with writes_that_fail(own_postgres, state):
            with pytest.raises(BrokerUnavailable, match="could not write"):
                impatient.put("refused")
            time.sleep(1.5)
        assert future.result(LIMIT) is None
        assert executor.submit(pow, 2, 3).result(LIMIT) == 8
    q.put("item")
    assert getting.result() == "item"
    tasks.put("task")
    until(lambda: done == ["task"])
    stop.set()
    running.result()


def test_a_get_that_waits_is_no_statement_that_a_timeout_could_end(own_postgres, for_role, name):
    for_role("SET statement_timeout = '200ms'")
    q = Queue(name=name, url=own_postgres.limited_url, lease=HOURS)
    getting = Background(q.get)
    until(lambda: parks(getting))
    time.sleep(0.4)
    assert getting.is_alive()
    q.put(1)
    assert getting.result() == 1


def test_a_statement_timeout_of_an_event_loop_is_an_error_after_which_nothing_was_done(
    own_postgres, for_role, name
):
    async def put_and_get():
        q = aio.Queue(name=name, url=own_postgres.limited_url)
        await q.put(1)
        with lock(own_postgres, name):
            with pytest.raises(BrokerError, match=r"statement_timeout.*nothing was done"):
                await q.put(2)
            with pytest.raises(BrokerError, match="statement_timeout"):
                await q.get()
        await q.put(3)
        return [await q.get(), await q.get()]

    for_role("SET statement_timeout = '200ms'")
    assert asyncio.run(put_and_get()) == [1, 3]


def test_a_transaction_timeout_is_told_when_it_was_tried_long_enough(own_postgres, for_role, name):
    if not own_postgres.execute("SELECT 1 FROM pg_settings WHERE name = 'transaction_timeout'"):
        pytest.skip("PostgreSQL has transaction_timeout since version 17")
    q = Queue(name=name, url=own_postgres.limited_url, reconnect=0.5)
    for_role("SET transaction_timeout = '200ms'")
    with (
        lock(own_postgres, name),
        pytest.raises(BrokerUnavailable, match="transaction timeout"),
    ):
        q.put("lost")
    q.put("item")
    assert q.get() == "item"
    assert q.empty()


def test_no_transaction_is_left_open_between_two_calls(own_postgres, for_role, name):
    for_role("SET idle_in_transaction_session_timeout = '20ms'")
    url = f"{own_postgres.limited_url}?application_name={name}"  # no other test has its connections
    q = Queue(name=name, url=url, lease=HOURS)
    tasks = TaskQueue(f"{name}-tasks", url=url)
    getting = Background(q.get)
    until(lambda: parks(getting))
    tasks.put("task")
    with tasks.take():
        before = pids(own_postgres, name)
        time.sleep(0.1)
        assert pids(own_postgres, name) == before
    q.put(1)
    assert getting.result() == 1


def test_a_transaction_of_a_program_that_stands_idle_too_long_does_nothing(
    own_postgres, for_role, name
):
    q = Queue(name=name, url=own_postgres.limited_url)
    for_role("SET idle_in_transaction_session_timeout = '50ms'")
    with psycopg.connect(own_postgres.limited_url) as connection:
        q.put("lost", connection=connection)
        until(lambda: connection.info.backend_pid not in pids(own_postgres))
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            q.put("lost too", connection=connection)
    q.put(1)
    assert q.get() == 1
    assert q.empty()


def pids(server, application="%"):
    asking = (
        f"SELECT pid FROM pg_stat_activity WHERE usename = '{ROLE}' "
        f"AND application_name LIKE '{application}'"
    )
    return {pid for (pid,) in server.execute(asking)}


def test_connections_that_the_server_ends_since_they_are_idle_are_no_error(
    own_postgres, for_role, name
):
    if not own_postgres.execute("SELECT 1 FROM pg_settings WHERE name = 'idle_session_timeout'"):
        pytest.skip("PostgreSQL has idle_session_timeout since version 14")
    for_role("SET idle_session_timeout = '50ms'")
    q = Queue(name=name, url=own_postgres.limited_url, lease=HOURS)
    getting = Background(lambda: [q.get() for _ in range(5)])
    for number in range(5):
        until(lambda: parks(getting))
        until(lambda: not sessions(own_postgres))  # the listening one as well
        q.put(number)
    assert getting.result() == [0, 1, 2, 3, 4]


def sessions(server):
    return server.execute(f"SELECT 1 FROM pg_stat_activity WHERE usename = '{ROLE}'")


def test_a_server_without_a_free_connection_is_waited_for(own_postgres, for_role, name):
    url = own_postgres.limited_url
    q, hasty = Queue(name=name, url=url), Queue(name=name, url=url, reconnect=0)
    for_role("CONNECTION LIMIT 0")
    with pytest.raises(BrokerUnavailable, match="too many connections"):
        hasty.qsize()
    putting = Background(q.put, 1)
    for_role("CONNECTION LIMIT 1")
    putting.result()
    assert q.get() == 1


def test_a_server_that_others_use_up_is_waited_for(name):
    with servers.Postgres(
        "max_connections=6", "superuser_reserved_connections=2"
    ).serving() as server:
        url = server.limited_url
        q = Queue(name=name, url=url)
        q.put(1)
        registry.engine(registry.parse(url)).close()
        with contextlib.ExitStack() as others:
            until(lambda: servers.is_refused(url, others))
            with pytest.raises(BrokerUnavailable, match=r"reserved|too many clients"):
                Queue(name=name, url=url, reconnect=0).qsize()
            getting = Background(q.get)
            getting.join(0.2)
            assert getting.is_alive()
        assert getting.result() == 1


def test_a_get_without_a_connection_to_listen_waits_all_the_same(own_postgres, for_role, name):
    for_role("CONNECTION LIMIT 1")
    q = Queue(name=name, url=own_postgres.limited_url, lease=HOURS)
    getting = Background(q.get)
    until(lambda: parks(getting))
    q.put(1)
    assert getting.result() == 1


@pytest.fixture
def enlarge(own_postgres):
    """The items are on a disk of a few megabytes, which a call makes larger."""
    place = own_postgres.directory / "small"
    with small_disk(place, 8, "777", own_postgres.owner) as found:
        own_postgres.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
        own_postgres.execute("ALTER TABLE pressure_mp.items SET TABLESPACE small")
        yield lambda: found(64)
        own_postgres.execute("ALTER TABLE pressure_mp.items SET TABLESPACE pg_default")
        own_postgres.execute("DROP TABLESPACE small")


def test_a_pooler_that_takes_prepared_statements_away_is_named(own_postgres, name):
    url = f"{own_postgres.limited_url}?application_name={name}"  # no other test has its connections
    q = Queue(name=name, url=url)
    q.open()
    ((wire, _),) = registry.engine(registry.parse(url)).thread_pool._idle
    finish(wire.execute_text("DEALLOCATE ALL"))
    with pytest.raises(BrokerError, match=r"pooler.*prepare=0"):
        q.qsize()
    assert q.empty()  # over a connection of its own


def fill(q):
    """Put 25 MB."""
    for number in range(100):
        q.put(number.to_bytes(4, "big") * 65536)


def test_a_full_disk_is_an_error_after_which_the_items_there_can_be_got(
    own_postgres, enlarge, name
):
    q = Queue(name=name, url=own_postgres.limited_url, serializer="raw")
    with pytest.raises(BrokerError, match=r"No space left on device.*Nothing was done"):
        fill(q)
    assert q.qsize() > 5
    for number in range(q.qsize()):
        assert q.get()[:4] == number.to_bytes(4, "big")
    enlarge()
    q.put(b"again")
    assert q.get() == b"again"


def test_waiting_calls_are_told_that_the_schema_was_dropped(own_postgres, name):
    url = f"{own_postgres.url}?schema=short"
    installing.install(registry.parse(url))
    q = Queue(name=name, url=url)
    tasks = TaskQueue(f"{name}-tasks", url=url)
    waiting = [Background(q.get), Background(tasks.take)]
    until(lambda: all(map(parks, waiting)))
    own_postgres.execute("DROP SCHEMA short CASCADE")
    for one in waiting:
        with pytest.raises(BrokerError, match="no schema short"):
            one.result()


def test_clients_go_on_when_a_schema_that_was_dropped_is_installed_again(own_postgres, name):
    url = f"{own_postgres.url}?schema=back"
    installing.install(registry.parse(url))
    q, tasks = Queue(name=name, url=url), TaskQueue(f"{name}-tasks", url=url)
    q.put(1)
    own_postgres.execute("DROP SCHEMA back CASCADE")
    with pytest.raises(BrokerError, match="no schema back"):
        q.get()
    installing.install(registry.parse(url))
    Queue(name=name, url=url).put(2)
    TaskQueue(f"{name}-tasks", url=url).put("task")
    assert q.get() == 2
    with tasks.take() as task:
        assert task.data == "task"


def test_clients_install_a_schema_again_that_was_dropped(own_postgres, name):
    q = Queue(name=name, url=f"{own_postgres.url}?schema=again&create=1")
    q.put(1)
    own_postgres.execute("DROP SCHEMA again CASCADE")
    with pytest.raises(BrokerError, match="no schema again"):
        q.put(2)
    with Queue(name=name, url=f"{own_postgres.url}?schema=again&create=1") as other:
        other.put(3)
        assert q.get() == 3
        with pytest.raises(Empty):
            q.get_nowait()


def test_no_worker_process_takes_at_once_the_place_of_one_that_the_server_refused(
    own_postgres, for_role, name, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker, "_PAUSE", HOURS)
    log, role = tmp_path / "log", f"role_{secrets.token_hex(4)}"
    own_postgres.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
    url = f"postgresql://{role}@127.0.0.1:{own_postgres.port}/postgres"
    begin = {"initializer": functions.log_to, "initargs": (str(log),)}
    context = multiprocessing.get_context("fork")
    runs, go_on = tmp_path / "runs", tmp_path / "go on"
    with Executor(1, mp_context=context, url=url, reconnect=0.1, **begin) as executor:
        call = executor.submit(functions.hold, str(runs), str(go_on))
        until(lambda: functions.runs(runs))
        own_postgres.execute(f"ALTER ROLE {role} NOLOGIN")
        try:
            sessions = f"FROM pg_stat_activity WHERE usename = '{role}'"
            own_postgres.execute(f"SELECT pg_terminate_backend(pid) {sessions}")
            os.kill(functions.runs(runs)[0], signal.SIGKILL)
            go_on.touch()
            until(lambda: "a worker process ends" in log.read_text())
        finally:
            own_postgres.execute(f"ALTER ROLE {role} LOGIN")
        (refused,) = executor._processes
        # A process that ends is replaced when its starter has seen that.
        assert psutil.wait_procs([psutil.Process(refused)], timeout=1)[1]
        os.kill(refused, signal.SIGKILL)
        assert call.result(LIMIT) == "held"


def test_an_executor_goes_on_when_its_role_may_connect_again(own_postgres, caplog):
    with Executor(1, url=own_postgres.limited_url, reconnect=0.1) as executor:
        executor.submit(functions.pid).result(LIMIT)
        own_postgres.execute("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
        try:
            end_connections(own_postgres)
            until(lambda: "executor" in caplog.text and "waits for the broker" in caplog.text)
        finally:
            own_postgres.execute("GRANT CONNECT ON DATABASE postgres TO PUBLIC")
        executor.submit(functions.pid).result(LIMIT)
