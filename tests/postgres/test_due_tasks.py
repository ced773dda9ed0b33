"""It is noted behind which time all tasks are due. What becomes due before that is not missed."""

from __future__ import annotations

import pytest
from waiting import LIMIT, until

from pressure_mp import Empty, TaskQueue

SOON = 0.2  #: seconds, of the 60 that the queue's ``ttr`` is


def look(q):
    """A take in vain notes when the first task is due."""
    with pytest.raises(Empty):
        q.take(timeout=0)


def put_with_a_delay(q):
    look(q)
    q.put("it", delay=SOON)


def take_with_a_ttr(q):
    look(q)
    q.put("it")
    q.take(ttr=SOON)


def release_with_a_delay(q):
    q.put("it")
    task = q.take()
    look(q)
    task.release(delay=SOON)


@pytest.mark.parametrize("make_due", [put_with_a_delay, take_with_a_ttr, release_with_a_delay])
def test_a_task_that_is_due_before_all_others_is_ready_in_time(postgres, name, make_due):
    q = TaskQueue(name, ttr=60, url=postgres.limited_url)
    make_due(q)
    look(q)
    assert q.take(timeout=LIMIT).data == "it"


def test_a_task_whose_ttl_ends_before_all_others_are_due_is_dropped_in_time(postgres, name):
    q = TaskQueue(name, ttr=60, url=postgres.limited_url)
    look(q)
    q.put("it", ttl=SOON)
    assert q.qsize() == 1
    until(lambda: q.qsize() == 0)


def test_many_results_end_in_time(postgres, name):
    q = TaskQueue(name, url=postgres.limited_url)
    q.put_many(range(250), result_ttl=SOON)
    while q.qsize():
        q.ack_many(q.take_many(250))
    id_of = postgres.execute(f"SELECT id FROM pressure_mp.queues WHERE name = '{name}'")[0][0]

    def is_empty():
        q.qsize()
        kept = f"SELECT count(*) FROM pressure_mp.results WHERE queue = {id_of}"
        return postgres.execute(kept)[0][0] == 0

    until(is_empty)
