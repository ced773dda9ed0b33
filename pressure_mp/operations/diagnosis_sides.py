"""The two ends of a queue of items: who is there."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..identity.processes import State

#: A process, as it names itself where it takes items and tasks: host and mark, pid, start,
#: incarnation.
_PROCESS = re.compile(r"(.+)-[0-9a-f]{12}/(\d{1,9})/.*", re.DOTALL)


class Peer(NamedTuple):
    """A client of the queue.

    ``host``, ``pid`` and ``thread`` are None when its id has another implementation's form.
    ``alive`` is None when that cannot be known: of processes of other hosts, of those that the
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
        """Which process it is, in words."""
        return repr(self.id) if self.host is None else f"pid {self.pid} on host {self.host}"


def peer_of(owner: str, seen: State) -> Peer:
    """A process by the name under which it takes items or tasks, and as it is seen."""
    named = _PROCESS.fullmatch(owner)
    host, pid = (named[1], int(named[2])) if named else (None, None)
    return Peer(owner, host, pid, None, None if seen == "unknown" else seen != "dead")


class Holder(NamedTuple):
    """Who keeps a role, in seconds.

    ``state`` is ``"waiting"`` (a client of this package waits with the role for an item or for
    space), ``"reading"`` (one reads ahead, and will hand out what it read), ``"granted"`` (the
    first in line was granted it and did not come for it yet), ``"foreign"`` (another implementation
    is at work, or it died at work; ``peer`` is the last that is known) or ``"lost"`` (nobody has
    it, but its token is missing: a server or somebody removed it; for a moment also when another
    implementation has just taken the role).

    ``held`` is how long it has had the role, ``age`` how long ago its lease began or was renewed,
    ``left`` when the lease ends if it is not renewed; None where there is no lease.
    """

    state: str
    peer: Peer | None
    held: float | None = None
    age: float | None = None
    left: float | None = None


class Waiter(NamedTuple):
    """One who stands in line: for how many seconds, and how many ago it last looked."""

    peer: Peer
    waited: float
    seen: float


class Side(NamedTuple):
    """One end of the queue: what a ``put``, or a ``get``, would wait for.

    ``waits_for`` is ``"nothing"``, ``"space"``, ``"item"`` or ``"role"``. ``line`` is who stands in
    line for the role, the first one first. ``partners`` is who is known to use the other end:
    who last did, who holds that role, who stands in line for it.
    """

    operation: str
    role: str
    waits_for: str
    holder: Holder | None
    line: tuple[Waiter, ...]
    partners: tuple[Peer, ...]

    @property
    def no_live_partner(self) -> bool:
        """Whether all who are known to use the other end are known to have ended."""
        return bool(self.partners) and all(peer.alive is False for peer in self.partners)
