"""Ports of loopback for the servers of tests."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
from collections.abc import Iterator

#: Below the ports that the system gives to clients.
_FIRST, _END = 10_000, 32_768


def _in_turn() -> Iterator[int]:
    """The ports of this worker of pytest, from a random one on."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    size = (_END - _FIRST) // workers
    begin = random.SystemRandom().randrange(size)
    for step in itertools.count(begin):
        yield _FIRST + number * size + step % size


_ports = _in_turn()


def free_port() -> int:
    """A port at which nothing listens. A run gives a port to one server only: threads and processes
    of earlier tests may still look after the queues of the server that had it."""
    while True:
        port = next(_ports)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
