"""Who waits: watchers of a sign, and those who stand in line for a role.

A role's token is modelled as on a broker: free, held by one who waits, or promised to the first
in line. There are no foreign clients and no leases here: nobody dies alone in one process.
"""

from __future__ import annotations

import collections
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
    promised: bool = False  # the first in line was told to come for it
    line: collections.deque[Waiter] = field(default_factory=collections.deque)

    def standing(self, turn: str, ticket: str) -> str:
        """Where the token is, as the caller sees it: free, mine, granted or ours."""
        if turn == self.name and self.promised:
            return "granted"
        if self.holder == ticket:
            return "mine"
        return "ours" if self.promised or self.holder is not None else "free"

    def hold(self, ticket: str, client: str) -> None:
        self.holder, self.client, self.promised = ticket, client, False

    def give_back(self, standing: str) -> None:
        if standing in ("mine", "granted"):
            self.holder, self.client, self.promised = None, "", False
            self.grant()

    def grant(self) -> None:
        """Promise a free token to the first in line."""
        if self.line and self.holder is None and not self.promised:
            self.promised = True
            signal(self.line.popleft())


def signal(waiter: Waiter) -> None:
    waiter.signalled = True
    waiter.notify()
