"""Waiting callers, in a store: sessions of any process of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol

from ...identity import processes
from ..contract.items import Hold, Put, Take
from ..contract.queues import Join
from ..requests import line
from ..requests.line import Place, Wish
from ..requests.task_line import Ends
from .packing import END, unpack
from .records import JSON, RAW
from .store import Fate
from .unit import Table, Unit

#: The least milliseconds for which a session keeps its place: it looks once a second.
_SHORTEST = 3000

_WISHES: dict[str, Wish] = {"p": Put(()), "j": Join()}


class Session(line.Caller, Fate, Protocol):
    """A caller with a name that is unique over all processes."""

    @property
    def ticket(self) -> str: ...

    #: Whether it may have a place in a line.
    is_placed: bool
    #: What its last call took for good.
    took: Took | None


class Took:
    """The items of a take for good, as long as that may be undone."""

    def __init__(self, taken: list[tuple[bytes, bytes]]) -> None:
        self.taken = taken
        #: Whether the items are back.
        self.is_done = False


def ticket_of(caller: line.Caller) -> str:
    return caller.ticket  # type: ignore[attr-defined, no-any-return]


class Remote:
    """A session that waits, of whatever process."""

    discipline = ""
    lease = 0
    client = ""
    is_placed = True

    def __init__(self, unit: Unit, ticket: str) -> None:
        self.ticket = ticket
        self._unit = unit

    def __eq__(self, other: object) -> bool:
        return getattr(other, "ticket", None) == self.ticket

    def __hash__(self) -> int:
        return hash(self.ticket)

    def wake(self) -> None:
        self._unit.woken.append(self.ticket)

    def will_wait(self) -> None:
        raise AssertionError("only a session itself waits")


class Waiters:
    """Give the lines of one queue their unit, prefix and clock, and tell whether any caller waits:
    mostly none does, which one read shows for all lines."""

    def __init__(self, unit: Unit, prefix: bytes, clock: Callable[[], int]) -> None:
        self.unit, self.prefix, self.clock = unit, prefix, clock
        self._is_empty: bool | None = None

    @property
    def is_empty(self) -> bool:
        if self._is_empty is None:
            self._is_empty = not self.unit.txn.range(self.prefix, self.prefix + END, 1)
        return self._is_empty

    def add(self) -> None:
        """Note that a caller comes."""
        self._is_empty = False


class Row(Table[int, list[Any]]):
    """Sessions in the order in which they came. A record begins with the ticket, and with the time
    until which the session keeps its place if its process is not seen to live: a process that has
    ended has no place any more."""

    def __init__(self, waiters: Waiters, what: str) -> None:
        self._waiters, self._clock, self._what = waiters, waiters.clock, what
        self._beginning = waiters.prefix + what.encode()
        super().__init__(waiters.unit, self._beginning + b"r", JSON)

    def __len__(self) -> int:
        return sum(1 for _ in self.rows())

    def __bool__(self) -> bool:
        return next(self.rows(), None) is not None

    @cached_property
    def _places(self) -> Table[str, int]:
        return Table(self._unit, self._beginning + b"p", JSON)

    def place_of(self, caller: line.Caller) -> int | None:
        if not caller.is_placed:  # type: ignore[attr-defined]
            return None
        return self._places.get(ticket_of(caller))

    def keep(self, caller: line.Caller, make: Callable[[list[Any] | None], list[Any]]) -> None:
        """Write the record of a session, which is made of the earlier one, in its place or at the
        end."""
        caller.will_wait()
        self._waiters.add()
        place, ticket = self.place_of(caller), ticket_of(caller)
        self._unit.bells.silence(self._txn, ticket)
        until = self._clock() + max(caller.lease, _SHORTEST)
        if place is None:
            last = self._txn.range(self.prefix, self.prefix + b"\xff", 1, True)
            before = unpack(last[0][0], len(self.prefix))[0] if last else 0
            place = self._places[ticket] = before + 1
            self[place] = [ticket, until, *make(None)]
        else:
            self[place] = [ticket, until, *make(self[place][2:])]

    def leave(self, caller: line.Caller) -> None:
        place = self.place_of(caller)
        if place is not None:
            self._remove(place, ticket_of(caller))

    def _remove(self, place: int, ticket: str) -> None:
        del self[place]
        del self._places[ticket]
        self._unit.bells.silence(self._txn, ticket)

    def rows(self) -> Iterator[list[Any]]:
        if self._waiters.is_empty:
            return
        for place in self:
            row = self[place]
            if self._is_lost(processes.state(row[0]), row[1]):
                self._remove(place, row[0])
            else:
                yield row

    def _is_lost(self, state: processes.State, until: int) -> bool:
        if state == "alive" and not self._unit.traits.one_host:
            state = "unknown"  # a session that could not reach the store to leave may live, too
        return processes.is_lost(state, until, self._clock())

    def callers(self) -> Iterator[tuple[line.Caller, list[Any]]]:
        for ticket, _, *row in self.rows():
            yield Remote(self._unit, ticket), row


class StoredLine(Row):
    """The callers that wait for the same: ``p`` for space, ``t`` for an item, ``j`` for the end of
    all items."""

    def keep_place(self, caller: line.Caller, wish: Wish) -> None:
        now = self._clock()
        asked = [wish.until_ended, wish.hold and wish.hold.owner] if isinstance(wish, Take) else []

        def make(before: list[Any] | None) -> list[Any]:
            since = before[1] if before else now
            return [caller.client, since, now, caller.lease, *asked]

        self.keep(caller, make)

    def is_next(self, caller: line.Caller) -> bool:
        first = next(self.rows(), None)
        return first is None or first[0] == ticket_of(caller)

    def has(self, caller: line.Caller) -> bool:
        return self.place_of(caller) is not None

    def count_others(self, caller: line.Caller) -> int:
        return sum(row[0] != ticket_of(caller) for row in self.rows())

    def waiting(self) -> Iterator[tuple[line.Caller, Place]]:
        for caller, (client, since, seen, lease, *asked) in self.callers():
            wish = _take(*asked) if self._what == "t" else _WISHES[self._what]
            yield caller, Place(wish, client, since, seen, lease)


def _take(until_ended: bool, owner: str | None) -> Take:
    return Take(1, Hold(owner, 0) if owner else None, until_ended)


class StoredEnds(Ends):
    """The callers that wait for the end of a task, by their tickets."""

    def __init__(self, unit: Unit, prefix: bytes) -> None:
        callers: Table[bytes, list[str]] = Table(unit, prefix + b"t", JSON)
        ids: Table[str, bytes] = Table(unit, prefix + b"i", RAW)
        outcomes: Table[str, str] = Table(unit, prefix + b"o", JSON)
        super().__init__(callers, ids, outcomes, ticket_of)

    def _may_live(self, name: str) -> bool:
        return processes.state(name) != "dead"


class StoredTaskLine:
    """The waiting callers of one queue of tasks."""

    def __init__(self, waiters: Waiters) -> None:
        self._waiters = waiters
        self.putters = StoredLine(waiters, "p")
        self._takers, self._awaiting, self._readers = (Row(waiters, what) for what in "tar")
        self._rows = self.putters, self._takers, self._awaiting, self._readers

    def __len__(self) -> int:
        return len(self._takers)

    @property
    def is_empty(self) -> bool:
        return self._waiters.is_empty

    def keep_place(self, caller: line.Caller, tube: str, retries_at: int | None) -> None:
        self._takers.keep(caller, lambda before: [tube, retries_at])

    def await_end(self, caller: line.Caller) -> None:
        self._awaiting.keep(caller, lambda before: [])

    def read(self, caller: line.Caller, inbox: str, number: int) -> None:
        self._readers.keep(caller, lambda before: [inbox, number])

    def leave(self, caller: line.Caller) -> None:
        for row in self._rows:
            row.leave(caller)

    def takers(self) -> list[tuple[line.Caller, str, int | None]]:
        return [(caller, tube, at) for caller, (tube, at) in self._takers.callers()]

    def awaiting(self) -> list[line.Caller]:
        return [caller for caller, _ in self._awaiting.callers()]

    def readers(self) -> list[tuple[line.Caller, str, int]]:
        return [(caller, inbox, number) for caller, (inbox, number) in self._readers.callers()]
