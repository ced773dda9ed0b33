"""What a broker keeps of a task beside its data, in bytes; and ids and priorities as such.

A record is the state's letter; the priority, so that its bytes sort as the numbers do; and, each in
eight bytes, big-endian: the number of the arrival, when the task was put, since when it is in its
state, and when that ends by itself (0: never). In four bytes each follow the number of its bundle,
which only the scripts use, and how often it was delivered; in eight the number of the take that has
it. Then the tube and the owner, each ended by a zero byte, and the text of the last error. Times
are the broker's, in milliseconds since the epoch.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from .exceptions import ArgumentError, ArgumentTypeError

_HEAD = struct.Struct(">c8sQQQQ4xIQ")
#: Where it says since when, and until when, the task is in its state.
_SINCE = struct.calcsize(">c8sQQ")
_TIMES = struct.Struct(">QQ")
_NUMBER = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_INTEGER = re.compile(r"0|-?[1-9]\d*")
_SIGN = 1 << 63
#: The priority of most tasks.
_USUAL = 0
_USUAL_BYTES = _BITS.pack(_SIGN)
_ALL = (1 << 64) - 1


class Record(NamedTuple):
    """A task, without its id and its data."""

    state: str
    priority: bytes
    seq: int
    created: int
    since: int
    due: int
    deliveries: int
    call: int
    tube: str = ""
    owner: str = ""
    error: str = ""

    def pack(self) -> bytes:
        """The record's bytes."""
        texts = "\0".join((self.tube, self.owner, self.error)).encode()
        return _HEAD.pack(self.state.encode(), *self[1:8]) + texts


def unpack(record: bytes) -> Record:
    """The record that these bytes are."""
    state, priority, seq, created, since, due, deliveries, call = _HEAD.unpack_from(record)
    tube, owner, error = record[_HEAD.size :].decode(errors="replace").split("\0", 2)
    numbers = seq, created, since, due, deliveries, call
    return Record(state.decode(), priority, *numbers, tube, owner, error)


def state_of(record: bytes) -> str:
    """The letter of the state, without reading the rest."""
    return chr(record[0])


def call_of(record: bytes) -> int:
    """The number of the take that has the task, without reading the rest."""
    return int.from_bytes(record[_HEAD.size - 8 : _HEAD.size], "big")


def has_tube(record: bytes) -> bool:
    """Whether the task is in a tube, without reading the rest."""
    return record[_HEAD.size] != 0


def end(record: bytes, moment: int) -> bytes:
    """The record of the same task when it is gone, since ``moment``."""
    return b"X" + record[1:_SINCE] + _TIMES.pack(moment, 0) + record[_SINCE + _TIMES.size :]


def encode_priority(priority: float) -> bytes:
    """Eight bytes that sort as the priorities do. Raises ArgumentTypeError, ArgumentError."""
    if priority is _USUAL:
        return _USUAL_BYTES
    if not isinstance(priority, (int, float)) or isinstance(priority, bool):
        raise ArgumentTypeError(f"priority is a number, not {type(priority).__name__}")
    try:
        number = float(priority)
    except OverflowError:
        number = float("nan")
    if number != priority:
        raise ArgumentError(f"priority {priority} cannot be kept exactly; a float can be")
    (bits,) = _BITS.unpack(_NUMBER.pack(number + 0.0))
    return _BITS.pack(bits ^ (_ALL if bits & _SIGN else _SIGN))


def decode_priority(encoded: bytes) -> float:
    """The priority; an int, when it is a whole number."""
    (bits,) = _BITS.unpack(encoded)
    (number,) = _NUMBER.unpack(_BITS.pack(bits ^ (_SIGN if bits & _SIGN else _ALL)))
    return int(number) if number.is_integer() else float(number)


def encode_id(task_id: object) -> bytes:
    """An id as text: digits for an int; a str as it is, but after a ``'`` when it could be taken
    for one of these. Raises ArgumentTypeError, ArgumentError."""
    if type(task_id) is int:
        return b"%d" % task_id
    if isinstance(task_id, str):
        if not task_id or "\0" in task_id:
            raise ArgumentError("a task's id is not empty, and has no zero byte")
        quoted = task_id.startswith("'") or _INTEGER.fullmatch(task_id)
        return f"'{task_id}".encode() if quoted else task_id.encode()
    if not isinstance(task_id, int) or isinstance(task_id, bool):
        raise ArgumentTypeError(f"a task's id is an int or a str, not {type(task_id).__name__}")
    return b"%d" % task_id


def decode_id(text: bytes) -> int | str:
    """The id that this is the text of."""
    if text.isdigit() and (text[:1] != b"0" or text == b"0"):
        return int(text)
    found = text.decode(errors="replace")
    if found.startswith("'"):
        return found[1:]
    return int(found) if _INTEGER.fullmatch(found) else found


def check_tube(tube: object) -> str:
    """A tube's name, "" for None. Raises ArgumentTypeError, ArgumentError."""
    if tube is None:
        return ""
    if not isinstance(tube, str):
        raise ArgumentTypeError(f"tube is a str or None, not {type(tube).__name__}")
    if not 0 < len(tube) <= 255 or "\0" in tube:
        raise ArgumentError("a tube's name has 1 to 255 characters, and no zero byte")
    return tube
