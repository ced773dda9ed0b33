"""Programs that put in the background, and end or are killed at a bad moment."""

from __future__ import annotations

import os
import signal


def report_and_die(connection, jobs, results, number):
    """Take a job, put its results, acknowledge it, and be killed."""
    jobs.get()
    for result in range(number):
        results.put((result, b"x" * 1000))
    jobs.task_done()
    connection.send("done")
    os.kill(os.getpid(), signal.SIGKILL)


def put_all(queue, items):
    """Put them, and end."""
    for item in items:
        queue.put(item)


def put_one(connection, queue, item):
    """Put it, and end."""
    queue.put(item)


def do_nothing(connection, *given):
    """End."""


def put_results(job):
    """What a worker of a pool does; each has the queue as ``results``."""
    for number in range(1000):
        results.put((job, number, b"x" * 1000))
    return job


def get_ready(queue):
    """Initialize a worker of a pool."""
    global results
    results = queue


def put_in_turns(connection, one, other, number):
    """Put into two queues, always first into the one."""
    for item in range(number):
        one.put(item)
        other.put(item)
    one.flush()
    other.flush()
    connection.send("put")
    connection.recv()
