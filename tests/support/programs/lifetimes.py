"""Programs that the tests of anonymous queues start, kill and watch."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pressure_mp


def echo(inbox, outbox):
    """Send back what comes in, until None."""
    for item in iter(inbox.get, None):
        outbox.put((os.getpid(), item))


def get_one(inbox, outbox):
    outbox.put(inbox.get())


def kill_oneself(queue):
    queue.put("used")
    queue.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def hand_over_and_die(to_parent, to_child):
    """A parent that is killed when its child runs, before the child used the queue."""
    queue = pressure_mp.Queue()
    context = multiprocessing.get_context("fork")
    child = context.Process(target=use_when_told, args=(queue, to_child))
    child.start()
    to_parent.send((child.pid, queue.name))
    to_parent.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def use_when_told(queue, connection):
    connection.send("up")
    connection.recv()
    queue.put("child")
    connection.send((queue.get(), queue.qsize()))
