"""Write values as bytes whose order is Python's order of the values, and read them back.

A broker sorts by bytes. A value is written so that comparing bytes compares values: the idea of
FoundationDB's tuple layer. A byte from 1 to 15 says which kind of value comes; the bytes of a
value are 16 and more; 0 ends a str, a bytes, a tuple or a list. So where two encodings first
differ, they tell whether Python can compare the values: not if both have a kind there.

=====  ==============================================================================
kind   then
=====  ==============================================================================
1      nothing: None
2      a bool, int or float, as one exact number in hexadecimal digits
3      a str, in UTF-8, and 0
4      bytes, and 0
5      a tuple: its members, and 0
6      a list: its members, and 0
7      nothing: the rest of a tuple that cannot be ordered, so that all such are equal
=====  ==============================================================================

Bytes up to 16 in a str or in bytes are written as two, 16 and then the byte + 16.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ..exceptions import ArgumentError, ArgumentTypeError

_NONE, _NUMBER, _STR, _BYTES, _TUPLE, _LIST, _OPAQUE = (bytes([kind]) for kind in range(1, 8))
_END = b"\0"

#: The types of values. A value of a derived class has to compare as they do.
_ORDERED = (int, float, str, bytes, tuple, list)

_LOW = re.compile(rb"[\x00-\x10]")
_ESCAPED = re.compile(rb"\x10(.)", re.DOTALL)

_NEGATIVE, _ZERO, _POSITIVE = b"\x00", b"\x01", b"\x02"
#: The exponents that two bytes can write are from -_BIAS to _BIAS - 1, which all floats need.
_BIAS = 0x4000
_HUGE, _INFINITE = 0x80, b"\xff"
_INVERTED = bytes(255 - byte for byte in range(256))


class _NotOrdered(Exception):
    """A value of a type that cannot be a priority or a key."""


def encode(value: Any) -> bytes:
    """Encode a value. Equal values have equal bytes: ``1``, ``1.0`` and ``True`` too.

    Raises ArgumentTypeError for a value that is not None, a bool, int, float, str, bytes, or a
    tuple or list of these; ArgumentError for nan, which has no place in any order.
    """
    try:
        return _encode(value)
    except _NotOrdered as error:
        raise ArgumentTypeError(
            f"{error} has no order that a broker can keep; it can keep None, bool, int, float, "
            "str, bytes, and tuples and lists of these"
        ) from None


def encode_item(item: Any) -> bytes:
    """Encode an item that is its own priority.

    A tuple is its own priority, too, when only its first members can be ordered: these are its
    priority, and it is equal to others with the same. Raises as :func:`encode` does.
    """
    if not isinstance(item, tuple) or not item or not _keeps_order(item, tuple):
        return encode(item)
    parts = [_TUPLE, encode(item[0])]
    for member in item[1:]:
        try:
            parts.append(_encode(member))
        except _NotOrdered:
            parts.append(_OPAQUE)
            break
    return b"".join(parts) + _END


def _keeps_order(value: Any, base: Any) -> bool:
    """Tell whether a value of a derived class compares as its base does."""
    return type(value) is base or (
        type(value).__lt__ is base.__lt__ and type(value).__eq__ is base.__eq__
    )


def _encode(value: Any) -> bytes:
    if value is None:
        return _NONE
    base = next((base for base in _ORDERED if isinstance(value, base)), None)
    if base is None or not _keeps_order(value, base):
        raise _NotOrdered(f"a {type(value).__name__}")
    if base in (int, float):
        return _NUMBER + _number(value).hex().encode()
    if base is str:
        return _STR + _escape(value.encode("utf-8", "surrogatepass")) + _END
    if base is bytes:
        return _BYTES + _escape(value) + _END
    return (_TUPLE if base is tuple else _LIST) + b"".join(map(_encode, value)) + _END


def _escape(text: bytes) -> bytes:
    return _LOW.sub(lambda found: bytes((16, found[0][0] + 16)), text)


def _number(value: int | float) -> bytes:
    """Encode the sign; of the magnitude the exponent and the binary digits, inverted for a
    negative."""
    if isinstance(value, float):
        if math.isnan(value):
            raise ArgumentError("nan has no place in any order")
        if math.isinf(value):
            return _POSITIVE + _INFINITE if value > 0 else _NEGATIVE + b"\x00"
        digits, denominator = value.as_integer_ratio()
        scale = denominator.bit_length() - 1  # the denominator is a power of 2
    else:
        digits, scale = int(value), 0
    if not digits:
        return _ZERO
    magnitude = _magnitude(abs(digits), scale)
    return _POSITIVE + magnitude if digits > 0 else _NEGATIVE + magnitude.translate(_INVERTED)


def _magnitude(digits: int, scale: int) -> bytes:
    """Write ``digits / 2**scale`` as ``0.1… * 2**exponent``: the exponent, then the digits behind
    0."""
    length = digits.bit_length()
    exponent = length - scale
    if exponent < _BIAS:
        head = (exponent + _BIAS).to_bytes(2, "big")
    else:
        size = (exponent.bit_length() + 7) // 8
        head = bytes([_HUGE + size]) + exponent.to_bytes(size, "big")
    # Seven digits in a byte; its lowest bit says whether more follow.
    groups = -(-length // 7)
    bits = format(digits << (groups * 7 - length), "b").rstrip("0")
    groups = -(-len(bits) // 7)
    bits = bits.ljust(groups * 7, "0")
    tail = bytes(int(bits[at : at + 7], 2) << 1 | 1 for at in range(0, len(bits), 7))
    return head + tail[:-1] + bytes([tail[-1] & 0xFE])


def decode(encoded: bytes) -> Any:
    """Return a value that is equal to the encoded one: a whole number is an int.

    Members of a tuple that could not be ordered are an ellipsis.
    """
    return _decode(encoded, 0)[0]


def _decode(encoded: bytes, at: int) -> tuple[Any, int]:
    """Return the value that begins at ``at``, and where the next one does."""
    kind, at = encoded[at : at + 1], at + 1
    if kind in (_NONE, _OPAQUE):
        return (None if kind == _NONE else ...), at
    if kind in (_TUPLE, _LIST):
        members = []
        while encoded[at : at + 1] != _END:
            member, at = _decode(encoded, at)
            members.append(member)
        return (tuple(members) if kind == _TUPLE else members), at + 1
    end = at
    while encoded[end : end + 1] > b"\x0f":
        end += 1
    content = encoded[at:end]
    if kind == _NUMBER:
        return _read_number(bytes.fromhex(content.decode())), end
    content = _ESCAPED.sub(lambda found: bytes((found[1][0] - 16,)), content)
    return (content if kind == _BYTES else content.decode("utf-8", "surrogatepass")), end + 1


def _read_number(number: bytes) -> int | float:
    sign, magnitude = number[:1], number[1:]
    if sign == _ZERO:
        return 0
    if sign == _NEGATIVE:
        magnitude = magnitude.translate(_INVERTED)
    if magnitude == _INFINITE:
        return math.inf if sign == _POSITIVE else -math.inf
    if magnitude[0] < _HUGE:
        exponent, tail = int.from_bytes(magnitude[:2], "big") - _BIAS, magnitude[2:]
    else:
        size = 1 + magnitude[0] - _HUGE
        exponent, tail = int.from_bytes(magnitude[1:size], "big"), magnitude[size:]
    digits = int("".join(format(byte >> 1, "07b") for byte in tail), 2)
    shift = exponent - 7 * len(tail)
    value: int | float
    if exponent > 0 and (shift >= 0 or not digits & ((1 << -shift) - 1)):
        value = digits << shift if shift >= 0 else digits >> -shift
    else:
        value = math.ldexp(digits, shift)
    return value if sign == _POSITIVE else -value
