"""Producers and consumers of queues with a bound."""

from __future__ import annotations

import os
import random
import signal
import time


def get_when_told(connection, q):
    """Get as many items as asked for, and say which."""
    while number := connection.recv():
        connection.send([q.get() for _ in range(number)])


def get_until_none(connection, q):
    """Get until None comes; say what came."""
    connection.send(list(iter(q.get, None)))


def put_pairs(connection, q, me, number):
    """Put so many pairs of this producer's number and the item's number."""
    for item in range(number):
        q.put((me, item))


def count_received_items(connection, q, counts, me):
    """Get on and on; note how many items of the producer are behind."""
    while True:
        counts[me] = q.get()[1] + 1


def get_in_bursts(connection, q):
    """Get on and on; say what came."""
    while True:
        connection.send(q.get())


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
