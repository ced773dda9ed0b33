"""Producers and consumers of a queue with a short bound."""

from __future__ import annotations


def get_when_told(connection, q):
    """Get as many items as asked for, and say which."""
    while number := connection.recv():
        connection.send([q.get() for _ in range(number)])


def get_until_none(connection, q):
    """Get until None comes; say what came."""
    connection.send(list(iter(q.get, None)))


def put_pairs(connection, q, me, number):
    """Put so many, with their number and whose they are."""
    for item in range(number):
        q.put((me, item))


def count_what_is_got(connection, q, counts, me):
    """Get on and on; note how many items of the producer are behind."""
    while True:
        counts[me] = q.get()[1] + 1


def get_in_bursts(connection, q):
    """Get on and on; say what came."""
    while True:
        connection.send(q.get())
