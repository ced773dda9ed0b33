"""A server without memory refuses what needs more of it, and does what makes space."""

from __future__ import annotations

import engines
import pytest
from brokers.servers import Server
from engines import Can

from pressure_mp import (
    BrokerFull,
    Empty,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    ShutDown,
    TaskQueue,
)


@pytest.fixture(params=engines.kinds(Can.PROTOCOL))
def server(request):
    server = Server(request.param, ("--maxmemory-policy", "noeviction")).start()
    yield server
    server.stop()


@pytest.fixture
def fill(server):
    """From now on the server has no memory left, whatever is removed."""

    def fill():
        with server.client() as client:
            client.config_set("maxmemory", 1)

    return fill


@pytest.mark.parametrize("reconnect", [10, 0])
def test_tasks_are_taken_and_ended_when_the_server_is_full(server, fill, reconnect):
    tasks = TaskQueue("jobs", url=server.url, reconnect=reconnect)
    for number in range(9):
        tasks.put(number)
    first, second, third, fourth = [tasks.take() for _ in range(4)]
    fill()
    with pytest.raises(BrokerFull):
        tasks.put("more")
    first.ack()
    second.bury()
    third.release()
    fourth.touch()
    again = TaskQueue.attach("jobs", url=server.url, reconnect=reconnect)
    taken = again.take_many(9)
    assert {task.data for task in taken} == {4, 5, 6, 7, 8, 2}
    tasks.ack_many(taken)
    assert sum(tasks.stats().counts.values()) == 2  # one is buried, and one still taken
    tasks.truncate()
    assert sum(tasks.stats().counts.values()) == 0
    tasks.shutdown()


@pytest.mark.parametrize("kind", [Queue, LifoQueue, PriorityQueue])
def test_items_are_got_and_purged_and_a_queue_is_shut_down_when_the_server_is_full(
    server, fill, kind
):
    queue = kind(name="jobs", url=server.url)
    for number in range(3):
        queue.put(number)
    fill()
    with pytest.raises(BrokerFull):
        queue.put(3)
    assert queue.get() in (0, 2)
    assert queue.purge() == 2
    with pytest.raises(Empty):
        queue.get_nowait()
    queue.shutdown()
    with pytest.raises(ShutDown):
        queue.get()
    queue.delete()


def test_items_are_acknowledged_when_the_server_is_full(server, fill):
    queue = JoinableQueue(name="jobs", url=server.url)
    queue.put_many([1, 2])
    fill()
    for _ in range(2):
        queue.get()
        queue.task_done()
    queue.join()
