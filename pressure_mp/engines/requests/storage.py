"""The queued items of a queue, as its discipline keeps them."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from ..contract.fair import Snapshot
from ..contract.items import Placed


class Entry(NamedTuple):
    """A queued item. An item that was in flight before keeps its number, and the number of its
    deliveries."""

    item: bytes
    number: int = 0
    deliveries: int = 0


class Storage(Protocol):
    """The items of one queue."""

    def __len__(self) -> int: ...

    def find_not_comparable(self, sort_key: bytes) -> bytes | None:
        """Return the sort key of a queued item with which this one cannot be compared, if there is
        one."""

    def put(self, entry: Entry, sort_key: bytes) -> None: ...

    def put_in_front(self, entries: Sequence[Entry]) -> None:
        """Put items in front of all others, the first one first; only where items can be in
        flight."""

    def next(self) -> Entry:
        """Return the next item, and leave it queued."""

    def take(self) -> Entry:
        """Remove the next item, and return it."""

    def peek(self, start: int, limit: int) -> list[Placed]:
        """List up to ``limit`` next items behind the first ``start``."""

    def clear(self) -> None: ...


@runtime_checkable
class Fair(Storage, Protocol):
    """The items of a queue that is fair by key."""

    _tenants: MutableMapping[bytes, Tenant]

    def snapshot(self, limit: int) -> Snapshot:
        """Return the number of queued items, and the next ones."""

    def keys(self) -> list[bytes]:
        """List the keys that have queued items."""
        return list(self._tenants)

    def queued(self, key: bytes) -> int:
        """Count the queued items of a key."""
        return self._tenants[key].queued if key in self._tenants else 0

    def _arrive(self, sort_key: bytes, present: int) -> tuple[int, bytes]:
        """Count an item, and return its round and its key."""
        weight, _, key = sort_key.partition(b" ")
        return self._tenants.setdefault(key, Tenant()).arrive(int(weight), present), key


@dataclass
class Tenant:
    """A key with queued items: the last round in which it has a share, how much of that share is
    used up, and the number of its queued items."""

    round: int = 0
    used: int = 0
    queued: int = 0

    def arrive(self, weight: int, present: int) -> int:
        """Count an item of this key, and return its round: the one after the ``present``, or a
        later one when the key's share of that is used up."""
        turn = max(present + 1, self.round)
        if turn == self.round and self.used >= weight:
            turn += 1
        self.used = self.used + 1 if turn == self.round else 1
        self.round = turn
        self.queued += 1
        return turn


def depart(tenants: MutableMapping[bytes, Tenant], key: bytes) -> None:
    """Note that an item of a key is no longer queued."""
    tenant = tenants[key]
    tenant.queued -= 1
    if not tenant.queued:
        del tenants[key]


def differ_in_kind(one: bytes, other: bytes) -> bool:
    """Tell whether two sort keys are of kinds that cannot be compared."""
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            return 0 < mine < 16 and 0 < its < 16
    return False
