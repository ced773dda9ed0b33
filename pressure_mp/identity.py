"""Who a client is: ``host:pid:thread:incarnation``, and the number of each of its operations."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import threading

from .processes import host


class _Identity(threading.local):
    """One thread's client id; a forked child starts with a new one."""

    def __init__(self) -> None:
        incarnation = secrets.token_hex(4)
        pid = os.getpid()
        self.text = f"{socket.gethostname()}:{pid}:{threading.get_native_id()}:{incarnation}"
        self.tickets = f"{host()}/{pid}/{incarnation}"


_identity = _Identity()
_numbers = itertools.count(1)


def client_id() -> str:
    """The calling thread's id: hostname, process id, thread id, and 8 random hex digits.

    The random part tells a process from a later one with the same pid. Stays the same for the
    life of the thread; the child of a fork gets another (specification: Clients).
    """
    return _identity.text


def ticket() -> str:
    """A new name for one operation, unique over all clients: it marks what the operation holds.

    :func:`pressure_mp.processes.is_gone` can tell from it whether the process still lives.
    """
    return f"{_identity.tickets}:{next(_numbers)}"


def _after_fork_in_child() -> None:
    global _identity
    _identity = _Identity()


os.register_at_fork(after_in_child=_after_fork_in_child)
