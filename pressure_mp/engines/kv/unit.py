"""State in a transaction. The end of a unit writes the records that were read and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, MutableSet
from typing import Any, Generic, TypeVar, cast

from ..requests.contents import Contents
from ..requests.kinds import Leases
from .bells import Bells
from .head import Head, SpreadHead
from .packing import END, pack, unpack
from .records import JSON, RAW, Kind
from .store import SharedTxn, Traits, Txn

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S", bound=tuple[Any, ...])

_ABSENT: Any = object()


class Unit:
    """One transaction, and the sessions to wake when it is committed."""

    def __init__(self, txn: Txn, traits: Traits, bells: Bells) -> None:
        self.txn, self.traits, self.bells = txn, traits, bells
        self.woken: list[str] = []
        self.tables: list[Table[Any, Any]] = []
        #: What writes the heads of queues, at the end, if they changed.
        self.heads: list[Callable[[], None]] = []

    def head(self, key: bytes) -> Head:
        if self.traits.optimistic:
            return SpreadHead(cast(SharedTxn, self.txn), key)
        return Head(self.txn, key)

    def flush(self) -> None:
        """Write what changed."""
        for flush in self.heads:
            flush()
        for table in self.tables:
            table.flush()
        if self.woken:
            self.bells.mark(self.txn, self.woken)
        # They refer to the unit: a cycle would be left to the garbage collector.
        self.heads, self.tables = [], []

    def clear(self, prefix: bytes) -> None:
        """Remove all below a prefix. No table there is used any more."""
        self.tables = [one for one in self.tables if not one.prefix.startswith(prefix)]
        self.txn.clear_range(prefix, prefix + END)


def pages(txn: Txn, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over the keys that begin so. Keys may be written and removed meanwhile."""
    begin, limit = prefix, 1
    while found := txn.range(begin, prefix + END, limit):
        yield from found
        begin, limit = found[-1][0] + b"\0", min(limit * 4, 256)


class Table(MutableMapping[K, V]):
    """Records by key, in the order of their keys. A record that is changed in place is written."""

    def __init__(self, unit: Unit, prefix: bytes, kind: Kind[V], single: bool = True) -> None:
        self.prefix = prefix
        self._txn, self._kind, self._single = unit.txn, kind, single
        self._unit = unit
        #: By key: the value in the store, and the record.
        self._seen: dict[K, list[Any]] = {}

    def _key(self, key: Any) -> bytes:
        return self.prefix + pack((key,) if self._single else key)

    def _look(self, key: K, raw: bytes | None) -> list[Any]:
        found = self._seen.get(key)
        if found is None:
            record = _ABSENT if raw is None else self._kind.load(raw)
            self._note()
            found = self._seen[key] = [raw, record]
        return found

    def _at(self, key: K) -> list[Any]:
        found = self._seen.get(key)
        return self._look(key, self._txn.get(self._key(key))) if found is None else found

    def __getitem__(self, key: K) -> V:
        record = self._at(key)[1]
        if record is _ABSENT:
            raise KeyError(key)
        return record  # type: ignore[no-any-return]

    def __setitem__(self, key: K, record: V) -> None:
        self._at(key)[1] = record

    def __delitem__(self, key: K) -> None:
        at = self._at(key)
        if at[1] is _ABSENT:
            raise KeyError(key)
        at[1] = _ABSENT

    def __iter__(self) -> Iterator[K]:
        self.flush()
        for raw_key, raw in pages(self._txn, self.prefix):
            parts = unpack(raw_key, len(self.prefix))
            key: Any = parts[0] if self._single else parts
            if self._look(key, raw)[1] is not _ABSENT:
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def insert(self, key: K, record: V) -> None:
        """Add the record of a key, which is not there, without a look at it."""
        self._note()
        self._seen[key] = [None, record]

    def drop(self, key: K) -> None:
        """Remove the record of a key, which is there, without a look at it."""
        self._note()
        self._seen[key] = [b"", _ABSENT]

    def _note(self) -> None:
        if not self._seen:
            self._unit.tables.append(self)

    def clear(self) -> None:
        self._seen.clear()
        self._txn.clear_range(self.prefix, self.prefix + END)

    def flush(self) -> None:
        for key, at in self._seen.items():
            raw, record = at
            if record is _ABSENT:
                if raw is not None:
                    self._txn.clear(self._key(key))
                    at[0] = None
            else:
                now = self._kind.dump(record)
                if now != raw:
                    self._txn.set(self._key(key), now)
                    at[0] = now


class StoredLeases(Table[str, int], Leases):
    """Leases."""

    def __init__(self, unit: Unit, prefix: bytes) -> None:
        super().__init__(unit, prefix, JSON)

    def extend(self, owner: str, until: int) -> None:
        # Others may renew it, or end it, meanwhile: the lease that this transaction gives counts.
        if owner not in self._seen:
            self._look(owner, self._txn.get(self._key(owner), snapshot=True))
        super().extend(owner, until)


class Names(MutableSet[K]):
    """A set of names, or of tuples of names."""

    def __init__(self, unit: Unit, prefix: bytes, single: bool = True) -> None:
        self._table: Table[K, int] = Table(unit, prefix, JSON, single)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __iter__(self) -> Iterator[K]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __bool__(self) -> bool:
        return bool(self._table)

    def add(self, name: K) -> None:
        self._table[name] = 1

    def discard(self, name: K) -> None:
        self._table.pop(name, None)


class StoredSet(Generic[S]):
    """Tuples in their order. The part at ``number`` is a number of any kind."""

    def __init__(self, unit: Unit, prefix: bytes, number: int | None = None) -> None:
        self._txn, self._prefix, self._number = unit.txn, prefix, number
        #: For each beginning the first key that may be there. The transaction has read or removed
        #: all keys before it; an optimistic store reads past each removed key again.
        self._firsts: dict[bytes, bytes] = {}

    def _key(self, one: tuple[Any, ...]) -> bytes:
        number = self._number
        if number is not None and len(one) > number:
            one = (*one[:number], float(one[number]), *one[number + 1 :])
        return self._prefix + pack(one)

    def add(self, one: S) -> None:
        key = self._key(one)
        self._txn.set(key, b"")
        for beginning, first in self._firsts.items():
            if key < first and key.startswith(beginning):
                self._firsts[beginning] = key

    def remove(self, one: S) -> None:
        key = self._key(one)
        self._txn.clear(key)
        for beginning, first in self._firsts.items():
            if key == first:
                self._firsts[beginning] = key + b"\0"

    def behind(self, *beginning: object) -> Iterator[Any]:
        begin = self._key(beginning)
        first, end = self._firsts.get(begin, begin), begin + END
        while found := self._txn.range(first, end, 1):
            ((key, _),) = found
            if first <= self._firsts.get(begin, begin):
                self._firsts[begin] = key
            yield unpack(key, len(self._prefix))
            first = key + b"\0"


def contents(unit: Unit, prefix: bytes, clock: Callable[[], int]) -> Contents:
    """The contents of the large items of a queue."""
    chunks: Table[tuple[str, int], bytes] = Table(unit, prefix + b"xc", RAW, False)
    kept: Table[str, int] = Table(unit, prefix + b"xk", JSON)
    return Contents(chunks, kept, StoredSet(unit, prefix + b"xe"), clock)
