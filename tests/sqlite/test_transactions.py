"""Puts and acknowledgements in a transaction of the program's own, in the file of the queues, are
done if and only if that commits."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
import started
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import Executor, JoinableQueue, Queue, TaskQueue, aio
from pressure_mp.engines.contract import session
from pressure_mp.engines.sqlite import store
from pressure_mp.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    Full,
    ShutDown,
    TaskDoneError,
    TaskExists,
    TaskNotFound,
)

LARGE = b"large" * 1_000_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queues"


@pytest.fixture
def url(path):
    return f"sqlite://{path}"


@pytest.fixture
def own(path, q):
    """The program's own connection."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE kept (number)")
        yield connection


@pytest.fixture
def q(url, name):
    return Queue.create(name, url=url)


def kept(connection):
    return [number for (number,) in connection.execute("SELECT number FROM kept")]


# The first call of a handle


@pytest.mark.parametrize("kind", [Queue, TaskQueue])
def test_a_queue_is_not_opened_in_the_midst_of_a_transaction(kind, own, q, url, name):
    first = kind(name=f"{name}-first", url=url)
    of_asyncio = getattr(aio, kind.__name__)(name=f"{name}-first", url=url)
    with own:
        own.execute("INSERT INTO kept VALUES (1)")
        with pytest.raises(ArgumentError, match=r"not open.*open\(\) it before the transaction"):
            first.put(1, connection=own)
        with pytest.raises(ArgumentError, match=r"not open.*open\(\) it before the transaction"):
            asyncio.run(of_asyncio.put(1, connection=own))
    with own:  # which begins with the put
        first.put(2, connection=own)
    assert first.qsize() == 1
    assert kept(own) == [1]


# When it commits, and when it does not


@pytest.mark.parametrize("world", ["threads", "asyncio"])
def test_items_and_rows_are_there_when_the_transaction_commits(world, own, q, url):
    if world == "threads":
        with own:
            own.execute("INSERT INTO kept VALUES (1)")
            q.put("first", connection=own)
            q.put_many(["second", LARGE], connection=own)
    else:
        asyncio.run(_put(q.name, url, own))
    assert (q.get_many(2), q.get(), kept(own)) == (["first", "second"], LARGE, [1])


async def _put(name, url, own):
    async with aio.Queue(name=name, url=url) as mine:
        await mine.open()
        own.execute("INSERT INTO kept VALUES (1)")
        await mine.put("first", connection=own)
        await mine.put_many(["second", LARGE], connection=own)
        own.commit()


def test_nothing_is_there_when_it_is_rolled_back(own, q):
    q.put("item", connection=own)  # which begins the transaction
    q.put(LARGE, connection=own)
    assert own.in_transaction
    own.rollback()
    assert q.empty()


def test_an_item_that_a_savepoint_takes_back_is_not_put(own, q):
    own.execute("BEGIN")
    q.put(1, connection=own)
    own.execute("SAVEPOINT inner")
    q.put(2, connection=own)
    own.execute("ROLLBACK TO inner")
    q.put(3, connection=own)
    own.commit()
    assert q.get_many(9) == [1, 3]


def test_a_killed_program_did_neither(path, q, own):
    program = """
import os, signal, sqlite3, sys
from pressure_mp import Queue
url, name = sys.argv[1:]
queue = Queue.attach(name, url=url)
own = sqlite3.connect(url.removeprefix("sqlite://"))
own.execute("INSERT INTO kept VALUES (1)")
queue.put("item", connection=own)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, f"sqlite://{path}", q.name], env=started.environment()
    )
    assert done.returncode == -9
    assert (q.empty(), kept(own)) == (True, [])
    q.put("next")
    assert q.get() == "next"


def test_a_get_that_waits_has_the_item_when_the_transaction_commits(own, q, monkeypatch):
    monkeypatch.setattr(session, "TICK", HOURS)
    getting = Background(q.get)
    until(lambda: parks(getting))
    q.put("item", connection=own)
    own.commit()
    assert getting.result() == "item"


def test_a_get_that_waits_goes_on_after_a_rollback(own, q, monkeypatch):
    monkeypatch.setattr(session, "TICK", HOURS)
    getting = Background(q.get)
    until(lambda: parks(getting))
    q.put("never", connection=own)
    own.rollback()
    q.put("item")
    assert getting.result() == "item"


def test_a_call_of_another_thread_waits_for_the_commit(own, q):
    q.put("first", connection=own)
    putting = Background(q.put, "second")
    q.put("also first", connection=own)
    own.commit()
    putting.result()
    assert q.get_many(9) == ["first", "also first", "second"]


def test_a_task_of_a_loop_waits_for_the_commit_while_others_run(own, q, url):
    async def main():
        async with aio.Queue(name=q.name, url=url) as mine:
            await mine.put("first", connection=own)
            putting = asyncio.ensure_future(mine.put("second"))
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not putting.done()
            own.commit()
            await putting

    asyncio.run(main())
    assert q.get_many(9) == ["first", "second"]


def test_a_call_without_the_connection_in_the_midst_of_the_transaction_says_what_to_do(
    own, q, monkeypatch
):
    monkeypatch.setattr(store, "_PATIENCE", 0.2)
    q.put("first", connection=own)
    with pytest.raises(BrokerError, match="make the call with connection=, or after its end"):
        q.get()
    own.commit()
    assert q.get() == "first"


def test_a_run_and_an_executor_go_on_when_another_connection_had_the_file_for_too_long(
    own, url, name, monkeypatch, caplog
):
    monkeypatch.setattr(store, "_PATIENCE", 0.2)
    tasks, stop, done = TaskQueue(f"{name}-tasks", url=url), threading.Event(), []
    tasks.open()
    fork = multiprocessing.get_context("fork")  # the workers have that patience too
    with Executor(1, f"{name}-calls", url=url, mp_context=fork) as executor:
        assert executor.submit(pow, 2, 2).result(LIMIT) == 4
        running = Background(tasks.run, lambda task: done.append(task.data), stop=stop)
        future = executor.submit(time.sleep, 0.5)
        until(future.running)
        own.execute("BEGIN IMMEDIATE")
        for who in (f"executor '{name}-calls'", f"a run of '{name}-tasks'"):
            until(lambda who=who: f"{who} waits for the broker" in caplog.text)
        own.rollback()
        assert future.result(LIMIT) is None
        assert executor.submit(pow, 2, 3).result(LIMIT) == 8
    tasks.put("task")
    until(lambda: done == ["task"])
    stop.set()
    running.result()


# Calls that are refused


def test_a_queue_that_is_full_now_is_full_at_once_and_the_bound_holds(own, url, name):
    q = Queue(2, f"{name}-bound", url=url)
    q.put(1, connection=own)
    with pytest.raises(Full) as full:
        q.put_many([2, 3], connection=own)
    assert (full.value.accepted, full.value.rest) == (1, [3])
    own.commit()
    assert q.get_many(9) == [1, 2]


def test_a_call_that_is_refused_is_undone_alone(own, q):
    q.shutdown()
    own.execute("INSERT INTO kept VALUES (1)")
    with pytest.raises(ShutDown):
        q.put(1, connection=own)
    own.commit()
    assert kept(own) == [1]


def test_a_call_that_fails_in_its_midst_is_undone_alone(own, q, monkeypatch):
    q.put("before", connection=own)
    plain, left = store.SqliteTxn.set, [1]

    def fails(txn, key, value):
        if not left:
            raise sqlite3.OperationalError("disk I/O error")
        left.pop()
        plain(txn, key, value)

    with monkeypatch.context() as patch:
        patch.setattr(store.SqliteTxn, "set", fails)
        with pytest.raises(sqlite3.OperationalError, match="I/O"):
            q.put_many(["never", "never"], connection=own)
    q.put("behind", connection=own)
    own.commit()
    assert (q.qsize(), q.get_many(9)) == (2, ["before", "behind"])


def test_connections_that_cannot_be_used_say_why(own, path, tmp_path, q):
    def refused(connection, why, error=ArgumentError):
        with pytest.raises(error, match=why):
            q.put(1, connection=connection)

    with closing(sqlite3.connect(path, isolation_level=None)) as automatic:
        refused(automatic, "autocommit")
        automatic.execute("BEGIN")
        q.put("in a transaction", connection=automatic)
        automatic.execute("COMMIT")
    assert q.get() == "in a transaction"
    refused(automatic, "closed")
    with closing(sqlite3.connect(tmp_path / "elsewhere")) as elsewhere:
        refused(elsewhere, "it is to .*/elsewhere, and the queue is in .*/queues")
    with closing(sqlite3.connect(":memory:")) as elsewhere:
        refused(elsewhere, "in memory")
    refused(object(), "sqlite3.*not a builtins.object", ArgumentTypeError)


def test_a_transaction_that_read_before_others_wrote_is_refused_by_sqlite(own, q):
    own.execute("BEGIN")
    kept(own)
    q.put("of another one")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        q.put("item", connection=own)
    own.rollback()
    q.put("item", connection=own)
    own.commit()
    assert q.get_many(9) == ["of another one", "item"]


def test_factories_and_rows_of_the_connection_do_not_matter(own, q):
    own.row_factory = sqlite3.Row
    own.text_factory = bytes
    q.put("item", connection=own)
    own.commit()
    assert q.get() == "item"


def test_the_log_is_moved_by_the_queues_alone(own, q):
    q.put("item", connection=own)
    assert own.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    own.commit()


@pytest.mark.parametrize("begins", ["with the put", "with a row"])
def test_the_log_stays_small_while_a_program_only_puts_in_its_transactions(begins, own, path, q):
    for number in range(1500):
        with own:
            if begins == "with a row":
                own.execute("INSERT INTO kept VALUES (?)", [number])
            q.put(b"x" * 1000, connection=own)
    log = path.with_name(f"{path.name}-wal").stat().st_size
    assert log < 20_000_000  # and 39 MB if nothing moves it


# Deliveries and tasks


def test_an_item_is_acknowledged_by_the_commit_and_in_flight_after_a_rollback(own, url, name):
    q = JoinableQueue(name=f"{name}-j", url=url)
    q.put_many("ab")
    assert [q.get(), q.get()] == ["a", "b"]
    q.task_done(connection=own)
    own.rollback()
    for number in range(2):  # the second transaction begins before the first is seen to be over
        own.execute("INSERT INTO kept VALUES (?)", [number])
        q.task_done(connection=own)
        own.commit()
    assert (q.unfinished_tasks, kept(own)) == (0, [0, 1])
    with pytest.raises(TaskDoneError):
        q.task_done(connection=own)
    own.rollback()
    q.join()


def test_a_transaction_that_follows_one_that_was_rolled_back_acknowledges_the_same_item(
    own, url, name
):
    q = JoinableQueue(name=f"{name}-j", url=url)
    q.put("a")
    q.get()
    q.task_done(connection=own)
    own.rollback()
    own.execute("INSERT INTO kept VALUES (1)")  # of the next transaction
    q.task_done(connection=own)
    own.commit()
    q.join()


def test_a_task_is_processed_when_the_transaction_commits(own, url, name):
    tasks = TaskQueue(f"{name}-tasks", url=url)
    with own:
        first = tasks.put("b", connection=own)
        (second,) = tasks.put_many("a", connection=own)
    assert [task.id for task in tasks.list("ready")] == [first, second]
    with tasks.take(0) as task:
        own.execute("INSERT INTO kept VALUES (1)")
        task.ack(connection=own)
        own.commit()
    with pytest.raises(TaskNotFound):
        tasks.peek(first)
    with pytest.raises(ZeroDivisionError):
        _fail_behind_the_acknowledgement(tasks, own)
    assert (tasks.peek(second).state, kept(own)) == ("W", [1])


def _fail_behind_the_acknowledgement(tasks, own):
    with tasks.take(0) as task, own:
        own.execute("INSERT INTO kept VALUES (2)")
        task.ack(connection=own)
        assert task.state == "T"
        raise ZeroDivisionError


def test_an_id_that_is_there_is_refused_and_the_transaction_goes_on(own, url, name):
    tasks = TaskQueue(f"{name}-tasks", url=url)
    tasks.put("a", id="a", connection=own)
    with pytest.raises(TaskExists):
        tasks.put("b", id="a", connection=own)
    own.commit()
    assert tasks.peek("a").data == "a"


# Of other libraries


def test_connections_and_sessions_of_sqlalchemy(path, own, q):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from sqlalchemy.orm import Session

    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("INSERT INTO kept VALUES (1)"))
        q.put("in a block", connection=connection)
    with engine.connect() as connection:
        q.put("as the first that it does", connection=connection)
        connection.commit()
        q.put("rolled back", connection=connection)
        connection.rollback()
    with Session(engine) as one, one.begin():
        q.put("of a session", connection=one)
    engine.dispose()
    assert q.get_many(9) == ["in a block", "as the first that it does", "of a session"]


def test_a_connection_of_django(path, own, q):
    django = pytest.importorskip("django")
    from django.conf import settings

    place = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}
    settings.configure(DATABASES={"default": place})
    django.setup()
    from django.db import connection, transaction

    with pytest.raises(ArgumentError, match=r"transaction\.atomic\(\)"):
        q.put("item", connection=connection)
    with transaction.atomic():
        q.put("item", connection=connection)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            q.put(1 / 0, connection=connection)
    connection.close()
    assert q.get_nowait() == "item"


def test_many_threads_put_with_their_own_connections(path, own, q):
    def work(me):
        with closing(sqlite3.connect(path, timeout=30)) as mine:
            for number in range(25):
                with mine:
                    mine.execute("BEGIN IMMEDIATE")
                    mine.execute("INSERT INTO kept VALUES (?)", [me * 100 + number])
                    q.put(me * 100 + number, connection=mine)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for one in threads:
        one.start()
    got = [q.get() for _ in range(100)]
    for one in threads:
        one.join()
    assert sorted(got) == sorted(kept(own))
    assert [[n for n in got if n // 100 == me] for me in range(4)] == [
        [me * 100 + n for n in range(25)] for me in range(4)
    ]
