"""Roles, databases and servers whose transactions are set to be others than queues need."""

from __future__ import annotations

import secrets

import psycopg
import pytest
from waiting import Background, until

from pressure_mp import JoinableQueue, Queue, TaskQueue, list_queues
from pressure_mp.engines import registry
from pressure_mp.engines.postgres import installing
from pressure_mp.engines.postgres.schema import install_sql
from pressure_mp.exceptions import ArgumentError, BrokerError


@pytest.fixture
def role(own_postgres):
    """One that may do everything, for its settings to be changed."""
    found = f"role_{secrets.token_hex(4)}"
    own_postgres.execute(f"CREATE ROLE {found} LOGIN SUPERUSER")
    return found


def url_of(server, role, database="postgres", query=""):
    return f"postgresql://{role}@127.0.0.1:{server.port}/{database}{query}"


# Those that may only read


@pytest.mark.parametrize("query", ["", "?schema=not_there&create=1"])
def test_a_role_that_may_only_read_is_told_so_at_once_and_goes_on_when_it_may_write(
    caller, own_postgres, role, query, name
):
    own_postgres.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    url = url_of(own_postgres, role, query=query)

    def make():
        q = caller.queues.Queue(name=name, url=url, reconnect=3600)
        caller.do(q.put("item"))
        return q

    with pytest.raises(BrokerError, match="default_transaction_read_only is on for the role"):
        make()
    own_postgres.execute(f"ALTER ROLE {role} RESET default_transaction_read_only")
    assert caller.do(make().get()) == "item"


def test_a_role_that_may_only_read_can_list_queues(own_postgres, role, name):
    Queue(name=name, url=own_postgres.url).open()
    own_postgres.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    assert name in [found.name for found in list_queues(url=url_of(own_postgres, role))]


def test_a_role_that_may_no_longer_write_is_told_so_at_once(own_postgres, role, name):
    q = Queue(name=name, url=url_of(own_postgres, role), reconnect=3600)
    q.put("item")
    own_postgres.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    end_sessions(own_postgres, role)
    with pytest.raises(BrokerError, match="lets this session only read"):
        q.get()
    own_postgres.execute(f"ALTER ROLE {role} RESET default_transaction_read_only")
    assert q.get() == "item"


def test_a_role_that_may_write_again_can_put_although_a_connection_from_before_only_reads(
    caller, own_postgres, role, name
):
    q = caller.queues.Queue(name=name, url=url_of(own_postgres, role), reconnect=3600)
    caller.do(q.put("item"))
    own_postgres.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    end_sessions(own_postgres, role)
    with pytest.raises(BrokerError, match="lets this session only read"):
        caller.do(q.put("refused"))
    assert caller.do(q.qsize()) == 1
    own_postgres.execute(f"ALTER ROLE {role} RESET default_transaction_read_only")
    caller.do(q.put("another"))
    assert [caller.do(q.get()), caller.do(q.get())] == ["item", "another"]


def end_sessions(server, role):
    sessions = f"FROM pg_stat_activity WHERE usename = '{role}'"
    until(lambda: not server.execute(f"SELECT pg_terminate_backend(pid) {sessions}"))


def test_a_server_that_may_only_be_read_for_a_while_is_waited_for(own_postgres, role, name):
    q = Queue(name=name, url=url_of(own_postgres, role), reconnect=3600)
    try:
        own_postgres.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        own_postgres.execute("SELECT pg_reload_conf()")
        until(lambda: own_postgres.execute("SHOW default_transaction_read_only") == [("on",)])
        end_sessions(own_postgres, role)
        putting = Background(q.put, "item")
        putting.join(0.3)
        assert putting.is_alive()
    finally:
        with psycopg.connect(own_postgres.url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")
    putting.result()
    assert q.get() == "item"


# Literals


def test_queues_do_not_depend_on_what_a_backslash_in_a_literal_means_to_a_role(
    caller, own_postgres, role, name
):
    own_postgres.execute(f"ALTER ROLE {role} SET standard_conforming_strings = off")
    url = url_of(own_postgres, role, query=f"?schema={role}&create=1")
    do, large = caller.do, b"large" * 100_000
    connection = caller.connect(url_of(own_postgres, role))
    for kind in ("Queue", "PriorityQueue", "FairQueue", "JoinableQueue"):
        own = {"key": len} if kind in ("PriorityQueue", "FairQueue") else {}
        q = getattr(caller.queues, kind)(name=f"{name}-{kind}", url=url, **own)
        do(q.put(large))
        do(q.put(large, connection=connection))
        do(connection.commit())
        assert [do(q.get()), do(q.get())] == [large, large]
        assert do(q.empty())
    tasks = caller.queues.TaskQueue(f"{name}-tasks", url=url)
    do(tasks.put(large, tube="a tube"))
    do(tasks.put(large, tube="a tube", connection=connection))
    do(connection.commit())
    for _ in range(2):
        task = do(tasks.take(tube="a tube"))
        assert task.data == large
        do(task.ack())
    do(connection.close())


def test_no_literal_of_the_schema_has_a_backslash():
    assert "\\" not in install_sql()


# Isolation


@pytest.fixture(params=["repeatable read", "serializable"])
def isolation(request):
    """What a database makes of transactions that do not say what they are."""
    return request.param


@pytest.fixture
def database(own_postgres, isolation):
    found = f"db_{secrets.token_hex(4)}"
    own_postgres.execute(f"CREATE DATABASE {found}")
    own_postgres.execute(
        f"ALTER DATABASE {found} SET default_transaction_isolation = '{isolation}'"
    )
    installing.install(registry.parse(url_of(own_postgres, "postgres", found)))
    return found


def test_queues_do_not_depend_on_the_isolation_that_a_database_is_set_to(
    own_postgres, database, name
):
    url = url_of(own_postgres, "postgres", database)
    q, tasks = Queue(name=name, url=url), TaskQueue(f"{name}-tasks", url=url)

    def put(producer):
        for number in range(50):
            q.put((producer, number))
            tasks.put((producer, number))

    def get():
        found = []
        while (item := q.get()) is not None:
            found.append(item)
            with tasks.take() as task:
                found.append(tuple(task.data))
        return found

    getting = [Background(get) for _ in range(3)]
    for one in [Background(put, producer) for producer in range(3)]:
        one.result()
    q.put_many([None] * 3)
    found = sorted(item for one in getting for item in one.result())
    tasks.delete()
    assert found == sorted(2 * [(producer, at) for producer in range(3) for at in range(50)])


def test_callers_of_another_isolation_are_told_which_one_is_needed(
    caller, own_postgres, database, isolation, name
):
    do, queues, url = caller.do, caller.queues, url_of(own_postgres, "postgres", database)
    q, tasks = JoinableQueue(name=name, url=url), TaskQueue(f"{name}-tasks", url=url)
    theirs = queues.JoinableQueue(name=name, url=url)
    their_tasks = queues.TaskQueue(f"{name}-tasks", url=url)
    connection = caller.connect(url)
    q.put("item")
    tasks.put("task", id="a")

    def calls(task):
        return (
            lambda: theirs.put("refused", connection=connection),
            lambda: theirs.put(b"x" * 3_000_000, connection=connection),
            lambda: their_tasks.put("refused", connection=connection),
            lambda: theirs.task_done(connection=connection),
            lambda: task.ack(connection=connection),
            lambda: their_tasks.ack_many([task], connection=connection),
        )

    async def use_async():
        task = await their_tasks.take()
        await theirs.get()
        for isolated in calls(task):
            with pytest.raises(ArgumentError, match=f"{isolation.upper()}.*Use READ COMMITTED"):
                await isolated()
        await connection.rollback()
        await connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        await theirs.task_done(connection=connection)
        await task.ack(connection=connection)
        await theirs.put("served", connection=connection)
        await connection.commit()

    def use():
        task = their_tasks.take()
        theirs.get()
        for isolated in calls(task):
            with pytest.raises(ArgumentError, match=f"{isolation.upper()}.*Use READ COMMITTED"):
                isolated()
        connection.rollback()
        connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        theirs.task_done(connection=connection)
        task.ack(connection=connection)
        theirs.put("served", connection=connection)
        connection.commit()

    do(use_async() if queues.__name__.endswith("aio") else use())
    do(connection.close())
    assert (q.get(), q.qsize()) == ("served", 0)
    q.task_done()
    assert tasks.stats().counts["T"] == tasks.stats().counts["R"] == 0
    q.delete()
    tasks.delete()


def test_a_session_that_is_kept_from_being_read_committed_is_refused(
    caller, own_postgres, isolation, name
):
    option = f"?options=-c%20default_transaction_isolation%3D{isolation.replace(' ', '%5C%20')}"
    url = url_of(own_postgres, "postgres", query=option)
    with pytest.raises(BrokerError, match=f"{isolation.upper()}, and queues need READ COMMITTED"):
        caller.do(caller.queues.Queue(name=name, url=url).put("item"))
