"""Calls that wait for a task, or for the end of one."""

from __future__ import annotations

import threading
import time

import pytest
from brokers.servers import Server
from waiting import HOURS, LIMIT, Background, blocked, parks, until, waiters

from pressure_mp import Empty, QueueDoesNotExistError, ShutDown, TaskNotFound, TaskQueue


def parked(number, queue, **options):
    """So many takers that wait."""
    return [waits(queue.take, LIMIT, **options) for _ in range(number)]


def waits(call, *args, **options):
    """A call that waits."""
    waiting = Background(call, *args, **options)
    until(lambda: parks(waiting))
    return waiting


#: The tube of which takers take, and that into which tasks are put.
TUBES = [(None, None), (None, "a"), ("a", "a")]


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize(("tube", "into"), TUBES)
def test_a_waiting_taker_gets_a_task_that_is_put(tube, into, queue):
    (taker,) = parked(1, queue, tube=tube)
    queue.put(1, tube=into)
    assert taker.result().data == 1


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize(("tube", "into"), TUBES)
def test_many_takers_share_tasks_that_are_put_at_once(tube, into, queue):
    takers = parked(5, queue, tube=tube)
    queue.put_many(range(5), tube=into)
    assert sorted(taker.result().data for taker in takers) == list(range(5))


@pytest.mark.usefixtures("no_ticks")
def test_a_take_that_acknowledges_a_task_and_waits_gets_the_next_put(queue):
    queue.put(1)
    done = queue.take(0)
    taker = Background(queue.take, ack=done)
    until(lambda: parks(taker))
    queue.put(2)
    assert taker.result().data == 2
    assert done.state == "X"


@pytest.mark.usefixtures("no_ticks")
def test_a_take_that_acknowledges_a_task_and_waits_gets_the_next_task_that_is_due(server, name):
    queue = TaskQueue(name, url=server.url)
    queue.put(1)
    done = queue.take(0)
    queue.put(2, delay=0.2)
    assert queue.take(ack=done).data == 2


def test_a_taker_of_a_tube_is_not_served_with_another_tube(queue):
    (other,) = parked(1, queue, tube="b")
    (taker,) = parked(1, queue, tube="a")
    queue.put(1, tube="a")
    assert taker.result().data == 1
    assert other.is_alive()
    queue.put(2, tube="b")
    assert other.result().data == 2


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("tube", [None, "a"])
def test_a_waiting_taker_gets_a_task_that_becomes_ready_by_itself(tube, queue):
    (taker,) = parked(1, queue, tube=tube)
    began = time.monotonic()
    queue.put(1, delay=0.2, tube="a")
    task = taker.result()
    assert taker.ended_at - began >= 0.2
    began = time.monotonic()
    task.release(delay=0.2)
    assert queue.take(LIMIT, tube=tube, ttr=0.2).id == task.id
    assert time.monotonic() - began >= 0.2
    assert queue.take(LIMIT, tube=tube).id == task.id
    assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize("how", ["release", "kick", "snatch", "restart", "move"])
def test_a_waiting_taker_gets_a_task_that_is_made_ready(how, queue):
    id = queue.put(1, tube="b")
    task = queue.take(0)
    (taker,) = parked(1, queue, tube="a" if how == "move" else "b")
    if how == "kick":
        task.bury()
        queue.kick_many()
    elif how == "restart":
        queue.release(id, delay=60)
        queue.restart(id)
    elif how == "move":
        queue.move(id, "a")
    else:
        getattr(queue, how)(id)
    assert taker.result().id == id


def test_the_time_to_wait_is_kept(queue):
    for tube in (None, "a"):
        began = time.monotonic()
        with pytest.raises(Empty, match=r"still after 0\.3 s"):
            queue.take(0.3, tube=tube)
        assert time.monotonic() - began >= 0.3


def test_waiting_takes_are_told_of_a_shutdown(queue):
    takers = parked(3, queue) + parked(2, queue, tube="a")
    queue.shutdown()
    for taker in takers:
        with pytest.raises(ShutDown):
            taker.result()


def test_waiting_takes_are_told_of_a_deletion(queue):
    takers = parked(1, queue) + parked(1, queue, tube="a")
    queue.delete()
    for taker in takers:
        with pytest.raises(QueueDoesNotExistError):
            taker.result()


def test_a_take_is_woken_at_a_queue_made_anew_after_takes_waited_at_the_deleted_one(
    url, name, request
):
    queue = TaskQueue(name, url=url, lease=HOURS)
    takers = parked(2, queue)
    queue.delete()
    for taker in takers:
        with pytest.raises(QueueDoesNotExistError):
            taker.result()
    request.getfixturevalue("no_ticks")
    anew = TaskQueue(name, url=url, lease=HOURS)
    (taker,) = parked(1, anew)
    anew.put("task")
    assert taker.result().data == "task"
    anew.delete()


def test_a_wait_ends_when_the_task_is_processed(queue):
    id = queue.put(1)
    waiting = [waits(queue.wait, id) for _ in range(2)]
    task = queue.take(0)
    task.ack()
    for one in waiting:
        seen, processed = one.result()
        assert (seen.id, seen.data, seen.state, processed) == (id, 1, "X", True)
    with pytest.raises(TaskNotFound):
        queue.wait(id)


@pytest.mark.parametrize(
    ("how", "state"), [("bury", "B"), ("kill", "X"), ("drop", "X"), ("nothing", "T")]
)
def test_a_wait_ends_without_the_task_being_processed(how, state, queue):
    id = queue.put(1)
    task = queue.take(0)
    waiting = waits(queue.wait, id, 0.3 if how == "nothing" else None)
    if how == "bury":
        task.bury()
    elif how == "kill":
        queue.kill(id)
    elif how == "drop":
        task.release(ttl=0.1)
    seen, processed = waiting.result()
    assert (seen.state, processed) == (state, False)


def test_a_put_can_wait_until_the_task_is_processed(queue):
    putting = Background(queue.put, "data", wait=LIMIT, tube="a")
    task = queue.take(LIMIT)
    task.ack()
    seen, processed = putting.result()
    assert (seen.id, seen.data, seen.tube, seen.state, processed) == (
        task.id,
        "data",
        "a",
        "X",
        True,
    )
    seen, processed = queue.put("nobody", wait=0.05)
    assert (seen.state, processed) == ("R", False)
    with pytest.raises(Empty):
        queue.take(0.05, tube="x")


def test_a_call_that_waited_returns_the_data_as_the_worker_changed_it(url, name):
    queue = TaskQueue(name, url=url, keep=True)
    waiting = Background(queue.put, 3, wait=LIMIT)
    task = queue.take()
    also = waits(queue.wait, task.id)
    task.ack(update=9)
    for one in (waiting, also):
        found, processed = one.result()
        assert (found.data, found.state, processed) == (9, "D", True)


@pytest.fixture
def sleepy_server():
    """A server that looks once a second whether it is to end a wait; most look ten times."""
    server = Server("valkey", ("--hz", "1"))
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("tube", [None, "a"])
def test_a_delayed_task_is_taken_when_it_is_due(sleepy_server, name, tube):
    queue = TaskQueue(name, url=sleepy_server.url)
    late = []
    for delay in (0.04, 0.13, 0.22, 0.17, 0.06):
        (taker,) = parked(1, queue, tube=tube)
        due = time.monotonic() + delay
        queue.put(1, tube="a", delay=delay)
        taker.result().ack()
        late.append(taker.ended_at - due)
    assert min(late) > 0


def test_a_kept_task_can_be_waited_for_afterwards(url, name):
    queue = TaskQueue(name, url=url, keep=True)
    seen = []
    worker = threading.Thread(target=lambda: queue.take().ack())
    worker.start()
    seen, processed = queue.put(1, wait=LIMIT)
    worker.join()
    assert (seen.state, processed) == ("D", True)
    assert queue.wait(seen.id)[1]
    queue.delete()


def test_a_taker_that_is_cut_off_while_it_waits_goes_on(server, name):
    queue = TaskQueue(name, url=server.url)
    with server.client() as client:
        before = blocked(client)
        takers = [Background(queue.take, LIMIT), Background(queue.take, LIMIT, tube="a")]
        until(lambda: blocked(client) == before + 2)
        for waiter in waiters(client):
            client.client_kill_filter(_id=waiter)
        queue.put(1)
        queue.put(2, tube="a")
        assert {taker.result().data for taker in takers} == {1, 2}
    queue.delete()


@pytest.mark.usefixtures("no_ticks", "no_looks")
def test_a_put_into_a_tube_does_not_wake_takes_of_other_tubes(own_server, name):
    queue = TaskQueue(name, url=own_server.url, lease=HOURS)
    queue.put("the scripts are loaded", tube="loud")
    queue.take(0).ack()
    with own_server.client() as client:
        waiting = [Background(queue.take, HOURS, tube="quiet") for _ in range(5)]
        until(lambda: blocked(client) == 5)
        client.config_resetstat()
        for number in range(50):
            queue.put(number, tube="loud")
            queue.take(0, tube="loud")
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == 100, "a waiting take woke"
        queue.put_many(range(5), tube="quiet")
        assert sorted(taker.result().data for taker in waiting) == list(range(5))
    queue.delete()
