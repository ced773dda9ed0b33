"""The items of each discipline, under keys in the order in which they are served."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ..contract.fair import Snapshot
from ..contract.items import Placed
from ..requests import storage
from ..requests.storage import Entry, Tenant, depart, differ_in_kind
from .head import Head
from .packing import END, pack, unpack
from .records import TENANT, dump_entry, load_entry
from .unit import Table, Unit, pages

#: The most items that are read before they are asked for.
_AHEAD = 256


class Fifo:
    """First in, first out. The head has the length, and the numbers of the last places."""

    is_reverse = False

    def __init__(self, unit: Unit, prefix: bytes, head: Head) -> None:
        self._txn, self._prefix, self._head = unit.txn, prefix, head
        self._ahead: deque[tuple[bytes, bytes]] = deque()
        self._has_put = False
        self._limit = 1
        #: What was taken in this transaction: keys and values.
        self.taken: list[tuple[bytes, bytes]] = []

    def __len__(self) -> int:
        return self._head.value("length")

    def __bool__(self) -> bool:
        if self._ahead or self._has_put:
            return True
        return len(self) > 0 if self._head.knows_length else self._look()

    def find_not_comparable(self, sort_key: bytes) -> bytes | None:
        return None

    def put(self, entry: Entry, sort_key: bytes) -> None:
        self._head.append(self._prefix, dump_entry(entry))
        self._note_put()

    def put_in_front(self, entries: Sequence[Entry]) -> None:
        # No place is used twice: an item that was taken may come back to its own.
        for entry in reversed(entries):
            self._add(pack((-self._head.next("front"),)), dump_entry(entry))

    def _add(self, place: bytes, value: bytes) -> None:
        self._txn.set(self._prefix + place, value)
        self._note_put()

    def _note_put(self) -> None:
        self._ahead.clear()
        self._head.add("length", 1)
        self._has_put = True

    def restore(self, taken: Sequence[tuple[bytes, bytes]]) -> None:
        """Put items back where they were taken."""
        for key, value in taken:
            self._add(key[len(self._prefix) :], value)

    def _look(self) -> bool:
        """Read the next items, if none are read yet; return whether there are any."""
        if not self._ahead:
            begin, end = self._prefix, self._prefix + END
            self._ahead.extend(self._txn.range(begin, end, self._limit, self.is_reverse))
            self._limit = min(self._limit * 4, _AHEAD)
        return bool(self._ahead)

    def _next(self) -> tuple[bytes, bytes]:
        self._look()
        return self._ahead[0]

    def next(self) -> Entry:
        return load_entry(self._next()[1])

    def take(self) -> Entry:
        key, value = self._next()
        self._ahead.popleft()
        self._txn.clear(key)
        self._head.add("length", -1)
        self._has_put = False
        self.taken.append((key, value))
        return load_entry(value)

    def _some(self, start: int, limit: int) -> list[tuple[bytes, bytes]]:
        end = self._prefix + END
        return self._txn.range(self._prefix, end, start + limit, self.is_reverse)[start:]

    def peek(self, start: int, limit: int) -> list[Placed]:
        return [
            Placed(load_entry(value).item, self._sort_key(key))
            for key, value in self._some(start, limit)
        ]

    def _sort_key(self, key: bytes) -> bytes:
        return b""

    def clear(self) -> None:
        self._txn.clear_range(self._prefix, self._prefix + END)
        self._ahead.clear()
        self._head.add("length", -len(self))
        self._has_put = False

    def _parts(self, key: bytes) -> tuple[Any, ...]:
        return unpack(key, len(self._prefix))


class Lifo(Fifo):
    """Last in, first out."""

    is_reverse = True


class Priority(Fifo):
    """By priority, then by arrival."""

    def find_not_comparable(self, sort_key: bytes) -> bytes | None:
        # A sort key that can be compared with both neighbours can be compared with all.
        at, end = self._prefix + pack((sort_key,)), self._prefix + END
        around = self._txn.range(self._prefix, at, 1, True) + self._txn.range(at, end, 1)
        for key, _ in around:
            other = self._sort_key(key)
            if differ_in_kind(sort_key, other):
                return other
        return None

    def _sort_key(self, key: bytes) -> bytes:
        found: bytes = self._parts(key)[0]
        return found

    def put(self, entry: Entry, sort_key: bytes) -> None:
        self._add(pack((sort_key, self._head.next("last"))), dump_entry(entry))


class Fair(Fifo, storage.Fair):
    """In rounds, as the items of a fair queue in memory."""

    def __init__(self, unit: Unit, prefix: bytes, head: Head) -> None:
        super().__init__(unit, prefix + b"i", head)
        self._tenants: Table[bytes, Tenant] = Table(unit, prefix + b"t", TENANT)

    def put(self, entry: Entry, sort_key: bytes) -> None:
        turn, key = self._arrive(sort_key, self._round)
        self._add(pack((turn, self._head.next("last"), key)), dump_entry(entry))

    @property
    def _round(self) -> int:
        return self._head.value("round")

    def _place(self, key: bytes) -> tuple[int, bytes]:
        turn, _, tenant = self._parts(key)
        return turn, tenant

    def take(self) -> Entry:
        round, key = self._place(self._next()[0])
        self._head.set("round", round)
        depart(self._tenants, key)
        return super().take()

    def restore(self, taken: Sequence[tuple[bytes, bytes]]) -> None:
        for place, _ in taken:
            turn, key = self._place(place)
            tenant = self._tenants.setdefault(key, Tenant())
            tenant.round = max(tenant.round, turn)
            tenant.queued += 1
        super().restore(taken)

    def clear(self) -> None:
        super().clear()
        self._tenants.clear()

    def _sort_key(self, key: bytes) -> bytes:
        return b"1 " + self._place(key)[1]

    def snapshot(self, limit: int) -> Snapshot:
        items = [
            (self._place(key)[1], load_entry(value).item) for key, value in self._some(0, limit)
        ]
        of_round = pages(self._txn, self._prefix + pack((self._round,)))
        return Snapshot(len(self), items, sum(1 for _ in of_round))


ORDERS: dict[str, type[Fifo]] = {"fifo": Fifo, "lifo": Lifo, "priority": Priority, "fair": Fair}
