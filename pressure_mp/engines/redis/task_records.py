"""The record of a task on a server, in bytes; and the record of a queue's options.

A record is the state's letter; the priority, so that its bytes sort as the numbers do; and, each in
eight bytes, big-endian: the number of the arrival, the time of the put, the time since which it is
in its state, and the time at which that ends by itself (0: never). In four bytes each follow the
number of its bundle, which only the scripts use, and the number of deliveries; in eight the number
of the take that has it, and in eight the time for which its result is kept (-1: with an inbox).
Then the tube, the key, the owner, the inboxes that are told of it, with spaces between, and the
unique key, each ended by a zero byte; and the report on it, see
:mod:`pressure_mp.encoding.reports`. Times are the server's, in milliseconds since the epoch.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..contract.task_records import Record, StoredTask, TaskSettings

#: The beginning of a record.
HEAD = struct.Struct(">c8s8xQQQ4xIQq")
_NUMBER = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
#: The priority of most tasks.
_USUAL = _BITS.pack(_SIGN)


class PackedRecord:
    """A record as bytes, which are read only as far as attributes need. ``state`` replaces the
    state in the bytes, and ``since`` with ``due`` the times there."""

    __slots__ = ("_due", "_packed", "_read", "_since", "_state")

    def __init__(
        self, packed: bytes, state: str = "", since: int | None = None, due: int = 0
    ) -> None:
        self._packed = packed
        self._state = state
        self._since, self._due = since, due
        self._read: Record | None = None

    @property
    def state(self) -> str:
        return self._state or chr(self._packed[0])

    @property
    def call(self) -> int:
        return int.from_bytes(self._packed[HEAD.size - 16 : HEAD.size - 8], "big")

    @property
    def result_ttl(self) -> int:
        return int.from_bytes(self._packed[HEAD.size - 8 : HEAD.size], "big", signed=True)

    @property
    def inboxes(self) -> str:
        """The inboxes that are told of the task, with spaces between."""
        return self._packed[HEAD.size :].split(b"\0", 4)[3].decode()

    @property
    def tube(self) -> str:
        return "" if not self._packed[HEAD.size] else self._all.tube

    @property
    def key(self) -> str:
        return "" if self._packed[HEAD.size : HEAD.size + 2] == b"\0\0" else self._all.key

    @property
    def unique(self) -> str:
        return self._all.unique

    @property
    def priority(self) -> float:
        return self._all.priority

    @property
    def created(self) -> int:
        return int.from_bytes(self._packed[17:25], "big")

    @property
    def since(self) -> int:
        if self._since is not None:
            return self._since
        return int.from_bytes(self._packed[25:33], "big")

    @property
    def due(self) -> int:
        return self._all.due

    @property
    def deliveries(self) -> int:
        return self._all.deliveries

    @property
    def owner(self) -> str:
        return self._all.owner

    @property
    def report(self) -> str:
        return self._all.report

    def into(self, state: str, since: int | None = None, due: int = 0) -> PackedRecord:
        ends = (self._since, self._due) if since is None else (since, due)
        return PackedRecord(self._packed, state, *ends)

    @property
    def _all(self) -> Record:
        if self._read is None:
            read = unpack(self._packed)
            self._read = read.into(self._state or read.state, self._since, self._due)
        return self._read

    def __repr__(self) -> str:
        return repr(self._all)


def unpack(packed: bytes) -> Record:
    state, priority, *numbers, result_ttl = HEAD.unpack_from(packed)
    texts = packed[HEAD.size :].decode(errors="replace").split("\0", 5)
    tube, key, owner, _, unique, report = texts
    said: Any = tube, owner, report, result_ttl, key, unique
    return Record(state.decode(), decode_priority(priority), *numbers, *said)


def read_tasks(flat: Sequence[Any]) -> list[StoredTask]:
    """Read the tasks in a reply, each an id, a record and data."""
    if len(flat) == 3:
        return [StoredTask(flat[0], PackedRecord(flat[1]), flat[2])]
    records = map(PackedRecord, flat[1::3])
    return [*map(StoredTask, flat[::3], records, flat[2::3])]


def encode_priority(priority: float) -> bytes:
    """Encode a priority as eight bytes that sort as priorities do."""
    if not priority:
        return _USUAL
    (bits,) = _BITS.unpack(_NUMBER.pack(priority))
    return _BITS.pack(bits ^ (_ALL if bits & _SIGN else _SIGN))


def decode_priority(encoded: bytes) -> float:
    """Decode a priority; an int, if it is a whole number."""
    (bits,) = _BITS.unpack(encoded)
    (number,) = _NUMBER.unpack(_BITS.pack(bits ^ (_SIGN if bits & _SIGN else _ALL)))
    return int(number) if number.is_integer() else float(number)


def read_paused(pauses: bytes) -> list[str]:
    """Read the tubes that are paused, with "" for the whole queue."""
    return [one[1:] for one in pauses.decode().split("\0") if one[:1] == "P"]


def dump(settings: TaskSettings) -> str:
    """Encode the options for the record; times are also in it as numbers."""
    return json.dumps(asdict(settings))


def load(text: bytes) -> TaskSettings:
    """Decode the options of a record."""
    return TaskSettings(**json.loads(text))
