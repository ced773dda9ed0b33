"""The id of a client, ``host:pid:thread:incarnation``, and the number of each of its operations."""

from __future__ import annotations

import itertools
import os
import re
import threading
from typing import NamedTuple

from .. import lifecycle
from .processes import incarnation, mark, start, state

_CLIENT_ID = re.compile(r"(.+):(\d{1,9}):(\d{1,20}):([0-9a-f]{12})-(\d*)-[0-9a-f]{8}", re.DOTALL)

#: A thread's ``raw`` id, once it was asked for.
_identity = threading.local()
_numbers = itertools.count(1)


def client_id() -> str:
    """Return the calling thread's id: hostname, process id, thread id, and an incarnation.

    The incarnation is the :func:`~.processes.mark` of the host, the process's start, and 8 random
    hex digits. The id stays the same for the life of the thread; the child of a fork gets another
    (specification: Clients).
    """
    return client_id_bytes().decode()


def client_id_bytes() -> bytes:
    """Return the calling thread's id as it is sent."""
    try:
        return _identity.raw  # type: ignore[no-any-return]
    except AttributeError:
        return _identify()


def _identify() -> bytes:
    """Name this thread; once, also when a signal handler asks for its name meanwhile."""
    incarnation = f"{mark()}-{start()}-{os.urandom(4).hex()}"
    text = f"{os.uname().nodename}:{os.getpid()}:{threading.get_native_id()}:{incarnation}"
    found: bytes = _identity.__dict__.setdefault("raw", text.encode())
    return found


def process_prefix() -> str:
    """Return the text that the ids of all threads of this process begin with."""
    me = client_id()
    return me[: me.index(":", len(os.uname().nodename) + 1) + 1]


def ticket() -> str:
    """Return a new name for one operation, unique over all clients: it marks what the operation
    holds.

    :func:`is_gone` can tell from it whether the process still lives.
    """
    return f"{incarnation()}:{next(_numbers)}"


def receiver() -> str:
    """Return a :func:`ticket` of a client that is given the item together with the wake-up while it
    waits."""
    return f"{incarnation()}{_RECEIVER}{next(_numbers)}"


def reader() -> str:
    """Return a new name for a reader that reserves items, unique over all clients."""
    return f"{incarnation()}{_READER}{next(_numbers)}"


_RECEIVER = ":receiver-"
_READER = ":reader-"


def is_reader(ticket: str) -> bool:
    """Tell whether a ticket names a :func:`reader`."""
    return _READER in ticket


def process_of(ticket: str) -> str:
    """Return the part that all tickets of one process have in common."""
    return ticket.rpartition(":")[0]


class Client(NamedTuple):
    """The parts of a client id."""

    host: str
    pid: int
    thread: int


def parse_client(text: str) -> Client | None:
    """Return the parts of a client id; None when another implementation chose it in another
    form."""
    found = _CLIENT_ID.fullmatch(text)
    return Client(found[1], int(found[2]), int(found[3])) if found else None


def is_gone(client_id: str) -> bool | None:
    """Tell whether the process of a client id or of a ticket has ended; None when it is not known.

    It is known only of processes of this host that the kernel shows to this process.
    """
    client = _CLIENT_ID.fullmatch(client_id)
    seen = state(f"{client[1]}-{client[4]}/{client[2]}/{client[5]}" if client else client_id)
    return None if seen == "unknown" else seen == "dead"


def _after_fork_in_child() -> None:
    global _identity
    _identity = threading.local()


lifecycle.register("forget the thread", _after_fork_in_child)
