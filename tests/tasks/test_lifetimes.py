"""A queue of tasks without a name lives as long as the processes that use it."""

from __future__ import annotations

import multiprocessing

import pytest
from brokers.servers import Server
from programs import tasks as programs
from waiting import lasting

from pressure_mp import QueueDoesNotExistError, TaskQueue


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_anonymous_queue_of_tasks_is_shared_and_leaves_nothing_behind(method, server):
    queue = TaskQueue(url=server.url)
    queue.put("data", tube="a")
    process = multiprocessing.get_context(method).Process(
        target=programs.take_and_wait, args=(queue, "end")
    )
    process.start()
    process.join()
    task = queue.take(0)
    assert task.deliveries == 2
    queue.close()
    with server.client() as client:
        assert lasting(client, f"*{queue.name}*") != []  # a handle was pickled, a child forked
    task.ack()


def test_an_anonymous_queue_of_tasks_goes_with_its_last_handle(server):
    with TaskQueue(url=server.url) as queue:
        queue.put_many(range(10), tube="a")
        queue.take_many(3)
    with server.client() as client:
        assert lasting(client, f"*{queue.name}*") == []
    with pytest.raises(QueueDoesNotExistError):
        TaskQueue.attach(queue.name, url=server.url)


def test_a_queue_of_tasks_is_on_a_disk_that_confirms_it(name):
    server = Server("valkey", ("--appendonly", "yes"))
    try:
        queue = TaskQueue(name, url=server.start().url, durability="fsync")
        queue.put(1)
        with queue.take(0) as task:
            pass
        assert task.state == "X"
        queue.ack_many([])
        queue.shutdown()
    finally:
        server.stop()
