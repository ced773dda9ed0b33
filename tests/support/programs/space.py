"""Producers and consumers of a queue with a bound, which are told what to do, or stopped."""

from __future__ import annotations

import os
import random
import signal
import time


def obey(connection, q):
    """Call the queue's methods, as told: a name and arguments; say what they returned or raised."""
    while (told := connection.recv()) is not None:
        method, *args = told
        try:
            found = setattr(q, *args) if method == "set" else getattr(q, method)(*args)
        except Exception as error:
            found = error
        connection.send(found)


def put_all(connection, q, items):
    """Put these, and end."""
    for item in items:
        q.put(item)
    connection.send("put all")


def put_on(connection, q, counts, me):
    """Put on and on; count what was put."""
    number = 0
    while not connection.poll():
        q.put((me, number))
        number += 1
        counts[me] = number
    connection.send(number)


def put_and_stop(connection, q, number, signal_number):
    """Put so many, and be stopped or killed in the midst of that; then put as many again."""
    for item in range(number):
        q.put(item)
    connection.send("put")
    os.kill(os.getpid(), signal_number)
    for item in range(number, 2 * number):
        q.put(item)


def come_and_go(connection, q, counts, me, number, seed):
    """Put in bursts of any length, with pauses; count what was put."""
    draw = random.Random(seed)
    put = 0
    while put < number:
        for _ in range(min(draw.choice([1, 10, 200]), number - put)):
            if draw.random() < 0.1:
                _put_nowait(q, (me, put))
            else:
                q.put((me, put))
            put += 1
            counts[me] = put
        time.sleep(draw.choice([0.0, 0.005, 0.05]))


def _put_nowait(q, item):
    try:
        q.put_nowait(item)
    except Exception:
        q.put(item)


def get_and_count(connection, q, counts, me, seed):
    """Get until None comes; count each get before it begins."""
    draw, found = random.Random(seed), []
    while True:
        counts[me] += 1
        item = q.get()
        if item is None:
            break
        found.append(item)
        if draw.random() < 0.002:
            time.sleep(draw.choice([0.005, 0.05]))
    connection.send(found)


def get_some(connection, q, number, signal_number):
    """Get so many; then be stopped or killed."""
    found = [q.get() for _ in range(number)]
    connection.send(found[-1])
    os.kill(os.getpid(), signal_number)
    while True:
        connection.send(q.get())


SIGNALS = (signal.SIGKILL, signal.SIGSTOP)
