"""What each mutation makes of a value, and of keys and values with a stamp."""

from __future__ import annotations

import enum
import struct

from simulated_fdb.errors import Failed

MOST_VALUE = 100_000
STAMP = 10


class Op(enum.IntEnum):
    """The numbers of the binding."""

    SET = 0
    CLEAR_RANGE = 1
    ADD = 2
    AND = 6
    OR = 7
    XOR = 8
    APPEND_IF_FITS = 9
    MAX = 12
    MIN = 13
    STAMPED_KEY = 14
    STAMPED_VALUE = 15
    BYTE_MIN = 16
    BYTE_MAX = 17
    COMPARE_AND_CLEAR = 20


def applied(op: Op, value: bytes | None, operand: bytes) -> bytes | None:
    """The value of a key after a mutation; None if the key has none."""
    if op in (Op.SET, Op.STAMPED_VALUE):
        return operand
    if op is Op.COMPARE_AND_CLEAR:
        return None if value == operand else value
    if value is None:
        return operand
    if op is Op.APPEND_IF_FITS:
        return value + operand if len(value + operand) <= MOST_VALUE else value
    if op in (Op.BYTE_MIN, Op.BYTE_MAX):
        return (min if op is Op.BYTE_MIN else max)(value, operand)
    size = len(operand)
    old, new = (int.from_bytes(one[:size], "little") for one in (value, operand))
    number = {
        Op.ADD: lambda: (old + new) % (1 << 8 * size),
        Op.AND: lambda: old & new,
        Op.OR: lambda: old | new,
        Op.XOR: lambda: old ^ new,
        Op.MAX: lambda: max(old, new),
        Op.MIN: lambda: min(old, new),
    }[op]()
    return number.to_bytes(size, "little")


def offset(text: bytes) -> int:
    """Where the stamp goes, which the last four bytes say. Raises Failed if that is not in it."""
    if len(text) < 4:
        raise Failed(2000)
    at = struct.unpack("<I", text[-4:])[0]
    if at + STAMP > len(text) - 4:
        raise Failed(2000)
    return int(at)


def stamped(text: bytes, stamp: bytes) -> bytes:
    """A key or value with its stamp, and without the number that says where that goes."""
    at = offset(text)
    return text[:at] + stamp + text[at + STAMP : -4]


def stamp_of(version: int, order: int) -> bytes:
    """The stamp of a commit: its version, and its number among the commits of that version."""
    return struct.pack(">QH", version, order)
