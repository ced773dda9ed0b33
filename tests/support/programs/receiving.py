"""Consumers that wait, and are stopped or killed as their item comes."""

from __future__ import annotations

import socket

from pressure_mp.engines.redis.blocking_wire import BlockingWire


def get_items(connection, q, number):
    """Say that it begins, then get so many items, and tell of each."""
    connection.send("begins")
    for _ in range(number):
        connection.send(q.get())


def get_and_be_cut_off(connection, q):
    """Get an item for which it waited, and whose connection breaks before it can say so; then do
    nothing more until it is told to end."""

    def cut(self, packed):
        self._socket.shutdown(socket.SHUT_RDWR)

    BlockingWire.send_now = cut
    connection.send("begins")
    connection.send(q.get())
    connection.recv()
