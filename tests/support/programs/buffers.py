"""Programs with buffers, which tests end in every way."""

from __future__ import annotations

import os
import signal
import time

import inside


def put_and_end(connection, q, items, act="return"):
    """Put items and end: the items in the buffer are sent first, or were given up."""
    if act == "cancel":
        q.cancel_join_thread()
    for item in items:
        q.put(item)
    connection.send("put")
    if act == "raise":
        raise SystemExit(1)
    if act == "kill":
        connection.recv()
        os.kill(os.getpid(), signal.SIGKILL)


def get_and_act(connection, q, number, act):
    """Get items, say which, and then end in some way when told to."""
    connection.send([q.get() for _ in range(number)])
    connection.recv()
    if act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif act == "close":
        q.close()
        connection.send("closed")
        connection.recv()


def get_and_tell(connection, q, number):
    """Get items, say which, and then, whenever asked, how many wait in the buffers."""
    connection.send([q.get() for _ in range(number)])
    while connection.recv() == "how many":
        connection.send(inside.buffered(q))


def consume(connection, q, pause):
    """Say each item that comes, at some pace."""
    for item in q:
        connection.send(item)
        time.sleep(pause)
    connection.send(None)


def fork_with_a_full_buffer(connection, q):
    """Put what cannot be sent, and fork: each side says how much it has."""
    q.put("before")
    q.flush()
    connection.send("flushed")
    connection.recv()
    q.put("parent")
    child = os.fork()
    if child == 0:
        connection.send(inside.buffered(q))
        os._exit(0)
    os.waitpid(child, 0)
    connection.send(inside.buffered(q))
