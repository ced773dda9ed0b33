"""Programs that the tests of tasks start, kill and stop."""

from __future__ import annotations

import signal
import time

from pressure_mp import Empty, TaskError, TaskQueue


def take_and_wait(queue, what="", connection=None):
    if what == "look":  # wait for longer than the lease
        try:
            queue.take(2, tube="nothing")
        except Empty:
            return
    if what == "tube":
        queue.take(tube="nothing")
        return
    tasks = queue.take_many(10)
    if what == "end":
        return
    if what == "ack when told":
        queue.take(30, tube="told").ack()
        try:
            tasks[0].ack()
        except TaskError as error:
            connection.send(type(error).__name__)
        else:
            connection.send("acknowledged")
        return
    while True:
        signal.pause()
        time.sleep(1)


def take_one(queue, connection):
    """Wait for a task, say which it was, and acknowledge it."""
    task = queue.take()
    connection.send((task.data, task.deliveries))
    task.ack()


def take_each_when_told(queue, connection):
    """Take one task after the other: say which it is, and acknowledge it when told."""
    while True:
        with queue.take() as task:
            connection.send(task.data)
            connection.recv()


def configure(url, name, options):
    TaskQueue(name, url=url).configure(**options)


def hold_a_batch(queue, connection):
    """Say which tasks came in a batch, and do nothing with them."""

    @queue.batch(size=3, wait=3600)
    def handle(tasks):
        connection.send(sorted(task.data for task in tasks))
        time.sleep(3600)

    queue.run()


def put_one(queue, data):
    queue.put(data)


def take_all(queue):
    """Take one task after the other."""
    while True:
        queue.take()


def cancel(url, name, id):
    assert TaskQueue(name, url=url).cancel(id)


def delete(url, name):
    TaskQueue(name, url=url).delete()


def print_all(queue):
    """Run a handler."""
    queue.run(print)


def fail(data):
    """Run as a handler in a process of an executor."""
    raise ValueError(f"no {data}")


def tell(queue, connection=None):
    """Tell of a progress for as long as the task stays here; say which error that ended with."""
    task = queue.take()
    try:
        while True:
            task.progress("halfway")
            time.sleep(0.01)
    except TaskError as error:
        connection.send(type(error).__name__)
