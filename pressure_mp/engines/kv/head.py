"""The fields of a queue of items that are no tables."""

from __future__ import annotations

import struct
from typing import Any

from ..requests.kinds import Counts
from .packing import pack
from .records import dump, load
from .store import SharedTxn, Txn

_quad = struct.Struct("<q")


class Head(Counts):
    """The fields of one queue, in one value. It is the counter of the queue, too."""

    #: Whether the length is known when the head is.
    knows_length = True

    def __init__(self, txn: Txn, key: bytes) -> None:
        self._txn, self._key = txn, key
        self._raw = txn.get(key)
        self._fields: dict[str, Any] = {}
        super().__init__(self._fields)
        #: The fields that most requests only read; None when there is no queue.
        self.about: list[Any] | None = None
        if self._raw is not None:
            (self.about, *fields), _ = load(self._raw)
            if fields:
                self._fields.update(fields[0])

    def client(self, end: str) -> str | None:
        """Return the client that was last at an end of the queue."""
        found: str | None = self._fields.get(end)
        return found

    def set(self, name: str, value: int | str | None) -> None:
        self._fields[name] = value

    def next(self, name: str) -> int:
        """Count a number up, and return it."""
        self.add(name, 1)
        return self.value(name)

    def append(self, prefix: bytes, value: bytes) -> None:
        """Write a value behind all that were ever appended under the prefix."""
        self._txn.set(prefix + pack((self.next("last"),)), value)

    def flush(self, about: list[Any]) -> None:
        raw = dump([about, self._fields])
        if raw != self._raw:
            self._txn.set(self._key, raw)


class SpreadHead(Head):
    """The fields of one queue where transactions conflict. Each field that is not ``about`` the
    queue has a key of its own, and adding to a number does not read it."""

    #: The fields whose reading needs no conflict. Each of them is as it was at some moment of the
    #: transaction's reads: an item that was put and not counted yet is not done either.
    _LOOSE = frozenset(
        ("produced_messages", "produced_bytes", "consumed_messages", "consumed_bytes", "returned")
    )
    knows_length = False

    def __init__(self, txn: SharedTxn, key: bytes) -> None:
        super().__init__(txn, key)
        self._shared = txn
        self._added: dict[str, int] = {}
        self._set: dict[str, Any] = {}

    def value(self, name: str) -> int:
        if name not in self._fields:
            raw = self._txn.get(self._at(name), snapshot=name in self._LOOSE)
            self._fields[name] = 0 if raw is None else _quad.unpack(raw)[0]
        return super().value(name) + self._added.get(name, 0)

    def add(self, name: str, number: int) -> None:
        self._added[name] = self._added.get(name, 0) + number

    def client(self, end: str) -> str | None:
        if end not in self._fields:
            raw = self._txn.get(self._at(end), snapshot=True)
            self._fields[end] = None if raw is None else raw.decode()
        return super().client(end)

    def set(self, name: str, value: int | str | None) -> None:
        if self._fields.get(name) != value:
            self._fields[name] = self._set[name] = value

    def next(self, name: str) -> int:
        number = self.value(name) + 1
        self.set(name, number)
        return number

    def append(self, prefix: bytes, value: bytes) -> None:
        self._shared.append(prefix, value)

    def _at(self, name: str) -> bytes:
        return self._key + pack((name,))

    def flush(self, about: list[Any]) -> None:
        raw = dump([about])
        if raw != self._raw:
            self._txn.set(self._key, raw)
        for name, number in self._added.items():
            self._shared.add(self._at(name), number)
        for name, value in self._set.items():
            self._txn.set(
                self._at(name), value.encode() if isinstance(value, str) else _quad.pack(value)
            )
