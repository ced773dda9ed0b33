"""Consumers that read ahead unasked, and are stopped or killed."""

from __future__ import annotations

import os
import signal

import inside
from waiting import HOURS

from pressure_mp.buffering import window


def get_all(connection, q, most, report):
    """Get so many items one after the other, and note the last that came in ``report``."""
    connection.send("begins")
    for _ in range(most):
        report.value = q.get()
    connection.send("got all")
    if connection.recv() == "close":
        q.close()


def get_until_none(connection, q):
    """Get all that comes before the first None, and say what it was."""
    connection.send("begins")
    connection.send(list(iter(q.get, None)))


def get_and_be_killed(connection, q, is_behind=False):
    """Be killed in the midst of what was read ahead, or of what was asked for meanwhile; tell what
    was handed out last."""
    window.KEPT = HOURS  # however long it takes until it is killed
    last = q.get()
    while inside.read_ahead(q) < 50:
        last = q.get()
    for _ in range(20 + is_behind * inside.read_ahead(q)):
        last = q.get()
    connection.send(last)
    os.kill(os.getpid(), signal.SIGKILL)


def get_some_and_stop(connection, q, number, more):
    """Get so many or more, until some are read ahead, and say how many; be stopped, and then get
    more; send these."""
    got = 0
    while got < number or inside.read_ahead(q) < 2:
        q.get()
        got += 1
    connection.send(got)
    os.kill(os.getpid(), signal.SIGSTOP)
    connection.send([q.get(timeout=more) for _ in range(3)])


def get_when_told(connection, q):
    """Get an item whenever asked, and say which."""
    while connection.recv() == "get":
        connection.send(q.get())


#: A program that gets while it ends, when the package has said farewell to the broker. It is given
#: its key, and its queue.
GET_AT_THE_END = """
import atexit, sys

found = []


def get_more():
    found.extend(q.get() for _ in range(100))
    print(found, end="")


atexit.register(get_more)  # before the package, and so called after it
import multiprocessing.process, pickle

multiprocessing.process.current_process().authkey = pickle.load(sys.stdin.buffer)
q = pickle.load(sys.stdin.buffer)
found.extend(q.get() for _ in range(50))
"""
