"""Waiting callers, in a store: sessions of any process of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

from ...identity import processes
from ..contract.items import Hold, Put, Take
from ..contract.queues import Join
from ..requests import line
from ..requests.line import Place, Wish
from .packing import END, unpack
from .records import JSON, RAW
from .unit import Table, Unit

#: The least milliseconds for which a session keeps its place: it looks once a second.
_SHORTEST = 3000

_WISHES: dict[str, Wish] = {"p": Put(()), "j": Join()}


class Session(line.Caller, Protocol):
    """A caller with a name that is unique over all processes."""

    @property
    def ticket(self) -> str: ...

    #: Whether it may have a place in a line.
    is_placed: bool
    #: What its last call took for good.
    took: Took | None
    #: Whether the last call was committed.
    is_done: bool


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
    """Whether any caller waits at the queue of one name: mostly none does, and one look at all of
    its lines shows that."""

    def __init__(self, unit: Unit, prefix: bytes) -> None:
        self._txn, self._prefix = unit.txn, prefix
        self._is_empty: bool | None = None

    @property
    def is_empty(self) -> bool:
        if self._is_empty is None:
            self._is_empty = not self._txn.range(self._prefix, self._prefix + END, 1)
        return self._is_empty

    def add(self) -> None:
        """Note that a caller comes."""
        self._is_empty = False


class Row(Table[int, list[object]]):
    """Sessions in the order in which they came. A record begins with the ticket, and with the time
    until which the session keeps its place if its process is not seen to live: a process that has
    ended has no place any more."""

    def __init__(
        self, unit: Unit, prefix: bytes, clock: Callable[[], int], waiters: Waiters
    ) -> None:
        super().__init__(unit, prefix + b"r", JSON)
        self._clock, self._beginning, self._waiters = clock, prefix, waiters

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

    def keep(
        self, caller: line.Caller, make: Callable[[list[object] | None], list[object]]
    ) -> None:
        """Write the record of a session, which is made of the earlier one, in its place or at the
        end."""
        caller.will_wait()
        self._waiters.add()
        place, ticket = self.place_of(caller), ticket_of(caller)
        self._unit.bells.silence(self._txn, ticket)
        until = self._clock() + max(caller.lease, _SHORTEST)
        if place is None:
            last = self._txn.range(self.prefix, self.prefix + b"\xff", 1, True)
            place = self._places[ticket] = 1 + (self._number(last[0][0]) if last else 0)
            self[place] = [ticket, until, *make(None)]
        else:
            self[place] = [ticket, until, *make(self[place][2:])]

    def _number(self, key: bytes) -> int:
        return int(unpack(key, len(self.prefix))[0])

    def leave(self, caller: line.Caller) -> None:
        place = self.place_of(caller)
        if place is not None:
            self._remove(place, ticket_of(caller))

    def _remove(self, place: int, ticket: str) -> None:
        del self[place]
        del self._places[ticket]
        self._unit.bells.silence(self._txn, ticket)

    def rows(self) -> Iterator[list[object]]:
        if self._waiters.is_empty:
            return
        for place in self:
            row = self[place]
            ticket = str(row[0])
            if self._is_lost(processes.state(ticket), _int(row[1])):
                self._remove(place, ticket)
            else:
                yield row

    def _is_lost(self, state: processes.State, until: int) -> bool:
        if state == "alive" and not self._unit.traits.one_host:
            state = "unknown"  # a session that could not reach the store to leave may live, too
        return processes.is_lost(state, until, self._clock())

    def callers(self) -> Iterator[tuple[line.Caller, list[object]]]:
        for ticket, _, *row in self.rows():
            yield Remote(self._unit, str(ticket)), row


class StoredLine(Row):
    """The callers that wait for the same: ``p`` for space, ``t`` for an item, ``j`` for the end of
    all items."""

    def __init__(
        self, unit: Unit, prefix: bytes, what: str, clock: Callable[[], int], waiters: Waiters
    ) -> None:
        super().__init__(unit, prefix + what.encode(), clock, waiters)
        self._wish = _WISHES.get(what)

    def keep_place(self, caller: line.Caller, wish: Wish) -> None:
        now = self._clock()
        asked = [wish.until_ended, wish.hold and wish.hold.owner] if isinstance(wish, Take) else []

        def make(before: list[object] | None) -> list[object]:
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
            wish = _take(*asked) if self._wish is None else self._wish
            yield caller, Place(wish, str(client), _int(since), _int(seen), _int(lease))


def _take(until_ended: object, owner: object) -> Take:
    return Take(1, Hold(str(owner), 0) if owner else None, bool(until_ended))


def _int(number: object) -> int:
    assert isinstance(number, int)
    return number


class StoredEnds:
    """The callers that wait for the end of a task, and the outcomes that they are to be told."""

    def __init__(self, unit: Unit, prefix: bytes) -> None:
        self._tickets: Table[bytes, list[str]] = Table(unit, prefix + b"t", JSON)
        self._ids: Table[str, bytes] = Table(unit, prefix + b"i", RAW)
        self._outcomes: Table[str, str] = Table(unit, prefix + b"o", JSON)

    def watch(self, id: bytes, caller: line.Caller) -> None:
        self.forget(caller)
        ticket = ticket_of(caller)
        self._tickets[id] = [*self._tickets.get(id, []), ticket]
        self._ids[ticket] = id

    def conclude(self, id: bytes, outcome: str) -> None:
        for ticket in self._tickets.pop(id, []):
            del self._ids[ticket]
            if processes.state(ticket) != "dead":
                self._outcomes[ticket] = outcome

    def outcome(self, caller: line.Caller) -> str | None:
        return self._outcomes.pop(ticket_of(caller), None)

    def has_outcome(self, caller: line.Caller) -> bool:
        return ticket_of(caller) in self._outcomes

    def forget(self, caller: line.Caller) -> None:
        ticket = ticket_of(caller)
        self._outcomes.pop(ticket, None)
        id = self._ids.pop(ticket, None)
        if id is not None:
            left = [other for other in self._tickets[id] if other != ticket]
            self._tickets[id] = left
            if not left:
                del self._tickets[id]


class StoredTaskLine:
    """The waiting callers of one queue of tasks."""

    def __init__(self, unit: Unit, prefix: bytes, clock: Callable[[], int]) -> None:
        self._waiters = waiters = Waiters(unit, prefix)
        self.putters = StoredLine(unit, prefix, "p", clock, waiters)
        self._takers = Row(unit, prefix + b"t", clock, waiters)
        self._awaiting = Row(unit, prefix + b"a", clock, waiters)
        self._readers = Row(unit, prefix + b"r", clock, waiters)
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
        return [(caller, tube, at) for caller, (tube, at) in self._takers.callers()]  # type: ignore[misc]

    def awaiting(self) -> list[line.Caller]:
        return [caller for caller, _ in self._awaiting.callers()]

    def readers(self) -> list[tuple[line.Caller, str, int]]:
        return [(caller, inbox, number) for caller, (inbox, number) in self._readers.callers()]  # type: ignore[misc]
