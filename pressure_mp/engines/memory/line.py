"""Who waits, and for what: first come, first served."""

from __future__ import annotations

from typing import NamedTuple, Protocol
from weakref import ref

from ..contract.items import Prefetch, Put, Take
from ..contract.queues import End, Join, Keeper, WaitingClient
from .clock import milliseconds

#: What one can wait to have done.
Wish = Put | Take | Prefetch | Join


class Caller(Protocol):
    """A session, as a queue sees it."""

    #: The discipline that its queue is to have.
    discipline: str
    #: Milliseconds for which what it holds stays with it, where that counts.
    lease: int

    @property
    def client(self) -> str:
        """The client id of who calls."""

    def wake(self) -> None:
        """It may be served now. From any thread, and often."""

    def rest(self) -> None:
        """It may not be served now, and begins to wait, or goes on to. It is told so before it has
        a place."""


class Place(NamedTuple):
    """What one who waits wants; and in milliseconds since when it waits, when it last called, and
    its lease."""

    wish: Wish
    client: str
    since: int
    seen: int
    lease: int


class Line:
    """Those who wait for the same, in the order in which they came.

    A session that is gone has no place any more, also when an exception came before its ``end``.
    """

    def __init__(self) -> None:
        self._places: dict[ref[Caller], Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def stand(self, caller: Caller, wish: Wish) -> None:
        """Keep the caller's place, or give it the last one."""
        caller.rest()
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
        """Whether nobody is in front of the caller, who need not have a place yet."""
        return not self._places or next(iter(self._places))() is caller

    def has(self, caller: Caller) -> bool:
        """Whether the caller has a place."""
        return bool(self._places) and ref(caller) in self._places

    def count_others(self, caller: Caller) -> int:
        """How many wait beside the caller."""
        return len(self._places) - (ref(caller) in self._places)

    def waiting(self) -> list[tuple[Caller, Place]]:
        """All who wait, the first one first."""
        found = [(key(), self._places.get(key)) for key in list(self._places)]
        return [(caller, place) for caller, place in found if caller and place]

    def end(self, last: str | None, limit: int) -> End:
        """Who keeps this end of the queue, and up to ``limit`` of those behind. The first one in
        line, who waits for an item or for space, keeps it."""
        keeper, places = None, list(self._places.values())
        for _, client, since, seen, lease in places[:1]:
            keeper = Keeper("waiting", client, "", since, seen + lease, lease)
        behind = [
            WaitingClient(client, "", since, seen) for _, client, since, seen, _ in places[1:]
        ]
        return End(last or "", keeper, behind[:limit])


class Lines:
    """All who wait at the queue of one name."""

    def __init__(self) -> None:
        self.putters = Line()
        self.takers = Line()
        self.joiners = Line()

    @property
    def all(self) -> tuple[Line, Line, Line]:
        return self.putters, self.takers, self.joiners
