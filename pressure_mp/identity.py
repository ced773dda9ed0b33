"""Who a client is: ``host:pid:thread:incarnation``, and the number of each of its operations."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import socket
import threading
from typing import NamedTuple

from .processes import has_ended, host


class _Identity(threading.local):
    """One thread's client id; a forked child starts with a new one."""

    def __init__(self) -> None:
        incarnation = secrets.token_hex(4)
        pid = os.getpid()
        self.text = f"{socket.gethostname()}:{pid}:{threading.get_native_id()}:{incarnation}"
        self.tickets = f"{host()}/{pid}/{incarnation}"


_CLIENT_ID = re.compile(r"(.+):(\d{1,9}):(\d{1,20}):[0-9a-f]{8}", re.DOTALL)
_TICKET = re.compile(r"(.+)/(\d{1,9})/[0-9a-f]{8}:\d+", re.DOTALL)

#: Names that many machines have.
_NO_NAMES = {"localhost", "localhost.localdomain"}

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

    :func:`is_gone` can tell from it whether the process still lives.
    """
    return f"{_identity.tickets}:{next(_numbers)}"


def process_of(ticket: str) -> str:
    """What all tickets of one process's thread have in common."""
    return ticket.rpartition(":")[0]


class Client(NamedTuple):
    """What a client id says."""

    host: str
    pid: int
    thread: int


def parse_client(text: str) -> Client | None:
    """The parts of a client id; None when a client of another make chose it in another form."""
    found = _CLIENT_ID.fullmatch(text)
    return Client(found[1], int(found[2]), int(found[3])) if found else None


def is_gone(who: str) -> bool | None:
    """Whether the process of a client id or of a ticket has ended; None when it is not known.

    It is known of processes of this host only. A client id names the host by its name alone, so
    a process of another machine with the same name would be looked for here.
    """
    drawn = _TICKET.fullmatch(who)
    if drawn:
        return has_ended(int(drawn[2])) if drawn[1] == host() else None
    client = parse_client(who)
    if client is None or client.host != socket.gethostname() or client.host in _NO_NAMES:
        return None
    return has_ended(client.pid)


def _after_fork_in_child() -> None:
    global _identity
    _identity = _Identity()


os.register_at_fork(after_in_child=_after_fork_in_child)
