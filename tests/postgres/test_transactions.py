"""Items that are put in a transaction of the caller's are there if and only if that commits."""

from __future__ import annotations

import secrets

import psycopg
import pytest
from callers import Asyncio, Threads
from waiting import Background, until

from pressure_mp import FairQueue, LifoQueue, PriorityQueue, Queue, TaskQueue
from pressure_mp.engines import registry
from pressure_mp.engines.contract.brokers import Identify
from pressure_mp.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    Full,
    QueueDoesNotExistError,
    ShutDown,
    TaskExists,
)

REFUSED = psycopg.errors.ObjectNotInPrerequisiteState
LARGE = b"large" * 100_000


@pytest.fixture
def url(postgres):
    return postgres.limited_url


@pytest.fixture
def connection(caller, url):
    """The program's own."""
    found = caller.connect(url)
    yield found
    caller.do(found.close())


@pytest.fixture
def q(url, name):
    return Queue(name=name, url=url)


def rows(postgres, queue):
    """What the tables have of a queue that was put in transactions."""
    return postgres.execute(
        "SELECT (SELECT count(*) FROM pressure_mp.staged), "
        "(SELECT count(*) FROM pressure_mp.chunks WHERE queue = "
        f"(SELECT id FROM pressure_mp.queues WHERE name = '{queue.name}'))"
    )[0]


# When it commits, and when it does not


def test_a_sort_key_that_is_too_long_fails_the_commit(caller, connection, url, name):
    q = caller.queues.PriorityQueue(name=name, url=url)
    caller.do(q.put(secrets.token_hex(6000), connection=connection))
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        caller.do(connection.commit())
    assert caller.do(q.empty())


def test_items_are_there_when_the_transaction_commits(caller, connection, url, q):
    do, mine = caller.do, caller.queues.Queue(name=q.name, url=url)
    do(mine.put("first", connection=connection))
    do(mine.put_many(["second", LARGE], connection=connection))
    q.put("of another one, which waits for nothing")
    assert (q.get(), q.qsize()) == ("of another one, which waits for nothing", 0)
    do(connection.commit())
    assert q.get_many(2) == ["first", "second"]
    assert q.get() == LARGE


def test_a_transaction_is_of_the_same_database_after_a_process_asked_which_queues_these_are(
    url, name
):
    """Over one connection, the two questions for an identity are two prepared statements."""
    q = Queue(name=name, url=url)
    session = registry.engine(registry.resolve(url)).broker().session()
    told = session.call(Identify())
    with psycopg.connect(url) as connection:
        q.put("item", connection=connection)
    assert q.get() == "item"
    assert session.call(Identify()) == told


def test_nothing_is_there_when_it_is_rolled_back(caller, connection, url, q, postgres):
    do, mine = caller.do, caller.queues.Queue(name=q.name, url=url)
    do(mine.put("item", connection=connection))
    do(mine.put(LARGE, connection=connection))
    do(connection.rollback())
    assert q.qsize() == 0
    assert rows(postgres, q) == (0, 0)


def test_an_item_that_a_savepoint_takes_back_is_not_put(own, q, postgres):
    q.put(1, connection=own)
    with own.transaction() as inner:
        q.put(2, connection=own)
        raise psycopg.Rollback(inner)
    q.put(3, connection=own)
    own.commit()
    assert q.get_many(9) == [1, 3]
    assert rows(postgres, q) == (0, 0)


def test_items_take_their_places_in_the_order_of_the_commits(own, url, q):
    with psycopg.connect(url) as other:
        q.put("a", connection=own)
        q.put("b", connection=other)
        q.put("c", connection=own)
        other.commit()
        own.commit()
    assert q.get_many(9) == ["b", "a", "c"]


def test_a_get_that_waits_for_an_item_is_woken_by_the_commit(own, q, no_ticks, postgres):
    getting = Background(q.get)
    waiting = "SELECT count(*) FROM pressure_mp.waiting w JOIN pressure_mp.queues q ON w.slot = "
    waiting += f"pressure_mp.slot(q.prefix, 'items', q.name) WHERE q.name = '{q.name}'"
    while not postgres.execute(waiting)[0][0]:
        pass
    q.put("item", connection=own)
    own.commit()
    assert getting.result() == "item"


def test_other_orders_are_kept(own, url, name):
    kinds = [LifoQueue, PriorityQueue, lambda **to: FairQueue(lambda item: item % 10, **to)]
    queues = [kind(name=f"{name}-{at}", url=url) for at, kind in enumerate(kinds)]
    for queue in queues:
        queue.put(21)
        queue.put_many([31, 12], connection=own)
        queue.put(11)
    own.commit()
    assert [queue.get_many(9) for queue in queues] == [
        [12, 31, 11, 21],
        [11, 12, 21, 31],
        [21, 12, 11, 31],
    ]


def test_two_transactions_that_put_into_two_queues_do_not_block_each_other(postgres, url, name):
    """They commit at one moment: each could have the lock of one queue, and wait for another."""
    queues = [Queue.create(f"{name}-{at}", url=url) for at in range(2)]
    with psycopg.connect(postgres.url) as busy, psycopg.connect(url) as one:
        busy.execute(
            "SELECT pg_advisory_xact_lock(pressure_mp.slot(q.prefix, q.kind, q.name)) "
            "FROM pressure_mp.queues q WHERE q.name = ANY (%s)",
            [[q.name for q in queues]],
        )
        with psycopg.connect(url) as other:
            for connection, order in ((one, queues), (other, queues[::-1])):
                for q in order:
                    q.put("item", connection=connection)
            committing = [Background(one.commit), Background(other.commit)]
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            until(lambda: postgres.execute(waiting)[0][0] >= 2)
            busy.commit()
            for commit in committing:
                commit.result()
    assert [q.qsize() for q in queues] == [2, 2]


def test_a_producer_in_transactions_counts_as_one(own, url, name):
    q = Queue(name=name, url=url, eof="producers")
    q.put("item", connection=own)
    own.commit()
    q.close()
    other = Queue(name=name, url=url, eof="producers")
    assert other.get() == "item"
    with pytest.raises(ShutDown, match="producers"):
        other.get()


# Calls that are refused


def test_a_queue_that_is_full_now_is_full_at_once(caller, connection, url, name):
    do, mine = caller.do, caller.queues.Queue(2, name, url=url)
    do(mine.put(1, connection=connection))
    with pytest.raises(Full) as full:
        do(mine.put_many([2, 3], connection=connection))
    assert (full.value.accepted, full.value.rest) == (1, [3])
    q = Queue(name=name, url=url)
    q.put("of another one, which does not see the others")
    do(connection.commit())
    assert q.get_many(9) == ["of another one, which does not see the others", 1, 2]


def test_a_queue_that_is_shut_down_refuses_and_the_transaction_can_go_on(own, q):
    q.shutdown()
    with pytest.raises(ShutDown):
        q.put(1, connection=own)
    q.delete()
    with pytest.raises(QueueDoesNotExistError):
        q.put(1, connection=own)
    assert own.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("end", [Queue.shutdown, Queue.delete])
def test_the_commit_fails_if_the_queue_came_to_its_end_meanwhile(own, q, end):
    with own.transaction():
        own.execute("CREATE TEMPORARY TABLE kept ()")
    own.execute("INSERT INTO kept DEFAULT VALUES")
    q.put(1, connection=own)
    end(q)
    with pytest.raises(REFUSED, match=f'"{q.name}".*(shut down|deleted) meanwhile'):
        own.commit()
    assert own.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_the_commit_fails_if_a_priority_cannot_be_compared_by_then(own, url, name):
    q = PriorityQueue(name=name, url=url)
    q.put(1, connection=own)
    q.put("text")
    with pytest.raises(REFUSED, match="cannot be compared"):
        own.commit()
    with pytest.raises(ArgumentTypeError, match="cannot compare"):
        q.put(1, connection=own)


def test_connections_that_cannot_be_used_say_why(own, postgres, url, q):
    def refused(connection, why, error=ArgumentError):
        with pytest.raises(error, match=why):
            q.put(1, connection=connection)

    with psycopg.connect(url, autocommit=True) as automatic:
        refused(automatic, "autocommit")
        with automatic.transaction():
            q.put("in a transaction", connection=automatic)
    assert q.get() == "in a transaction"
    refused(automatic, "closed")
    with pytest.raises(psycopg.errors.DivisionByZero):
        own.execute("SELECT 1/0")
    refused(own, "roll it back")
    own.rollback()
    own.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    refused(own, "REPEATABLE READ.*Use READ COMMITTED")
    with psycopg.connect(url, dbname="template1") as elsewhere:
        refused(elsewhere, "another database .'template1'")
    refused(object(), "psycopg 3.*not a builtins.object", ArgumentTypeError)
    with psycopg.connect(postgres.url) as without_rights:
        without_rights.execute("SET ROLE pg_monitor")
        refused(without_rights, "grant", BrokerError)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_connection_has_any_encoding(caller, url, name, encoding):
    do, queues = caller.do, caller.queues
    connection = caller.connect(url, client_encoding=encoding)
    do(queues.Queue(name=name, url=url).put("ä", connection=connection))
    tasks = queues.TaskQueue(f"{name}-tasks", url=url)
    assert do(tasks.put("ä", id="ä", connection=connection)) == "ä"
    do(connection.commit())
    with pytest.raises(TaskExists, match="ä"):
        do(tasks.put("ä", id="ä", connection=connection))
    do(connection.close())
    assert Queue(name=name, url=url).get() == "ä"
    with TaskQueue(f"{name}-tasks", url=url).take() as task:
        assert (task.id, task.data) == ("ä", "ä")


def test_each_world_names_the_connection_that_it_needs(url, name):
    for caller, other, needed in (
        (Threads(), Asyncio(), r"psycopg\.Connection"),
        (Asyncio(), Threads(), r"psycopg\.AsyncConnection"),
    ):
        queue, connection = caller.queues.Queue(name=name, url=url), other.connect(url)
        with pytest.raises(ArgumentTypeError, match=f"need an? {needed}"):
            caller.do(queue.put(1, connection=connection))
        other.do(connection.close())
        other.end()
        caller.end()


def test_nothing_can_be_waited_for(own, q, url, name):
    with pytest.raises(ArgumentError, match="timeout cannot go with connection="):
        q.put(1, timeout=1, connection=own)
    with pytest.raises(ArgumentError, match="timeout"):
        q.put_many([1], timeout=1, connection=own)
    tasks = TaskQueue(name=f"{name}-tasks", url=url)
    with pytest.raises(ArgumentError, match="wait cannot go with connection="):
        tasks.put(1, wait=1, connection=own)


def test_queues_elsewhere_have_no_transactions(own, name):
    with pytest.raises(ArgumentError, match="memory://"):
        Queue(name=name, url=f"memory://{name}").put(1, connection=own)


# Tasks


def test_tasks_are_there_when_the_transaction_commits(caller, connection, url, name):
    do, mine = caller.do, caller.queues.TaskQueue(name, url=url)
    tasks = TaskQueue(name, url=url)
    first = do(mine.put("b", priority=2, connection=connection))
    others = do(mine.put_many(["a", "c"], tube="part", connection=connection))
    later = do(mine.put("later", delay=3600, connection=connection))
    assert tasks.qsize() == 0
    do(connection.commit())
    assert sorted({first, *others, later}) == [first, *others, later]
    assert [task.id for task in tasks.list("ready")] == [*others, first]
    assert tasks.peek(later).state == "W"


def test_ids_that_a_queue_counts_are_told_at_once_and_given_once(own, url, name):
    tasks = TaskQueue(name, url=url, id="auto_increment")
    assert tasks.put_many("ab", connection=own) == [1, 2]
    assert tasks.put("c") == 3
    own.rollback()
    assert tasks.put("d", connection=own) == 4
    own.commit()
    assert [task.id for task in tasks.list("ready")] == [3, 4]


def test_an_id_that_is_there_is_refused_at_once_or_by_the_commit(own, url, name):
    tasks = TaskQueue(name, url=url)
    tasks.put("a", id="one")
    with pytest.raises(TaskExists):
        tasks.put("b", id="one", connection=own)
    tasks.put("c", id="two", connection=own)
    tasks.put("d", id="two")
    with pytest.raises(REFUSED, match="a task of that id"):
        own.commit()


def test_a_bound_counts_the_tasks_of_the_transaction(caller, connection, url, name):
    do, mine = caller.do, caller.queues.TaskQueue(name, url=url, maxsize=2)
    tasks = TaskQueue(name, url=url)
    do(mine.put("a", connection=connection))
    with pytest.raises(Full):
        do(mine.put_many(["b", "c"], connection=connection))
    do(mine.put("b", connection=connection))
    with pytest.raises(Full):
        do(mine.put("c", connection=connection))
    tasks.put("of another one", block=False)
    do(connection.commit())
    assert sorted(task.data for task in tasks.list("ready")) == ["a", "b", "of another one"]
    with pytest.raises(Full):
        tasks.put("d", block=False)
