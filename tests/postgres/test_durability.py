"""``durability="fsync"`` has each commit wait for the disk, and needs a server that has it."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
from brokers import postgres as servers
from brokers.postgres import Postgres
from waiting import HOURS, LIMIT, Background, until

import pressure_mp
from pressure_mp import Queue, TaskQueue
from pressure_mp.engines import registry
from pressure_mp.exceptions import (
    ArgumentError,
    BrokerError,
    NotDurable,
    QueueDoesNotExistError,
)

installing = pytest.importorskip("pressure_mp.engines.postgres.installing")


@pytest.fixture(scope="module")
def synchronous(postgres):
    """A server that writes to its disk, and does not wait for that unless it is asked to."""
    with servers.Postgres(
        "fsync=on", "synchronous_commit=off", "wal_writer_delay=10s"
    ).serving() as server:
        yield server


def log(server):
    """Up to where the log goes, and up to where the disk has it. Others write into it too: the
    server's own processes."""
    row = server.execute(
        "SELECT pg_current_wal_insert_lsn() - '0/0', pg_current_wal_flush_lsn() - '0/0'"
    )[0]
    return int(row[0]), int(row[1])


def end_of_unwritten(server):
    """Up to where the log goes, which the disk does not have."""
    end, written = log(server)
    assert end - written > 300
    return end


def test_an_item_put_durably_is_on_the_disk_when_the_put_returns(synchronous, name):
    hasty = Queue(name=name, url=synchronous.limited_url)
    durable = Queue(name=name, url=synchronous.limited_url, durability="fsync")
    synchronous.execute("CHECKPOINT")
    hasty.put("x" * 300)
    end = end_of_unwritten(synchronous)
    durable.put("y")
    assert log(synchronous)[1] > end
    assert [hasty.get(), durable.get()] == ["x" * 300, "y"]


def test_a_server_without_fsync_refuses(postgres, name):
    with pytest.raises(BrokerError, match="fsync=off"):
        Queue(name=name, url=postgres.limited_url, durability="fsync").put(1)


def test_an_item_put_durably_in_a_transaction_is_on_the_disk_when_the_commit_returns(
    synchronous, name
):
    import psycopg

    hasty = Queue(name=name, url=synchronous.limited_url)
    durable = Queue(name=name, url=synchronous.limited_url, durability="fsync")
    with psycopg.connect(synchronous.limited_url) as connection:
        synchronous.execute("CHECKPOINT")
        hasty.put("x" * 300, connection=connection)
        connection.commit()
        end = end_of_unwritten(synchronous)
        durable.put("y", connection=connection)
        connection.commit()
    assert log(synchronous)[1] > end


def test_a_put_need_not_wait_for_a_server_that_waits_for_its_disk(synchronous, name):
    url = f"{synchronous.url}?options=-c%20synchronous_commit%3Don"
    careful, hasty = Queue(name=name, url=url), Queue(name=name, url=url, durability="off")
    synchronous.execute("CHECKPOINT")
    hasty.put("x" * 300)
    end = end_of_unwritten(synchronous)
    careful.put("y")
    assert log(synchronous)[1] > end
    assert [careful.get(), careful.get()] == ["x" * 300, "y"]


def test_only_postgresql_waits_less_than_it_is_set_to(name):
    for url in ("memory://", "redis://127.0.0.1:1"):
        with pytest.raises(ArgumentError, match="'off' is for postgresql://"):
            Queue(name=name, url=url, durability="off")


class Standby(Postgres):
    """One that follows another server, and confirms its commits."""

    def __init__(self, primary):
        super().__init__("hot_standby=on")
        self._run(
            *("pg_basebackup", "-d", f"{primary.url}?application_name=standby"),
            *("-D", str(self.directory / "data"), "-R", "-X", "stream", "-c", "fast"),
        )


@pytest.fixture
def replicated(postgres):
    """A server that does not wait for its standby unless it is asked to; and that, not started."""
    primary = Postgres("synchronous_standby_names=any 1 (standby, another)")
    standby = None
    try:
        primary.start()
        primary.execute("ALTER SYSTEM SET synchronous_commit TO local")
        primary.execute("SELECT pg_reload_conf()")
        primary.prepare()
        standby = Standby(primary)
        yield primary, standby
    finally:
        if standby is not None:
            standby.stop()
        primary.stop()


def test_a_put_waits_for_the_standbys_that_it_asks_for(replicated, name):
    primary, standby = replicated
    url = primary.limited_url
    Queue(name=name, url=url).put("waits for none")
    with pytest.raises(BrokerError, match="has 1 standbys confirm a commit, not 2"):
        Queue(name=name, url=url, durability="replica:2").open()
    putting = Background(lambda: Queue(name=name, url=url, durability="replica:1").put("item"))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    until(lambda: primary.execute(waiting) == [(1,)])
    standby.start()
    putting.result()
    assert primary.execute("SELECT count(*) FROM pg_stat_replication") == [(1,)]


SYNC_REP = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def without_standbys(server, call):
    """The result of a call whose commits are not waited for, since an administrator ends that."""
    calling = Background(call)

    def is_over():
        server.execute(f"SELECT pg_cancel_backend(pid) {SYNC_REP}")
        return not calling.is_alive()

    until(is_over)
    return calling.result()


@pytest.mark.parametrize("kind", ["Queue", "TaskQueue"])
@pytest.mark.parametrize("breaks", ["crash", "terminate"])
def test_a_put_waits_for_the_standbys_also_after_its_connection_broke(
    replicated, kind, breaks, name
):
    primary, standby = replicated
    kind = getattr(pressure_mp, kind)
    durable = {"durability": "replica:1", "reconnect": HOURS}
    q = without_standbys(primary, lambda: kind(name=name, url=primary.limited_url, **durable))
    putting = Background(q.put, "item")
    until(lambda: primary.execute(f"SELECT 1 {SYNC_REP}"))
    if breaks == "crash":
        primary.kill()
        primary.start()
    else:
        primary.execute(f"SELECT pg_terminate_backend(pid) {SYNC_REP}")
    until(lambda: primary.execute(f"SELECT 1 {SYNC_REP}") or not putting.is_alive())
    assert putting.is_alive()
    standby.start()
    putting.result()
    assert primary.execute("SELECT count(*) FROM pg_stat_replication") == [(1,)]
    assert kind(name=name, url=primary.limited_url).qsize() == 1


@pytest.mark.parametrize("kind", ["Queue", "TaskQueue"])
def test_a_put_whose_wait_for_the_standbys_an_administrator_ends_is_not_durable(
    replicated, kind, caller, name
):
    primary, _ = replicated

    def put():
        durable = {"durability": "replica:1", "reconnect": HOURS}
        q = getattr(caller.queues, kind)(name=name, url=primary.limited_url, **durable)
        caller.do(q.put("item"))

    with pytest.raises(NotDurable, match="not confirmed by the standbys"):
        without_standbys(primary, put)
    assert getattr(pressure_mp, kind)(name=name, url=primary.limited_url).qsize() == 1


def test_how_many_standbys_confirm_is_as_the_server_is_set_to(postgres):
    for names, number in {
        "": 0,
        "one": 1,
        "one, another": 1,
        "*": 1,
        "2 (a, b, c)": 2,
        "FIRST 3 (a, b, c)": 3,
        "Any 2(*)": 2,
    }.items():
        asking = f"SELECT pressure_mp.count_synchronous('{names}')"
        assert postgres.execute(asking) == [(number,)]


def test_unlogged_queues_are_gone_after_a_crash(synchronous, name):
    address = registry.parse(f"{synchronous.url}?schema=quick")
    installing.install(address, unlogged=True)
    installing.install(address, unlogged=True)
    q = Queue(name=name, url=f"{synchronous.url}?schema=quick")
    logged = Queue(name=name, url=synchronous.url, durability="fsync")
    q.put("item")
    logged.put("item")
    synchronous.kill()
    synchronous.start()
    with pytest.raises(QueueDoesNotExistError):
        q.put("another")
    assert logged.get() == "item"
    Queue(name=name, url=f"{synchronous.url}?schema=quick").put("again")
    assert q.get() == "again"
    with pytest.raises(BrokerError, match="pressure_mp is there, and its tables are logged"):
        installing.install(registry.parse(synchronous.url), unlogged=True)


@contextmanager
def locked(server, q):
    """Another session has the queue's lock, until a call waits for it."""
    with psycopg.connect(server.url) as connection:
        slots = "SELECT DISTINCT slot FROM pressure_mp.queues WHERE name = %s"
        ((slot,),) = connection.execute(slots, [q.name]).fetchall()
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [slot])
        yield
        until(lambda: waiting(server) == 1)


def waiting(server):
    """How many sessions wait for the lock of a queue."""
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    return server.execute(waits)[0][0]


@pytest.fixture
def statements(monkeypatch):
    """The names of the statements that are executed from now on; ``meanwhile`` is called before a
    flush."""
    from pressure_mp.engines.postgres import wire

    execute, found = wire.Wire.execute, Executed()

    async def executed(this, statement, *args):
        found.names.append(statement.name)
        if statement.name == b"flush":
            meanwhile, found.meanwhile = found.meanwhile, lambda: None
            meanwhile()
        return await execute(this, statement, *args)

    monkeypatch.setattr(wire.Wire, "execute", executed)
    return found


class Executed:
    def __init__(self):
        self.names, self.meanwhile = [], lambda: None


MANY = [pytest.param(kind, id=kind) for kind in ("Queue", "TaskQueue")]


def careful(server):
    return f"{server.url}?options=-c%20synchronous_commit%3Don"


def number_of(kind, server, name):
    q = getattr(pressure_mp, kind)(name=name, url=careful(server))
    return len(q.take_many(10, 0) if kind == "TaskQueue" else q.get_many(10, timeout=0))


@pytest.mark.parametrize("kind", MANY)
def test_a_put_that_waits_for_the_lock_is_on_the_disk_when_it_returns(
    synchronous, name, kind, statements
):
    q = getattr(pressure_mp, kind)(name=name, url=careful(synchronous))
    q.put_many([1])
    assert b"flush" not in statements.names  # alone it waits for the disk once
    with locked(synchronous, q):
        putting = Background(q.put_many, [2, 3])
    putting.result()
    synchronous.kill()
    synchronous.start()
    assert statements.names.count(b"flush") == 1
    assert number_of(kind, synchronous, name) == 3


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("durable", [{}, {"durability": "fsync"}])
def test_a_put_that_a_crash_undoes_before_the_disk_has_it_is_made_again(
    synchronous, name, kind, durable, statements
):
    q = getattr(pressure_mp, kind)(name=name, url=careful(synchronous), reconnect=HOURS, **durable)
    q.open()
    is_put, goes_on = threading.Event(), threading.Event()

    def pause():
        is_put.set()
        assert goes_on.wait(LIMIT)

    statements.meanwhile = pause
    with locked(synchronous, q):
        putting = Background(q.put_many, [1, 2])
    assert is_put.wait(LIMIT)
    synchronous.kill()
    synchronous.start()
    goes_on.set()
    putting.result()
    assert number_of(kind, synchronous, name) == 2


@pytest.mark.parametrize("kind", MANY)
def test_a_put_of_asyncio_that_is_cancelled_while_it_waits_for_the_lock_is_done(
    synchronous, name, kind, statements
):
    q = getattr(pressure_mp, kind)(name=name, url=careful(synchronous))
    opened, may_put, begun = threading.Event(), threading.Event(), queue.SimpleQueue()

    async def put():
        loop = asyncio.get_running_loop()
        async with getattr(pressure_mp.aio, kind)(name=name, url=careful(synchronous)) as there:
            opened.set()
            await loop.run_in_executor(None, may_put.wait, LIMIT)
            putting = asyncio.ensure_future(there.put_many([1, 2]))
            begun.put(partial(loop.call_soon_threadsafe, putting.cancel))
            await asyncio.wait({putting})
            return putting.cancelled()

    running = Background(asyncio.run, put())
    assert opened.wait(LIMIT)
    with locked(synchronous, q):
        may_put.set()
        cancel = begun.get(timeout=LIMIT)
        until(lambda: waiting(synchronous))
        cancel()
    assert not running.result()
    assert statements.names.count(b"flush") == 1
    assert number_of(kind, synchronous, name) == 2


def test_a_put_that_waits_for_no_disk_does_not_wait_for_it_after_the_lock_either(
    synchronous, name, statements
):
    q = TaskQueue(name, url=careful(synchronous), durability="off")
    q.open()
    with locked(synchronous, q):
        putting = Background(q.put, 1)
    putting.result()
    assert b"flush" not in statements.names


@pytest.mark.parametrize("kind", MANY)
def test_a_call_that_is_gone_when_it_is_to_be_flushed_is_made_again(
    synchronous, name, kind, statements
):
    q = getattr(pressure_mp, kind)(name=name, url=careful(synchronous))
    q.open()

    def undo():
        for table in ("calls", "tasks", "items"):
            synchronous.execute(f"DELETE FROM pressure_mp.{table}")

    statements.meanwhile = undo
    with locked(synchronous, q):
        putting = Background(q.put_many, [1, 2])
    putting.result()
    assert statements.names.count(b"flush") == 1
    assert number_of(kind, synchronous, name) == 2


def test_a_put_that_waited_for_the_lock_is_not_durable_if_the_wait_for_the_standbys_is_ended(
    replicated, name, statements
):
    primary, _ = replicated
    durable = {"durability": "replica:1", "reconnect": HOURS}
    q = without_standbys(primary, lambda: TaskQueue.create(name, url=primary.url, **durable))
    with locked(primary, q):
        putting = Background(q.put, "item")
    with pytest.raises(NotDurable, match="not confirmed by the standbys"):
        without_standbys(primary, putting.result)
    assert statements.names.count(b"flush") == 1
    assert TaskQueue(name, url=primary.url).qsize() == 1
