"""A ring of items in a file that several processes have mapped.

A record is the length of an item, the item, and up to seven bytes more. Those who put write records
behind the last one, and then the new end; those who take read, and then write the new beginning. So
a process that is killed has done all of it or nothing. One process at a time puts, and one takes:
each holds a lock of the file (fcntl(2)), which the kernel releases when the process ends.

The end, and the beginning, are one number: how many records ever came before it, and in the lower
28 bits where it is in the ring, in units of eight bytes.

What must not be torn apart by a signal handler has no call in it (see :mod:`~...interrupts`): a
handler may put and take too, in the midst of any of these functions, as it has the same locks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Protocol

from ... import interrupts
from ...encoding.unsigned_items import Privates
from ..contract.items import MOST_BYTES
from .header import (
    ALLOCATED,
    BYTES_IN,
    BYTES_OUT,
    COUNT,
    HEAD,
    PAGE,
    PLACE,
    SIGNED,
    TAIL,
    TAKER,
    Header,
)

#: Bytes of the ring, most of which are never there: a queue that is short stays near its begin.
_SIZE = 1 << 26
_UNITS = _SIZE >> 3
#: Where an empty ring begins, in units: before that there is room for what is put back in front.
_BEGIN = 1 << 18
#: It begins there again when it is further in than this many units.
_NEAR = _BEGIN + (1 << 13)
#: The length of no item: the next record is where an empty ring begins.
_SKIP = 1 << 63
_FIRST = PAGE + 8

_PADS = tuple(bytes(-size % 8) for size in range(8))
_length = struct.Struct("=Q").pack
_SMALL = 1024
_LENGTHS = tuple(map(_length, range(_SMALL)))


class Taker(Protocol):
    """Who takes items."""

    taken_here: list[bytes]


class Records(Header):
    """The items in one file. Raises OSError when it cannot be mapped."""

    def __init__(self, path: str, bound: int | None = None) -> None:
        """``bound``: make the file, for a queue with that bound; else it is there."""
        super().__init__(path, bound, _SIZE, 8 * _BEGIN)
        self._lengths = memoryview(self._map)[PAGE:].cast("Q")

    # Putting, with the lock of those who put

    def append(self, items: Sequence[bytes]) -> int:
        """Add the first items, as many as there is space for; returns how many. -1: the ring has no
        more room, or the file system."""
        cells, bound = self._cells, self.bound
        while True:
            tail, head = cells[TAIL], cells[HEAD]
            number = len(items)
            if bound:
                number = min(number, bound - ((tail >> 28) - (head >> 28) & COUNT))
                if number <= 0:
                    return 0
            blob, size = _encode(items[:number])
            first = head & PLACE
            # Who takes the last one may have gone back to the begin.
            at = first if tail >> 28 == head >> 28 else tail & PLACE
            while True:
                place, skips = self._find_place(at, first, len(blob) >> 3)
                if place >= 0 or number == 1:
                    break
                number //= 2
                blob, size = _encode(items[:number])
            behind = (place << 3) + len(blob) + 8
            if place < 0 or (behind > cells[ALLOCATED] and not self._allocate(behind)):
                return -1
            begin = PAGE + (place << 3)
            stop, end = begin + len(blob), place + (len(blob) >> 3)
            came = (tail >> 28) + number & COUNT
            # From here on there is no call.
            now = cells[HEAD]
            if cells[TAIL] != tail or (now >> 28 == tail >> 28 and now & PLACE != at):
                continue
            if now >> 28 < head >> 28:  # something was put back in front, into what was free
                continue
            if skips:
                self._lengths[at] = _SKIP
            self._map[begin:stop] = blob
            cells[BYTES_IN] += size
            cells[TAIL] = came << 28 | end
            return number

    @staticmethod
    def _find_place(at: int, first: int, units: int) -> tuple[int, bool]:
        """Where so many units go, and whether they skip the rest of the ring; -1 for nowhere. One
        unit stays free: a full ring is not an empty one."""
        if at >= first:
            if at + units < _UNITS:
                return at, False
            return (_BEGIN, True) if _BEGIN + units < first else (-1, False)
        return (at, False) if at + units < first else (-1, False)

    def _allocate(self, end: int) -> bool:
        """Have the file system reserve what comes before ``end``; whether it did. To write where it
        did not would end the process when there is no more memory."""
        has = self._cells[ALLOCATED]
        grown = 2 * (has - 8 * _BEGIN) + 8 * _BEGIN
        wanted = min(max(-(-end // PAGE) * PAGE, grown), _SIZE)
        if not self._reserve(has, wanted):
            return False
        self._cells[ALLOCATED] = max(wanted, self._cells[ALLOCATED])
        return True

    def _reserve(self, begin: int, end: int) -> bool:
        try:
            os.posix_fallocate(self._file.number, PAGE + begin, end - begin)
        except OSError as error:
            if interrupts.is_from_outside(error):
                raise
            return False
        return True

    # Taking, with the lock of those who take

    def take(self, limit: int, taker: Taker) -> bool:
        """Take the first items, up to so many and about a megabyte; whether there was one. The
        ``taker`` has them from the moment on in which they are taken."""
        cells = self._cells
        while True:
            head = cells[HEAD]
            items, size, place = self._read(head, limit)
            begins = (head >> 28) + len(items) & COUNT
            # From here on there is no call.
            if cells[HEAD] != head:
                continue
            if not items:
                return False
            cells[BYTES_OUT] += size
            cells[HEAD] = begins << 28 | place
            cells[TAKER] = self.process
            taker.taken_here = items
            if place > _NEAR and cells[TAIL] >> 28 == begins:
                self.putting.run(self._rewind, 0.0)
            return True

    def _rewind(self) -> None:
        """An empty ring begins again at its begin, so that it stays small; with both locks."""
        tail, head = self._cells[TAIL], self._cells[HEAD]
        if tail >> 28 == head >> 28:
            # In this order: where an empty ring is written next, the beginning says.
            self._cells[TAIL] = tail - (tail & PLACE) + _BEGIN
            self._cells[HEAD] = head - (head & PLACE) + _BEGIN

    def give_back(self, items: list[bytes]) -> bool:
        """Put items in front that were taken, and empty the list; with the lock of those who put,
        too. False when there is no room for them."""
        blob, size = _encode(items)
        units = len(blob) >> 3
        cells = self._cells
        while True:
            tail, head = cells[TAIL], cells[HEAD]
            first = head & PLACE
            at = first if tail >> 28 == head >> 28 else tail & PLACE
            place = first - units
            if place < 0 or (at < first and place <= at):
                return False
            if place < _BEGIN and not self._reserve(8 * place, 8 * min(first, _BEGIN)):
                return False
            begin = PAGE + (place << 3)
            stop = begin + len(blob)
            begins = (head >> 28) - len(items) & COUNT
            # From here on there is no call.
            if cells[HEAD] != head or cells[TAIL] != tail:
                continue
            self._map[begin:stop] = blob
            cells[BYTES_OUT] -= size
            if tail >> 28 == head >> 28:
                cells[TAIL] = tail - (tail & PLACE) + first
            cells[HEAD] = begins << 28 | place
            del items[:]
            return True

    def read(self, skip: int, limit: int) -> list[bytes]:
        """The items behind the first so many, up to ``limit`` and about a megabyte; they stay."""
        head = self._cells[HEAD]
        before, _, place = self._read(head, skip)
        if len(before) < skip:
            return []
        begins = (head >> 28) + skip & COUNT
        return self._read(begins << 28 | place, limit)[0]

    def _read(self, begin: int, limit: int) -> tuple[list[bytes], int, int]:
        """Items, their size, and the place behind them."""
        found, lengths, place = self._map, self._lengths, begin & PLACE
        number = min(limit, (self._cells[TAIL] >> 28) - (begin >> 28) & COUNT)
        items: list[bytes] = Privates() if self._cells[SIGNED] else []
        size, add = 0, items.append
        for _ in range(number):
            length = lengths[place]
            if length == _SKIP:
                place, length = _BEGIN, lengths[_BEGIN]
            at = _FIRST + (place << 3)
            add(found[at : at + length])
            size += length
            place += length + 15 >> 3
            if size >= MOST_BYTES:
                break
        return items, size, place

    def advance(self, first: int) -> None:
        """All records before the one of that number are taken, if they are still there."""
        cells, lengths = self._cells, self._lengths
        while True:
            head, size = cells[HEAD], 0
            number, place = first - (head >> 28) & COUNT, head & PLACE
            if not 0 < number <= (cells[TAIL] >> 28) - (head >> 28) & COUNT:
                return
            for _ in range(number):
                length = lengths[place]
                if length == _SKIP:
                    place, length = _BEGIN, lengths[_BEGIN]
                size += length
                place += length + 15 >> 3
            # From here on there is no call.
            if cells[HEAD] == head:
                cells[BYTES_OUT] += size
                cells[HEAD] = (first & COUNT) << 28 | place
                if place > _NEAR and cells[TAIL] >> 28 == first & COUNT:
                    self.putting.run(self._rewind, 0.0)
                return


def _encode(items: Sequence[bytes]) -> tuple[bytes, int]:
    """The records of these items, and the size of the items."""
    if len(items) == 1:
        item = items[0]
        size = len(item)
        return _length(size) + item + _PADS[size & 7], size
    parts: list[bytes] = []
    size = 0
    for item in items:
        length = len(item)
        size += length
        packed = _LENGTHS[length] if length < _SMALL else _length(length)
        parts += (packed, item, _PADS[length & 7])
    return b"".join(parts), size
