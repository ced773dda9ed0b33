"""Who waits for a task, or for the end of one."""

from __future__ import annotations

import threading
import time

import pytest
from servers import Server
from waiting import Background, blocked, until, waiters

from pressure_mp import Empty, QueueDoesNotExistError, ShutDown, TaskNotFound, TaskQueue

#: Seconds that are more than enough on a busy machine, and less than one tick.
SOON = 0.6


@pytest.fixture
def queue(url, name):
    queue = TaskQueue(name, url=url)
    yield queue
    if queue.exists():
        queue.delete()


def parked(number, queue, **options):
    """So many takers that wait; without looking into a server."""
    takers = [Background(queue.take, 10, **options) for _ in range(number)]
    time.sleep(0.1)
    assert all(taker.is_alive() for taker in takers)
    return takers


#: The tube of which takers take, and that into which tasks are put.
TUBES = [(None, None), (None, "a"), ("a", "a")]


@pytest.mark.parametrize(("tube", "into"), TUBES)
def test_a_taker_that_waits_gets_what_is_put(tube, into, queue):
    (taker,) = parked(1, queue, tube=tube)
    began = time.monotonic()
    queue.put(1, tube=into)
    assert taker.result().data == 1
    assert taker.ended_at - began < SOON


@pytest.mark.parametrize(("tube", "into"), TUBES)
def test_many_takers_share_what_is_put_at_once(tube, into, queue):
    takers = parked(5, queue, tube=tube)
    began = time.monotonic()
    queue.put_many(range(5), tube=into)
    assert sorted(taker.result().data for taker in takers) == list(range(5))
    assert max(taker.ended_at for taker in takers) - began < SOON


def test_a_taker_of_a_tube_is_not_served_with_another_tube(queue):
    (other,) = parked(1, queue, tube="b")
    (taker,) = parked(1, queue, tube="a")
    queue.put(1, tube="a")
    assert taker.result().data == 1
    assert other.is_alive()
    queue.put(2, tube="b")
    assert other.result().data == 2


@pytest.mark.parametrize("tube", [None, "a"])
def test_a_taker_that_waits_gets_what_becomes_ready_by_itself(tube, queue):
    (taker,) = parked(1, queue, tube=tube)
    began = time.monotonic()
    queue.put(1, delay=0.2, tube="a")
    task = taker.result()
    assert 0.2 <= taker.ended_at - began < 0.2 + SOON
    began = time.monotonic()
    task.release(delay=0.2)
    assert queue.take(10, tube=tube, ttr=0.2).id == task.id
    assert 0.2 <= time.monotonic() - began < 0.2 + SOON
    assert queue.take(10, tube=tube).id == task.id
    assert 0.4 <= time.monotonic() - began < 0.4 + 2 * SOON


@pytest.mark.parametrize("how", ["release", "kick", "snatch", "restart", "move"])
def test_a_taker_that_waits_gets_what_is_made_ready(how, queue):
    id = queue.put(1, tube="b")
    task = queue.take(0)
    (taker,) = parked(1, queue, tube="a" if how == "move" else "b")
    if how == "kick":
        task.bury()
        queue.kick()
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
        assert 0.3 <= time.monotonic() - began < 0.3 + SOON


def test_those_who_wait_are_told_of_a_shutdown(queue):
    takers = parked(3, queue) + parked(2, queue, tube="a")
    queue.shutdown()
    for taker in takers:
        with pytest.raises(ShutDown):
            taker.result()


def test_those_who_wait_are_told_of_a_deletion(queue):
    takers = parked(1, queue) + parked(1, queue, tube="a")
    queue.delete()
    for taker in takers:
        with pytest.raises(QueueDoesNotExistError):
            taker.result()


def test_a_wait_ends_when_the_task_is_processed(queue):
    id = queue.put(1)
    waiting = [Background(queue.wait, id) for _ in range(2)]
    time.sleep(0.1)
    task = queue.take(0)
    began = time.monotonic()
    task.ack()
    for one in waiting:
        seen, processed = one.result()
        assert (seen.id, seen.data, seen.state, processed) == (id, 1, "X", True)
        assert one.ended_at - began < SOON
    with pytest.raises(TaskNotFound):
        queue.wait(id)


@pytest.mark.parametrize(
    ("how", "state"), [("bury", "B"), ("kill", "X"), ("drop", "X"), ("nothing", "T")]
)
def test_a_wait_ends_without_the_task_being_processed(how, state, queue):
    id = queue.put(1, ttl=1 if how == "drop" else None)
    waiting = Background(queue.wait, id, 0.8 if how == "nothing" else None)
    time.sleep(0.1)
    if how == "bury":
        queue.take(0).bury()
    elif how == "kill":
        queue.kill(id)
    elif how == "nothing":
        queue.take(0)
    seen, processed = waiting.result()
    assert (seen.state, processed) == (state, False)


def test_a_put_can_wait_until_the_task_is_processed(queue):
    putting = Background(queue.put, "data", wait=10, tube="a")
    task = queue.take(10)
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


def test_who_waited_sees_what_the_worker_made_of_the_data(url, name):
    queue = TaskQueue(name, url=url, keep=True)
    waiting = Background(queue.put, 3, wait=10)
    task = queue.take()
    also = Background(queue.wait, task.id)
    time.sleep(0.1)
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
    assert sorted(late)[len(late) // 2] < 0.1
    assert min(late) > 0


def test_what_is_kept_can_be_waited_for_afterwards(url, name):
    queue = TaskQueue(name, url=url, keep=True)
    seen = []
    worker = threading.Thread(target=lambda: queue.take().ack())
    worker.start()
    seen, processed = queue.put(1, wait=10)
    worker.join()
    assert (seen.state, processed) == ("D", True)
    assert queue.wait(seen.id)[1]
    queue.delete()


def test_a_taker_that_is_cut_off_while_it_waits_goes_on(server, name):
    queue = TaskQueue(name, url=server.url)
    with server.client() as client:
        before = blocked(client)
        takers = [Background(queue.take, 10), Background(queue.take, 10, tube="a")]
        until(lambda: blocked(client) == before + 2)
        for waiter in waiters(client):
            client.client_kill_filter(_id=waiter)
        queue.put(1)
        queue.put(2, tube="a")
        assert {taker.result().data for taker in takers} == {1, 2}
    queue.delete()


def test_a_tube_that_is_fed_does_not_wake_those_who_wait_for_another(server, name):
    queue = TaskQueue(name, url=server.url)
    with server.client() as client:
        before = blocked(client)
        waiting = [Background(queue.take, 5, tube="quiet") for _ in range(5)]
        until(lambda: blocked(client) == before + 5)
        client.config_resetstat()
        for number in range(50):
            queue.put(number, tube="loud")
            queue.take(0, tube="loud")
        calls = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        assert calls < 100 + 60  # the waiters looked by themselves at most, about once a second
        queue.put_many(range(5), tube="quiet")
        assert sorted(taker.result().data for taker in waiting) == list(range(5))
    queue.delete()
