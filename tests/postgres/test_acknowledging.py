"""A task that is acknowledged in a transaction of its worker's is processed if and only if that
commits, with whatever else the transaction does."""

from __future__ import annotations

import secrets
import threading

import psycopg
import pytest
from callers import Asyncio
from waiting import LIMIT, Background, until

from pressure_mp import NotOwner, NotTaken, ResultTimeout, TaskNotFound, TaskQueue
from pressure_mp.background import takers

REFUSED = psycopg.errors.ObjectNotInPrerequisiteState


@pytest.fixture
def url(postgres):
    return postgres.url


@pytest.fixture
def results(postgres):
    """A table of the program's own."""
    table = f"results_{secrets.token_hex(4)}"
    postgres.execute(f"CREATE TABLE {table} (result text)")
    yield table
    postgres.execute(f"DROP TABLE {table}")


@pytest.fixture
def tasks(url, name):
    """The queue of tasks of the worker under test."""
    found = TaskQueue(name, url=url)
    yield found
    found.delete()


def ids_of(tasks, state):
    return [task.id for task in tasks.list(state)]


def test_a_task_is_acknowledged_together_with_its_result_when_the_transaction_commits(
    caller, url, tasks, results, postgres
):
    do, mine = caller.do, caller.queues.TaskQueue(tasks.name, url=url)
    connection = caller.connect(url)
    tasks.put_many("abcd", ids="abcd")
    one, *others = [do(mine.take(0)) for _ in range(4)]
    do(connection.execute(f"INSERT INTO {results} VALUES (%s)", [one.data]))
    do(one.ack(connection=connection))
    do(mine.ack_many(others[:2], connection=connection))
    do(mine.ack("d", connection=connection))
    assert (one.state, ids_of(tasks, "taken")) == ("T", list("abcd"))
    assert postgres.execute(f"SELECT * FROM {results}") == []
    do(connection.commit())
    assert (ids_of(tasks, "taken"), ids_of(tasks, "ready")) == ([], [])
    assert postgres.execute(f"SELECT * FROM {results}") == [("a",)]
    assert tasks.stats().transitions == {"X-R": 4, "R-T": 4, "T-X": 4}
    do(connection.close())


def test_a_handler_goes_on_after_its_transaction_has_acknowledged_the_task(
    caller, url, tasks, monkeypatch
):
    """The process asks whether it still has its tasks, and the broker no longer has this one."""
    do, mine = caller.do, caller.queues.TaskQueue(tasks.name, url=url)
    connection = caller.connect(url, autocommit=True)
    tasks.put("data")
    task = do(mine.take(0))
    assert not task.cancelled  # the process asks from now on
    renewed, renew = threading.Semaphore(0), takers.Takers._renew

    def renew_and_say_so(*args):
        found = renew(*args)
        renewed.release()
        return found

    do(connection.execute("BEGIN"))
    do(task.ack(connection=connection))
    do(connection.execute("COMMIT"))
    monkeypatch.setattr(takers.Takers, "_renew", renew_and_say_so)
    for _ in range(4):
        assert renewed.acquire(timeout=LIMIT)
    assert not task.cancelled
    do(connection.close())


def test_a_transaction_that_is_rolled_back_leaves_it_taken(own, tasks):
    tasks.put("data", id="a")
    task = tasks.take(0)
    task.ack(update="other data", connection=own)
    own.rollback()
    assert (tasks.peek("a").state, task.data) == ("T", "data")
    task.ack(connection=own)
    own.commit()
    with pytest.raises(TaskNotFound):
        tasks.peek("a")


def test_only_the_latest_that_transactions_were_to_acknowledge_can_be_acknowledged_again(
    own, tasks, monkeypatch
):
    monkeypatch.setattr(takers, "MOST_UNSURE", 3)
    tasks.put_many("abcde", ids="abcde")
    taken = {task.id: task for task in (tasks.take(0) for _ in range(5))}
    tasks.ack_many(list(taken.values())[:2], connection=own)
    for id in "cad":  # so the first that is forgotten is b
        tasks.ack(id, connection=own)
    tasks.ack("e", connection=own)
    own.rollback()
    assert ids_of(tasks, "taken") == list("abcde")
    for id in "bc":
        with pytest.raises(NotOwner):
            tasks.ack(id)
    for id in "dae":
        tasks.ack(id)
    assert ids_of(tasks, "taken") == ["b", "c"]


def test_a_task_that_a_commit_acknowledges_is_a_zombie_with_its_new_data_and_tube(own, url, name):
    tasks = TaskQueue(name, url=url, zombie=3600)
    tasks.put("data", id="a")
    tasks.take(0).ack(update="other", tube="part", delay=60, connection=own)
    own.commit()
    found = tasks.peek("a")
    assert (found.state, found.data, found.tube) == ("Z", "other", "part")
    tasks.delete()


def test_a_block_that_acknowledged_it_does_nothing_more_and_one_that_failed_releases_it(own, tasks):
    tasks.put("data", id="a")
    with tasks.take(0) as task, own.transaction():
        task.ack(connection=own)
    assert ids_of(tasks, "taken") == []
    tasks.put("data", id="b")
    with pytest.raises(psycopg.errors.DivisionByZero), tasks.take(0) as task, own.transaction():
        own.execute("SELECT 1/0", task.ack(connection=own))
    assert ids_of(tasks, "waiting") == ["b"]
    assert tasks.peek("b").error == "DivisionByZero: division by zero"


def test_handlers_acknowledge_in_their_transactions(caller, url, tasks, results, postgres):
    do, mine = caller.do, caller.queues.TaskQueue(tasks.name, url=url)
    tasks.put_many(range(3))
    tasks.shutdown()

    def handle(task):
        with psycopg.connect(url) as connection:
            connection.execute(f"INSERT INTO {results} VALUES (%s)", [task.data])
            if task.deliveries == 1 and task.data == 1:
                raise ZeroDivisionError
            task.ack(connection=connection)

    async def handle_async(task):
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute(f"INSERT INTO {results} VALUES (%s)", [task.data])
            if task.deliveries == 1 and task.data == 1:
                raise ZeroDivisionError
            await task.ack(connection=connection)

    do(mine.run(handle_async if isinstance(caller, Asyncio) else handle, backoff=0))
    assert sorted(postgres.execute(f"SELECT * FROM {results}")) == [("0",), ("1",), ("2",)]
    assert tasks.stats().transitions["T-X"] == 3


def test_the_commit_fails_when_the_ttr_is_over_by_then(own, tasks, results):
    tasks.put("data", id="a")
    task = tasks.take(0, ttr=0.3)
    own.execute(f"INSERT INTO {results} VALUES ('lost')")
    task.ack(connection=own)
    until(lambda: tasks.qsize())
    with pytest.raises(REFUSED, match=f'acknowledged in queue "{tasks.name}".*no longer has it'):
        own.commit()
    assert own.execute(f"SELECT * FROM {results}").fetchall() == []
    with pytest.raises(NotTaken):
        task.ack(connection=own)
    again = tasks.take(0)
    with pytest.raises(NotOwner):
        task.ack(connection=own)
    own.rollback()
    again.ack(connection=own)
    own.commit()


def test_results_of_tasks_are_kept_when_the_transaction_commits(own, tasks):
    tasks.put_many("abc", ids="abc", result_ttl=60)
    one, *others = tasks.take_many(3, 0)
    large = bytes(3 << 20)  # kept apart, in chunks
    one.ack(result=large, connection=own)
    for number, task in enumerate(others):
        task.result = number
    tasks.ack_many(others, connection=own)
    with pytest.raises(ResultTimeout):
        tasks.result("a", timeout=0)
    own.commit()
    assert tasks.result("a", timeout=0) == large
    assert [tasks.result(id, timeout=0) for id in "bc"] == [0, 1]


def test_the_commit_fails_if_one_of_many_is_lost_by_then(own, tasks):
    tasks.put_many("ab", ids="ab")
    taken = tasks.take_many(2, 0)
    tasks.ack_many(taken, connection=own)
    tasks.release("a")
    with pytest.raises(REFUSED, match="no longer has it"):
        own.commit()
    with pytest.raises(NotTaken) as lost:
        tasks.ack_many(taken, connection=own)
    assert lost.value.task_id == "a"
    own.rollback()
    assert (ids_of(tasks, "ready"), ids_of(tasks, "taken")) == (["a"], ["b"])


def test_no_call_waits_for_a_transaction_that_is_open(own, tasks):
    """Not even a call that changes the task which the transaction acknowledges."""
    tasks.put_many("ab", ids="ab")
    task = tasks.take(0)
    task.ack(connection=own)
    assert tasks.take(0).id == "b"
    task.touch(60)
    own.commit()
    assert ids_of(tasks, "taken") == ["b"]


def test_a_wait_for_a_task_to_be_processed_ends_with_the_commit(own, tasks, no_ticks):
    tasks.put("data", id="a")
    task = tasks.take(0)
    waiting = Background(tasks.wait, "a")
    until(lambda: own.execute("SELECT count(*) FROM pressure_mp.watchers").fetchone()[0])
    own.rollback()
    task.ack(connection=own)
    own.commit()
    assert waiting.result()[1] is True


def test_a_task_that_is_processed_while_this_process_begins_to_listen_is_gone(
    tasks, url, monkeypatch
):
    from pressure_mp.engines.postgres.listener import Listener

    start = Listener.start

    def start_late(listener):
        tasks.ack("a")
        return start(listener)

    monkeypatch.setattr(Listener, "start", start_late)
    tasks.put("data", id="a")
    tasks.take(0)
    with pytest.raises(TaskNotFound):
        TaskQueue(tasks.name, url=f"{url}?application_name=another").wait("a")
