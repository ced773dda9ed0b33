"""Keys: tuples of texts, bytes and numbers, packed so that bytes are in the order of the tuples."""

from __future__ import annotations

import struct
from typing import Any

Part = str | bytes | int | float

_BYTES, _TEXT, _INT, _FLOAT = b"\x01", b"\x02", b"\x03", b"\x04"
#: Behind all keys that begin with the same parts.
END = b"\xff"
_HALF = 1 << 63
_double = struct.Struct(">d")
_quad = struct.Struct(">Q")


def pack(parts: tuple[Part, ...]) -> bytes:
    """Pack a tuple. A tuple that it begins with packs to the beginning of the same bytes."""
    return b"".join(map(_pack, parts))


def _pack(part: Part) -> bytes:
    if isinstance(part, str):
        return _TEXT + _escape(part.encode("utf-8", "surrogatepass"))
    if isinstance(part, bytes):
        return _BYTES + _escape(part)
    if isinstance(part, int):
        return _INT + _quad.pack(part + _HALF)
    (bits,) = _quad.unpack(_double.pack(part + 0.0))
    return _FLOAT + _quad.pack(bits ^ (_HALF if bits < _HALF else _HALF * 2 - 1))


def _escape(raw: bytes) -> bytes:
    return raw.replace(b"\0", b"\0\xff") + b"\0"


def unpack(key: bytes, start: int = 0) -> tuple[Any, ...]:
    """Unpack the parts of a key from ``start`` on."""
    parts: list[Part] = []
    while start < len(key):
        kind = key[start : start + 1]
        if kind in (_INT, _FLOAT):
            (bits,) = _quad.unpack_from(key, start + 1)
            start += 9
            if kind == _INT:
                parts.append(bits - _HALF)
            else:
                raw = bits ^ (_HALF if bits >= _HALF else _HALF * 2 - 1)
                parts.append(_double.unpack(_quad.pack(raw))[0])
            continue
        end = key.index(b"\0", start + 1)
        while key[end + 1 : end + 2] == END:
            end = key.index(b"\0", end + 2)
        raw_part = key[start + 1 : end].replace(b"\0\xff", b"\0")
        parts.append(raw_part.decode("utf-8", "surrogatepass") if kind == _TEXT else raw_part)
        start = end + 1
    return tuple(parts)
