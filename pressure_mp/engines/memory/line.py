"""The lines of callers that wait at a queue: first come, first served."""

from __future__ import annotations

from typing import NamedTuple, Protocol
from weakref import ref

from ..contract.items import Put, Take
from ..contract.queues import End, Join, RoleHolder, WaitingClient
from .clock import milliseconds

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


class Line:
    """The callers that wait for the same, in the order in which they came.

    A session that was garbage-collected has no place any more, even if its ``end`` was not called.
    """

    def __init__(self) -> None:
        self._places: dict[ref[Caller], Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def keep_place(self, caller: Caller, wish: Wish) -> None:
        """Keep the caller's place, or give it the last one."""
        caller.will_wait()
        now, key = milliseconds(), ref(caller, self._forget)
        place = self._places.get(key)
        since = place.since if place else now
        self._places[key] = Place(wish, caller.client, since, now, caller.lease)

    def _forget(self, key: ref[Caller]) -> None:
        self._places.pop(key, None)

    def leave(self, caller: Caller) -> None:
        """Give up the caller's place, if it has one."""
        if self._places:
            self._forget(ref(caller))

    def is_next(self, caller: Caller) -> bool:
        """Tell whether no caller is in front of this one, which need not have a place yet."""
        return not self._places or next(iter(self._places))() is caller

    def has(self, caller: Caller) -> bool:
        """Tell whether the caller has a place."""
        return bool(self._places) and ref(caller) in self._places

    def count_others(self, caller: Caller) -> int:
        return len(self._places) - (ref(caller) in self._places)

    def waiting(self) -> list[tuple[Caller, Place]]:
        """List the waiting callers, the first one first."""
        found = [(key(), self._places.get(key)) for key in list(self._places)]
        return [(caller, place) for caller, place in found if caller and place]

    def end(self, last: str | None, limit: int) -> End:
        """Describe this end of the queue: its holder, and up to ``limit`` clients in line. The
        first caller in line, which waits for an item or for space, is the holder."""
        holder, places = None, list(self._places.values())
        for _, client, since, seen, lease in places[:1]:
            holder = RoleHolder("waiting", client, "", since, seen + lease, lease)
        behind = [
            WaitingClient(client, "", since, seen) for _, client, since, seen, _ in places[1:]
        ]
        return End(last or "", holder, behind[:limit])


class Lines:
    """The lines of the queue of one name."""

    def __init__(self) -> None:
        self.putters = Line()
        self.takers = Line()
        self.joiners = Line()

    @property
    def all(self) -> tuple[Line, Line, Line]:
        return self.putters, self.takers, self.joiners
