"""Who waits: watchers of a sign, and those who stand in line for a role.

A role's token is modelled as on a broker: free, held by one who waits, or promised to the first
in line. There are no foreign clients and no leases here: nobody dies alone in one process.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Waiter:
    """One parked client. ``notify`` is safe from any thread."""

    def __init__(self, notify: Callable[[], Any]) -> None:
        self.notify = notify
        self.signalled = False


@dataclass
class Role:
    """The producer's or the consumer's token."""

    name: str
    holder: str | None = None  # the ticket of the operation that waits with it
    client: str = ""  # who that is
    since: int = 0  # when it got it, in milliseconds
    until: int = 0  # when its lease ends, if it is not renewed
    lease: int = 0
    promised: bool = False  # the first in line was told to come for it
    line: collections.deque[Waiter] = field(default_factory=collections.deque)

    def standing(self, turn: str, ticket: str) -> str:
        """Where the token is, as the caller sees it: free, mine, granted or ours."""
        if turn == self.name and self.promised:
            return "granted"
        if self.holder == ticket:
            return "mine"
        return "free" if self.is_free else "ours"

    @property
    def is_free(self) -> bool:
        return self.holder is None and not self.promised

    def hold(self, ticket: str, client: str, lease: int) -> None:
        now = milliseconds()
        if self.holder != ticket:
            self.since = now
        self.holder, self.client, self.promised = ticket, client, False
        self.until, self.lease = now + lease, lease

    def give_back(self, standing: str) -> None:
        if standing in ("mine", "granted"):
            self.holder, self.client, self.promised = None, "", False
            self.grant()

    def grant(self) -> None:
        """Promise a free token to the first in line."""
        if self.line and self.holder is None and not self.promised:
            self.promised = True
            signal(self.line.popleft())


@dataclass(frozen=True)
class Place:
    """What is told of one who stands in line for a role, in milliseconds; since when in
    microseconds."""

    role: str
    since: int
    seen: int
    lease: int
    client: str


class Line:
    """Who stands in line for the roles, by ticket: those whose last call was not served."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}

    def leave(self, turn: str, ticket: str) -> Place | None:
        """Take the caller out of the line; answers the place of one who looks again."""
        place = self._places.pop(ticket, None)
        return place if turn == "again" else None

    def stand(self, role: str, place: Place | None, client: str, ticket: str, lease: int) -> None:
        """Put the caller back to its place, or at the end when it has none for this role."""
        now = time.monotonic_ns() // 1000
        since = place.since if place and place.role == role else now
        self._places[ticket] = Place(role, since, now // 1000, lease, client)

    def tickets(self, role: str) -> list[bytes]:
        return [ticket.encode() for ticket, place in self._places.items() if place.role == role]

    def forget(self, ticket: str) -> Place | None:
        return self._places.pop(ticket, None)

    def entries(self, limit: int) -> list[bytes]:
        """Tickets and entries, in turn, as every engine answers them."""
        flat: list[bytes] = []
        for ticket, place in list(self._places.items())[:limit]:
            times = f"{place.since} {place.seen} {place.lease}"
            flat += [ticket.encode(), f"{place.role} {times} {place.client}".encode()]
        return flat


def milliseconds() -> int:
    return int(time.monotonic() * 1000)


def signal(waiter: Waiter) -> None:
    waiter.signalled = True
    waiter.notify()
