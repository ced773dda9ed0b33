"""The items that were set aside, in a store: by number, and by a hash to find them."""

from __future__ import annotations

import hashlib

from .packing import END, pack
from .records import JSON
from .unit import StoredSet, Table, Unit


class StoredRejected:
    """The items that were set aside, the oldest first."""

    def __init__(self, unit: Unit, prefix: bytes) -> None:
        self._txn, self._prefix = unit.txn, prefix + b"i"
        self._hashes: StoredSet[tuple[bytes, int]] = StoredSet(unit, prefix + b"h")
        #: The number of items, and the number of the last one.
        self._counts: Table[str, int] = Table(unit, prefix + b"c", JSON)

    def append(self, item: bytes) -> None:
        last = self._counts["last"] = self._counts.get("last", 0) + 1
        self._counts["length"] = len(self) + 1
        self._txn.set(self._prefix + pack((last,)), item)
        self._hashes.add((_hash(item), last))

    def remove(self, item: bytes) -> None:
        number = next(self._hashes.behind(_hash(item)))[1]
        self._hashes.remove((_hash(item), number))
        self._txn.clear(self._prefix + pack((number,)))
        self._counts["length"] = len(self) - 1

    def __contains__(self, item: object) -> bool:
        return isinstance(item, bytes) and any(True for _ in self._hashes.behind(_hash(item)))

    def __len__(self) -> int:
        return self._counts.get("length", 0)

    def __getitem__(self, some: slice) -> list[bytes]:
        limit = len(self) if some.stop is None else some.stop
        return [item for _, item in self._txn.range(self._prefix, self._prefix + END, limit)]


def _hash(item: bytes) -> bytes:
    return hashlib.sha256(item).digest()
