"""An item of a JoinableQueue that is acknowledged in a transaction of its consumer's is dealt with
if and only if that commits."""

from __future__ import annotations

import psycopg
import pytest
from callers import Asyncio
from sessions import ask, bind

from pressure_mp import JoinableQueue, LateTaskDoneWarning, TaskDoneError
from pressure_mp.engines.contract.items import Requeue
from pressure_mp.identity.processes import incarnation

REFUSED = psycopg.errors.ObjectNotInPrerequisiteState


@pytest.fixture
def url(postgres):
    return postgres.limited_url


@pytest.fixture
def q(url, name):
    found = JoinableQueue(name=name, url=url)
    yield found
    with pytest.raises(TaskDoneError, match="too many times"):
        found.task_done()  # this process knows that it has nothing left
    found.delete()


def take_away(q):
    """What this process has goes back to the queue, as if it had been silent for too long."""
    ask(bind(q.url, q.name), Requeue(incarnation()))


def test_items_are_dealt_with_when_the_transaction_commits(caller, url, q):
    mine, connection = caller.queues.JoinableQueue(name=q.name, url=url), caller.connect(url)

    async def consume_async():
        await mine.get()
        await mine.get()
        await mine.task_done(connection=connection)
        await mine.task_done(connection=connection)
        with pytest.raises(TaskDoneError, match="no such item in flight"):
            await mine.task_done(connection=connection)

    def consume():
        mine.get()
        mine.get()
        mine.task_done(connection=connection)
        mine.task_done(connection=connection)
        with pytest.raises(TaskDoneError, match="no such item in flight"):
            mine.task_done(connection=connection)

    q.put_many([1, 2])
    caller.do(consume_async() if isinstance(caller, Asyncio) else consume())
    assert (q.unfinished_tasks, q.stats().in_flight) == (2, 2)
    caller.do(connection.commit())
    assert (q.unfinished_tasks, q.stats().in_flight) == (0, 0)
    q.join()
    caller.do(connection.close())


def test_after_a_rollback_it_is_the_next_to_be_acknowledged(own, q):
    q.put_many([1, 2])
    q.get()
    q.task_done(connection=own)
    own.rollback()
    q.get()
    q.task_done(connection=own)
    own.commit()
    assert (q.unfinished_tasks, q.stats().in_flight) == (1, 1)
    q.task_done()  # of the second: that the first is dealt with is found out
    assert (q.unfinished_tasks, q.stats().in_flight) == (0, 0)


def test_a_task_done_in_another_transaction_acknowledges_the_next_item(own, url, q):
    with psycopg.connect(url) as other:
        q.put_many([1, 2, 3])
        q.get_many(3)
        q.task_done(connection=own)
        q.task_done(connection=other)
        own.commit()
        q.task_done(connection=own)
        other.commit()
    assert q.unfinished_tasks == 1
    own.commit()
    assert (q.unfinished_tasks, q.stats().in_flight) == (0, 0)


def test_a_task_done_of_an_item_taken_away_is_refused_at_once_or_by_the_commit(own, q):
    q.put("item")
    q.get()
    take_away(q)
    with pytest.raises(LateTaskDoneWarning):
        q.task_done(connection=own)
    q.get()
    q.task_done(connection=own)
    take_away(q)
    with pytest.raises(REFUSED, match=f'in queue "{q.name}".*went back to the queue'):
        own.commit()
    q.get_nowait()
    q.task_done()
