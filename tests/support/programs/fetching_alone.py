"""Consumers that fetch ahead unasked, and are stopped or killed."""

from __future__ import annotations

import os
import signal


def get_all(connection, q, most, report):
    """Get so many items one after the other, and note the last that came in ``report``."""
    connection.send("begins")
    for _ in range(most):
        report.value = q.get()
    connection.send("got all")
    if connection.recv() == "close":
        q.close()


def get_and_be_killed(connection, q):
    """Be killed in the midst of what was fetched ahead; tell what was handed out last."""
    last = q.get()
    while len(q._incoming) < 50:
        last = q.get()
    for _ in range(20):
        last = q.get()
    connection.send(last)
    os.kill(os.getpid(), signal.SIGKILL)


def get_some_and_stop(connection, q, number, more):
    """Get so many, be stopped, and then get more: what those are."""
    for _ in range(number):
        q.get()
    connection.send(len(q._incoming))
    os.kill(os.getpid(), signal.SIGSTOP)
    connection.send([q.get(timeout=more) for _ in range(3)])
