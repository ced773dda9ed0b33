"""A process that waits at an anonymous queue of tasks has sent its take: the server does it as soon
as there is a task."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

import psutil
import pytest
from brokers.lossy import LossyProxy
from programs import tasks as programs
from waiting import LIMIT, Background, blocked, parks, until, waiters

from pressure_mp import Empty, ShutDown, TaskQueue
from pressure_mp.drivers import waits_end_when
from pressure_mp.effects import WaitEnded

#: Seconds: a lease that no test waits for the end of.
LONG = 3600


@pytest.fixture
def queue(own_server):
    queue = TaskQueue(url=own_server.url, lease=LONG)
    yield queue
    queue.close()


@pytest.fixture
def client(own_server):
    with own_server.client() as client:
        yield client


def waiting(queue, client):
    """A take that waits at the server."""
    before = blocked(client)
    take = Background(queue.take)
    until(lambda: blocked(client) == before + 1)
    return take


@pytest.fixture
def stopped(queue, client):
    """A process that was stopped while it waited for a task."""
    reader, writer = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=programs.take_one, args=(queue, writer)
    )
    process.start()
    until(lambda: blocked(client) == 1)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    yield process, reader
    process.kill()
    process.join()


def test_a_task_is_taken_for_a_waiting_process_before_the_process_hears_of_it(queue, stopped):
    process, reader = stopped
    queue.put("task")
    until(lambda: queue.stats().counts["T"] == 1)
    os.kill(process.pid, signal.SIGCONT)
    assert reader.recv() == ("task", 1)
    process.join()
    assert queue.stats().transitions == {"X-R": 1, "R-T": 1, "T-X": 1}


def test_a_task_given_to_a_process_that_is_killed_then_is_ready_for_the_next_take(queue, stopped):
    process, _ = stopped
    queue.put("task")
    until(lambda: queue.stats().counts["T"] == 1)
    process.kill()
    process.join()
    task = queue.take(LIMIT)
    assert (task.data, task.deliveries) == ("task", 2)


def test_they_are_served_in_the_order_in_which_they_came_however_often_they_looked(queue, client):
    takes = [waiting(queue, client) for _ in range(3)]
    before = calls(client)
    until(lambda: calls(client) >= before + 2 * len(takes))
    for number, take in enumerate(takes):
        queue.put(number)
        assert take.result().data == number


def calls(client):
    """How often scripts were called."""
    return client.info("commandstats")["cmdstat_evalsha"]["calls"]


def test_a_take_that_is_told_to_end_returns_a_task_or_leaves_it_ready(queue, client):
    for _ in range(3):
        told = threading.Event()

        def take(told=told):
            with waits_end_when(told.is_set):
                return queue.take()

        takes = [Background(take) for _ in range(8)]
        until(lambda takes=takes: all(map(parks, takes)))
        told.set()
        putting = Background(queue.put_many, range(8))
        taken = []
        for one in takes:
            try:
                taken.append(one.result())
            except WaitEnded:
                pass
        putting.result()
        left = queue.take_many(8) if len(taken) < 8 else []
        assert sorted(task.data for task in [*taken, *left]) == list(range(8))
        assert {task.deliveries for task in [*taken, *left]} == {1}
        queue.ack_many([*taken, *left])
        until(lambda: blocked(client) == 0)


def test_a_take_that_is_told_to_end_on_an_empty_queue_takes_no_later_task(queue, client):
    told = threading.Event()

    def take():
        with waits_end_when(told.is_set):
            return queue.take()

    take = Background(take)
    until(lambda: blocked(client) == 1)
    told.set()
    with pytest.raises(WaitEnded):
        take.result()
    queue.put(1)
    assert queue.take(0).deliveries == 1
    with pytest.raises(Empty):
        queue.take(0)


def test_waiting_takes_hear_that_the_queue_is_shut_down(queue, client):
    takes = [waiting(queue, client) for _ in range(3)]
    queue.shutdown()
    for take in takes:
        with pytest.raises(ShutDown):
            take.result()


def test_a_take_whose_connection_is_cut_while_it_waits_goes_on(queue, client):
    take = waiting(queue, client)
    client.client_kill_filter(_id=waiters(client)[0])
    queue.put("task")
    assert take.result().deliveries == 1


@pytest.mark.parametrize("replies", [1, 2])
def test_a_task_whose_news_was_lost_is_taken_once(own_server, client, replies):
    proxy = LossyProxy(own_server.port)
    queue = TaskQueue(url=proxy.url, lease=LONG)
    try:
        take = waiting(queue, client)
        key = bytes(multiprocessing.current_process().authkey)
        with TaskQueue.attach(queue.name, url=own_server.url, authkey=key) as other:
            proxy.lose(replies)
            other.put("task")
            task = take.result()
            assert (task.data, task.deliveries) == ("task", 1)
            assert other.stats().counts["T"] == 1
            assert proxy.lost == replies
            task.ack()
    finally:
        queue.close()
        proxy.stop()


def test_scripts_that_the_server_forgot_are_there_again(queue, client):
    take = waiting(queue, client)
    client.script_flush()
    queue.put("task")
    assert take.result().deliveries == 1


def test_a_delayed_task_comes_to_a_waiting_take(queue, client):
    take = waiting(queue, client)
    queue.put("task", delay=0.05)
    assert take.result().deliveries == 1
