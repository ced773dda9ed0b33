"""The callers that wait at a queue, and their lines: first come, first served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..contract.items import Put, Take
from ..contract.queues import End, Join, RoleHolder, WaitingClient

#: The requests that can wait.
Wish = Put | Take | Join


class Caller(Protocol):
    """The session of a caller, as a queue sees it."""

    #: The discipline that the queue must have.
    discipline: str
    #: Milliseconds for which it keeps what it holds, where leases matter.
    lease: int

    @property
    def client(self) -> str:
        """The client id of the caller."""

    def wake(self) -> None:
        """Note that a new call may be served. Any thread calls this, perhaps more than once."""

    def will_wait(self) -> None:
        """Note that the caller begins to wait, or waits on. The queue calls this before it gives
        the caller a place."""


class Place(NamedTuple):
    """The request of a waiting caller; since when it waits, when it last called, and its lease, in
    milliseconds."""

    wish: Wish
    client: str
    since: int
    seen: int
    lease: int


class Line(Protocol):
    """The callers that wait for the same, in the order in which they came."""

    def __len__(self) -> int: ...

    def keep_place(self, caller: Caller, wish: Wish) -> None:
        """Keep the caller's place, or give it the last one."""

    def leave(self, caller: Caller) -> None:
        """Give up the caller's place, if it has one."""

    def is_next(self, caller: Caller) -> bool:
        """Tell whether no caller is in front of this one, which need not have a place yet."""

    def has(self, caller: Caller) -> bool:
        """Tell whether the caller has a place."""

    def count_others(self, caller: Caller) -> int: ...

    def waiting(self) -> Iterator[tuple[Caller, Place]]:
        """Iterate over the waiting callers, the first one first."""


def describe(line: Line, last: str | None, limit: int) -> End:
    """Describe an end of the queue: its holder, and up to ``limit`` clients in line. The first
    caller in line, which waits for an item or for space, is the holder."""
    holder, places = None, [place for _, place in line.waiting()]
    for _, client, since, seen, lease in places[:1]:
        holder = RoleHolder("waiting", client, "", since, seen + lease, lease)
    behind = [WaitingClient(client, "", since, seen) for _, client, since, seen, _ in places[1:]]
    return End(last or "", holder, behind[:limit])


@dataclass
class Lines:
    """The lines of the queue of one name."""

    putters: Line
    takers: Line
    joiners: Line

    @property
    def all(self) -> tuple[Line, Line, Line]:
        return self.putters, self.takers, self.joiners
