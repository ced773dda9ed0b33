"""Keep the items of each discipline, as plainly as it can be written."""

from __future__ import annotations

import bisect
import collections
import heapq
import itertools
from collections.abc import Iterator, Sequence

from ..contract.fair import Snapshot
from ..contract.items import Placed
from ..requests import storage
from ..requests.storage import Entry, Storage, Tenant, depart, differ_in_kind


class Fifo(collections.deque[Entry]):
    """First in, first out."""

    def find_not_comparable(self, sort_key: bytes) -> bytes | None:
        return None

    def put(self, entry: Entry, sort_key: bytes) -> None:
        self.append(entry)

    def put_in_front(self, entries: Sequence[Entry]) -> None:
        self.extendleft(reversed(entries))

    def next(self) -> Entry:
        return self[0]

    def take(self) -> Entry:
        return self.popleft()

    def peek(self, start: int, limit: int) -> list[Placed]:
        return [Placed(entry.item, b"") for entry in self._next_first(start, limit)]

    def _next_first(self, start: int, limit: int) -> Iterator[Entry]:
        return itertools.islice(self, start, start + limit)


class Lifo(Fifo):
    """Last in, first out."""

    def next(self) -> Entry:
        return self[-1]

    def take(self) -> Entry:
        return self.pop()

    def _next_first(self, start: int, limit: int) -> Iterator[Entry]:
        return itertools.islice(reversed(self), start, start + limit)


class _NeverInFlight:
    """The items of this discipline are never in flight."""

    def put_in_front(self, entries: Sequence[Entry]) -> None:
        raise AssertionError("an item was in flight")


class Priority(_NeverInFlight):
    """By priority, then by arrival. A sort key is an encoded priority."""

    def __init__(self) -> None:
        self._arrivals = itertools.count()
        self._items: list[tuple[bytes, int, Entry]] = []

    def __len__(self) -> int:
        return len(self._items)

    def find_not_comparable(self, sort_key: bytes) -> bytes | None:
        # A sort key that can be compared with both neighbours can be compared with all.
        place = bisect.bisect(self._items, (sort_key,))
        for other, _, _ in self._items[max(place - 1, 0) : place + 1]:
            if differ_in_kind(sort_key, other):
                return other
        return None

    def put(self, entry: Entry, sort_key: bytes) -> None:
        bisect.insort(self._items, (sort_key, next(self._arrivals), entry))

    def next(self) -> Entry:
        return self._items[0][2]

    def take(self) -> Entry:
        return self._items.pop(0)[2]

    def peek(self, start: int, limit: int) -> list[Placed]:
        return [Placed(entry.item, key) for key, _, entry in self._items[start : start + limit]]

    def clear(self) -> None:
        self._items.clear()


class Fair(_NeverInFlight, storage.Fair):
    """In rounds: in each, every key has as many items served as its weight says. An item's round is
    known when it arrives. A sort key is a key's weight and the key."""

    def __init__(self) -> None:
        self._arrivals = itertools.count()
        self._round = 0
        self._items: list[tuple[int, int, bytes, Entry]] = []
        self._tenants: dict[bytes, Tenant] = {}

    def __len__(self) -> int:
        return len(self._items)

    def find_not_comparable(self, sort_key: bytes) -> bytes | None:
        return None

    def put(self, entry: Entry, sort_key: bytes) -> None:
        turn, key = self._arrive(sort_key, self._round)
        heapq.heappush(self._items, (turn, next(self._arrivals), key, entry))

    def next(self) -> Entry:
        return self._items[0][3]

    def take(self) -> Entry:
        self._round, _, key, entry = heapq.heappop(self._items)
        depart(self._tenants, key)
        return entry

    def peek(self, start: int, limit: int) -> list[Placed]:
        found = heapq.nsmallest(start + limit, self._items)[start:]
        return [Placed(entry.item, b"1 " + key) for *_, key, entry in found]

    def clear(self) -> None:
        self._items.clear()
        self._tenants.clear()

    def snapshot(self, limit: int) -> Snapshot:
        """Return the number of queued items, and the next ones."""
        told = heapq.nsmallest(limit, self._items)
        items = [(key, entry.item) for *_, key, entry in told]
        current = sum(turn == self._round for turn, *_ in self._items)
        return Snapshot(len(self._items), items, current)


STORAGES: dict[str, type[Storage]] = {
    "fifo": Fifo,
    "lifo": Lifo,
    "priority": Priority,
    "fair": Fair,
}
