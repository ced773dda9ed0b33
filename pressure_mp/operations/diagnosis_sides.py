"""The two sides of a queue of items, put and get: the clients that wait, and the client with the
role."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..identity.processes import State

#: The name under which a process takes items and tasks: host and mark, pid, start, incarnation.
_PROCESS = re.compile(r"(.+)-[0-9a-f]{12}/(\d{1,9})/.*", re.DOTALL)


class Peer(NamedTuple):
    """A client of the queue.

    ``host``, ``pid`` and ``thread`` are None when its id has another implementation's form.
    ``alive`` is None when that cannot be known: of processes of other hosts, of processes that the
    kernel does not show to this one, and of other implementations.
    """

    id: str
    host: str | None
    pid: int | None
    thread: int | None
    alive: bool | None

    def __str__(self) -> str:
        state = {True: "alive", False: "has ended", None: "not known whether alive"}[self.alive]
        if self.host is None:
            return f"{self.id!r} ({state})"
        if self.thread is None:
            return f"pid {self.pid} on {self.host} ({state})"
        return f"pid {self.pid}, thread {self.thread} on {self.host} ({state})"

    @property
    def name(self) -> str:
        """The process in words."""
        return repr(self.id) if self.host is None else f"pid {self.pid} on host {self.host}"


def peer_of(owner: str, seen: State) -> Peer:
    """Make a peer of the name under which a process takes items or tasks; ``seen`` is its state."""
    named = _PROCESS.fullmatch(owner)
    host, pid = (named[1], int(named[2])) if named else (None, None)
    return Peer(owner, host, pid, None, None if seen == "unknown" else seen != "dead")


class Holder(NamedTuple):
    """The client that has a role; times are seconds.

    ``state`` is ``"waiting"`` (a client of this package waits with the role for an item or for
    space), ``"reading"`` (a client reads ahead, and will hand out what it read), ``"granted"`` (the
    first in line was granted the role and has not come for it yet), ``"foreign"`` (another
    implementation is at work, or it died at work; ``peer`` is the last that is known) or ``"lost"``
    (no client has the role, but its token is missing: the server or another program removed it; for
    a moment also when another implementation has just taken the role).

    ``held`` is how long it has had the role, ``age`` how long ago its lease began or was renewed,
    ``left`` when the lease ends if it is not renewed; None where there is no lease.
    """

    state: str
    peer: Peer | None
    held: float | None = None
    age: float | None = None
    left: float | None = None


class Waiter(NamedTuple):
    """A client that waits in line: for how many seconds, and how many seconds ago it last
    looked."""

    peer: Peer
    waited: float
    seen: float


class Side(NamedTuple):
    """One side of the queue: what a ``put``, or a ``get``, would wait for.

    ``waits_for`` is ``"nothing"``, ``"space"``, ``"item"`` or ``"role"``. ``line`` has the clients
    that wait for the role, the first one first. ``partners`` are the known clients of the other
    side: the last that was served, the one with the role, and the clients that wait for it.
    """

    operation: str
    role: str
    waits_for: str
    holder: Holder | None
    line: tuple[Waiter, ...]
    partners: tuple[Peer, ...]

    @property
    def partner(self) -> str:
        """The role of the other side."""
        return {"put": "consumer", "get": "producer"}[self.operation]

    @property
    def no_live_partner(self) -> bool:
        """Whether all known clients of the other side are known to have ended."""
        return bool(self.partners) and all(peer.alive is False for peer in self.partners)
