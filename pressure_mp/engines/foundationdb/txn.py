"""A transaction of FoundationDB, and a watch of one key.

A value ends with a byte, which is 1 if the value is in pieces: FoundationDB's values have at most
100,000 bytes. A number that is added to begins with its lowest byte, so that its last byte is its
sign.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from .client import fdb_error, ready

_WHOLE, _DIVIDED = b"\0", b"\1"
#: The bytes of a value that is kept whole, and of a piece.
_MOST = 90_000
#: The kind of the part of a key that FoundationDB makes: ten bytes for the transaction and two for
#: the order in it.
_STAMP = b"\x05" + bytes(10)


class FoundationTxn:
    """A transaction, and where the pieces of divided values are."""

    def __init__(self, tr: Any, pieces: bytes) -> None:
        self._tr, self._pieces = tr, pieces
        self._appended = 0
        #: Whether it changes anything.
        self.has_written = False

    def get(self, key: bytes, *, snapshot: bool = False) -> bytes | None:
        found = ready((self._tr.snapshot if snapshot else self._tr).get(key))
        return self._whole(key, bytes(found)) if found.present() else None

    def range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        if not limit:
            return []  # 0 is no limit there
        return [
            (key, self._whole(key, value)) for key, value in self._list(begin, end, limit, reverse)
        ]

    def _list(self, begin: bytes, end: bytes, limit: int = 0, reverse: bool = False) -> Any:
        found = self._tr.get_range(begin, end, limit, reverse)
        ready(found._future)
        return found.to_list()

    def _whole(self, key: bytes, value: bytes) -> bytes:
        if value[-1:] != _DIVIDED:
            return value[:-1]
        return b"".join(piece for _, piece in self._list(*self._place_of_pieces(key)))

    def _place_of_pieces(self, key: bytes) -> tuple[bytes, bytes]:
        # In a key, what follows a whole part is never 0.
        return self._pieces + key + b"\0", self._pieces + key + b"\1"

    def set(self, key: bytes, value: bytes) -> None:
        self.has_written = True
        if len(value) > _MOST:
            self.clear(key)  # the value before may have more pieces
        for before, behind, part in self._parts(value):
            self._tr.set(before + key + behind, part)

    def _parts(self, value: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
        """List what is written for a value: what stands before the key and behind it, and what is
        under it."""
        if len(value) <= _MOST:
            yield b"", b"", value + _WHOLE
            return
        yield b"", b"", _DIVIDED
        for number, at in enumerate(range(0, len(value), _MOST)):
            yield self._pieces, struct.pack(">xI", number), value[at : at + _MOST]

    def clear(self, key: bytes) -> None:
        self.has_written = True
        self._tr.clear(key)
        self._tr.clear_range(*self._place_of_pieces(key))

    def clear_range(self, begin: bytes, end: bytes) -> None:
        self.has_written = True
        self._tr.clear_range(begin, end)
        self._tr.clear_range(self._pieces + begin, self._pieces + end)

    def add(self, key: bytes, number: int) -> None:
        self.has_written = True
        self._tr.add(key, number.to_bytes(9, "little", signed=True))

    def append(self, prefix: bytes, value: bytes) -> None:
        self.has_written = True
        key = prefix + _STAMP + struct.pack(">H", self._appended)
        self._appended += 1
        for before, behind, part in self._parts(value):
            place = struct.pack("<I", len(before) + len(prefix) + 1)  # of the stamp's bytes
            self._tr.set_versionstamped_key(before + key + behind + place, part)

    def depend(self, key: bytes) -> None:
        self._tr.add_read_conflict_key(key)


class Watch:
    """Calls ``ring``, in the library's thread, when the key is there. After an error that passes it
    begins again; after another the session looks by itself, as after every wait."""

    def __init__(self, tr: Any, key: bytes, ring: Callable[[], None]) -> None:
        self._tr, self._key, self._ring = tr, key, ring
        self._is_over = False
        self._fired: Any = None
        self._begin()

    def _begin(self) -> None:
        # What was written since is seen: the transaction begins here.
        self._found = self._tr.get(self._key)
        self._found.on_ready(self._look)

    def _look(self, found: Any) -> None:
        try:
            if found.present():
                self._ring()
                return
            self._fired = fired = self._tr.watch(self._key)
            if self._is_over:
                fired.cancel()
            fired.on_ready(self._told)
            self._committed = self._tr.commit()
        except fdb_error() as error:
            self._fail(error)

    def _told(self, fired: Any) -> None:
        try:
            fired.wait()
            self._ring()
        except fdb_error() as error:
            self._fail(error)

    def _fail(self, error: Any) -> None:
        if not self._is_over:
            self._passed = self._tr.on_error(error)
            self._passed.on_ready(self._again)

    def _again(self, passed: Any) -> None:
        try:
            passed.wait()
        except fdb_error():
            return
        self._begin()

    def stop(self) -> None:
        self._is_over = True
        self._tr.cancel()
        if self._fired is not None:
            self._fired.cancel()
