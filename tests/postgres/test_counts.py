"""The number of the ready tasks is told from counts, without the queue's lock."""

from __future__ import annotations

import psycopg
import pytest
from waiting import until

from pressure_mp import TaskQueue


@pytest.fixture
def tasks(postgres, name):
    found = TaskQueue(name, url=postgres.limited_url, per_key=1)
    yield found
    found.delete()


def test_the_number_is_told_while_another_session_has_the_lock(postgres, tasks):
    tasks.put_many(range(3))
    tasks.take()
    with psycopg.connect(postgres.url) as connection:
        slots = "SELECT slot FROM pressure_mp.queues WHERE name = %s"
        ((slot,),) = connection.execute(slots, [tasks.name]).fetchall()
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [slot])
        assert tasks.qsize() == 2


def test_the_number_follows_all_transitions_of_tasks_with_and_without_tubes_and_keys(tasks):
    def check(number, in_tube):
        assert (tasks.qsize(), tasks.qsize("tube")) == (number, in_tube)
        ready = tasks.list("ready")
        assert (len(ready), sum(one.tube == "tube" for one in ready)) == (number, in_tube)

    check(0, 0)
    tasks.put_many("abc", ids="abc", tube="tube", key="key")
    tasks.put_many("def", ids="def")
    check(6, 3)
    one = tasks.take()
    check(5, 2)
    one.release(tube="tube")
    check(6, 3)
    tasks.kill("b")
    check(5, 2)
    for task in tasks.take_many(5):
        task.release(error="why")
    check(5, 2)
    tasks.take_many(1, tube="tube")[0].bury()
    check(4, 1)
    tasks.kick_many(1)
    check(5, 2)
    tasks.ack_many(tasks.take_many(2, tube="tube"))
    tasks.truncate()
    check(0, 0)


def test_a_task_counts_when_its_delay_is_over_though_no_other_call_is_made(tasks):
    tasks.put(1, delay=0.05, tube="tube")
    until(lambda: tasks.qsize("tube"))
    assert (tasks.qsize(), tasks.qsize("tube"), tasks.qsize("other")) == (1, 1, 0)
