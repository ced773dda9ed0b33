"""Encode and decode values in the formats of PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any

_LENGTH = Struct("!i")
_HEAD = Struct("!iiiii")
_BYTEA = 17
_TEXT = 25
_EMPTY = Struct("!iii").pack(0, 0, _BYTEA)

Part = bytes | bytearray | memoryview


def array(values: Sequence[Part], kind: int = _BYTEA) -> bytes:
    """Encode an array of one dimension, in the binary form."""
    if not values:
        return _EMPTY
    pack = _LENGTH.pack
    parts: list[Part] = [_HEAD.pack(1, 0, kind, len(values), 1)]
    for value in values:
        parts += (pack(len(value)), value)
    return b"".join(parts)


def texts(values: Iterable[str]) -> bytes:
    """Encode an array of texts."""
    found = [value.encode() for value in values]
    return array(found, _TEXT) if found else Struct("!iii").pack(0, 0, _TEXT)


def read_array(text: bytes | None) -> list[bytes]:
    """Decode an array; an empty list for NULL."""
    if text is None or text[:4] == b"\0\0\0\0":
        return []
    at = _HEAD.size
    found = []
    unpack = _LENGTH.unpack_from
    while at < len(text):
        end = at + 4 + unpack(text, at)[0]
        found.append(text[at + 4 : end])
        at = end
    return found


def dump(value: Any) -> bytes:
    """Encode arguments as JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def load(text: bytes | None) -> Any:
    """Decode a jsonb value, which has a byte for its version in front."""
    return None if text is None else json.loads(text[1:])
