"""Takers that are killed, clients that are killed, connections that break: and results."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest
from brokers.lossy import LossyProxy
from waiting import until

from pressure_mp import TaskQueue

#: Seconds: a lease that no test waits for the end of.
LONG = 3600
#: A value that is kept in chunks.
LARGE = bytes(range(256)) * 10_000


@pytest.fixture
def queue(broker, name):
    queue = TaskQueue(name, url=broker.url, ttr=LONG, lease=LONG)
    yield queue
    queue.delete()


def start(target, *args):
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    process.start()
    return process


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def take(queue, is_acked, connection):
    """Takes a task, perhaps acknowledges it, and waits to be killed."""
    task = queue.take()
    if is_acked:
        task.ack(result="the first one's")
    connection.send(task.id)
    signal.pause()


@pytest.mark.parametrize("is_acked", [False, True])
def test_the_result_is_that_of_the_take_that_was_acknowledged(is_acked, queue):
    with queue.inbox() as inbox:
        id = queue.put("data", inbox=inbox, result_ttl=LONG)
        ours, theirs = multiprocessing.Pipe()
        process = start(take, queue, is_acked, theirs)
        assert ours.recv() == id
        kill(process)
        if not is_acked:
            queue.take(60).ack(result="the second one's")
        expected = "the first one's" if is_acked else "the second one's"
        assert queue.result(id, 60) == expected
        heard = []
        while not heard or heard[-1].event == "taken":
            heard += inbox.take(60)
        takes = [event.deliveries for event in heard[:-1]]
        assert takes == ([1] if is_acked else [1, 2])
        assert heard[-1].result.get() == expected


def put_with_inbox(queue, connection):
    """Puts tasks whose results are for it, and waits to be killed."""
    inbox = queue.inbox(lease=1)
    connection.send(queue.put_many(range(3), inbox=inbox))
    signal.pause()


def test_nothing_stays_of_a_client_that_was_killed(queue, broker):
    ours, theirs = multiprocessing.Pipe()
    process = start(put_with_inbox, queue, theirs)
    ids = ours.recv()
    early, late, _ = queue.take_many(3)
    early.ack(result=LARGE)
    assert sum(broker.results(queue.name)) > 3
    kill(process)

    def is_gone():
        queue.qsize()  # the next call removes tasks and results whose time is over
        return not any(broker.results(queue.name))

    until(is_gone)
    late.ack(result=LARGE)  # the client that asked for it is gone
    queue.kill(ids[2])
    until(is_gone)


@pytest.fixture
def proxy(broker):
    proxy = LossyProxy(broker.port)
    yield proxy
    proxy.stop()


@pytest.mark.parametrize("value", ["small", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("with_next", [False, True])
def test_a_result_whose_reply_is_lost_is_told_once(queue, proxy, broker, value, with_next):
    lossy = TaskQueue(queue.name, url=broker.url_at(proxy.port), lease=LONG)
    with queue.inbox() as inbox:
        id, next_id = queue.put_many(range(2), inbox=inbox, result_ttl=LONG)
        task = lossy.take(0)
        proxy.lose(2)
        if with_next:
            task.result = value
            assert lossy.take(0, ack=task).id == next_id
        else:
            task.ack(result=value)
        assert proxy.lost == 2
        assert queue.result(id, 0) == value
        heard = [(event.id, event.event) for event in inbox.take(0)]
        assert heard == [(id, "taken"), (id, "processed"), *[(next_id, "taken")] * with_next]


def test_an_inbox_tells_all_of_it_over_connections_that_break(queue, proxy, broker):
    lossy = TaskQueue(queue.name, url=broker.url_at(proxy.port), lease=LONG)
    ids = queue.put_many(range(20), result_ttl=LONG)
    for task in queue.take_many(20):
        task.ack(result=task.data)
    proxy.lose(3)
    assert {done.id: done.get() for done in lossy.results(ids)} == dict(
        zip(ids, range(20), strict=True)
    )
    assert proxy.lost == 3
