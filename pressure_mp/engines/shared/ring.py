"""A ring of items in a file that several processes have mapped.

A record is the length of an item, the item, and up to seven bytes of padding. A put writes records
behind the last one, and then the new end; a take reads records, and then writes the new beginning.
So a process that is killed has done all of it or nothing. One process at a time puts, and one
takes: each holds a lock of the file (fcntl(2)), which the kernel releases when the process ends.

The end, and the beginning, are one number each: how many records ever came before it, and in the
lower 28 bits its position in the ring, in units of eight bytes.

The next record may be at another position: then a mark is in place of its length. The file system
allocates the file as far as puts need it. The first part stays allocated, and a short queue goes
round in it. A longer queue goes on behind it, where takes give the memory back to the system:

- The last records are behind the first: no :data:`~.header.TOP`. At the end of the first part, puts
  go to the beginning if more is free there than is queued.
- They are at the beginning, before :data:`~.header.FREED`: if there is no more room, puts go on
  behind the records that were there before, at TOP.
- They are behind TOP, until takes have come there too.

The steps that a signal handler must not interrupt have no call in them (see :mod:`~...interrupts`):
a handler may put and take too, in the midst of any of these functions, as it has the same locks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Protocol

from ... import interrupts
from ...encoding.unsigned_items import Privates
from ...identity.client import client_id_bytes
from ..contract.items import MOST_BYTES
from .header import Header
from .layout import (
    ALLOCATED,
    BOUND,
    BYTES_IN,
    BYTES_OUT,
    CLOSED,
    COUNT,
    FREED,
    HEAD,
    HERE,
    PAGE,
    PLACE,
    RETURNED,
    SIGNED,
    STATE,
    TAIL,
    TAKER,
    TOP,
)

#: Bytes of the ring, most of which the file system never allocates: a short queue stays near the
#: beginning.
_SIZE = 1 << 30
_UNITS = _SIZE >> 3
#: The position at which an empty ring begins, in units: before it there is room for items that are
#: put in front.
_BEGIN = 1 << 18
#: The position up to which the file stays allocated.
_HOT = 1 << 23
#: An empty ring begins there again when it is behind this position.
_NEAR = _BEGIN + (1 << 13)
#: How many bytes are allocated at a time, at most.
_PART = 1 << 22
#: The most units before the first item that are not freed, and how many a take leaves there: a
#: signal handler that takes in the midst of a take frees nothing that the take still reads.
MOST_TAKEN, _LEFT = 1 << 20, 1 << 19
#: In place of a length, and added to a position: the next record is there.
SKIP = 1 << 63
_FIRST = PAGE + 8

_PADS = tuple(bytes(-size % 8) for size in range(8))
_length = struct.Struct("=Q").pack
_SMALL = 1024
_LENGTHS = tuple(map(_length, range(_SMALL)))


class Taker(Protocol):
    """The session that takes items."""

    taken_here: list[bytes]


class Records(Header):
    """The records in one file. Raises OSError when the file cannot be mapped."""

    def __init__(self, path: str, bound: int | None = None) -> None:
        """``bound``: make the file, for a queue with that bound; None opens an existing file."""
        super().__init__(path, bound, _SIZE, 8 * _BEGIN)
        self._lengths = memoryview(self._map)[PAGE:].cast("Q")
        self._frees = False  # a thread gives memory back
        if bound is not None:
            self._cells[FREED] = _BEGIN

    def after_fork(self) -> None:
        super().after_fork()
        self._frees = False

    @property
    def is_full(self) -> bool:
        """Whether a put would find no space just now, for sure."""
        cells = self._cells
        head, bound = cells[HEAD] >> 28, cells[BOUND]
        return 0 < bound <= (cells[TAIL] >> 28) - head & COUNT

    @property
    def refuses(self) -> bool:
        """Whether no item can be put into the ring any more."""
        return self._cells[STATE] != HERE or self._cells[CLOSED] > 0

    # Putting, with the lock for puts

    def append(self, items: Sequence[bytes]) -> int:
        """Add the first items, as many as there is space for; return how many. -1: the ring
        refuses items, or it or the file system has no more room."""
        cells = self._cells
        if cells[STATE] or cells[CLOSED]:
            return -1
        bound = cells[BOUND]
        while True:
            tail, head = cells[TAIL], cells[HEAD]
            number = len(items)
            if bound:
                queued = ((tail >> 28) - (head >> 28) & COUNT) + (cells[RETURNED] and self.returned)
                number = min(number, bound - queued)
                if number <= 0:
                    return 0
            blob, size = _encode(items[:number])
            first = head & PLACE
            # A take of the last record may have gone back to the beginning.
            at = first if tail >> 28 == head >> 28 else tail & PLACE
            while True:
                place = self._find_place(at, len(blob) >> 3)
                if place >= 0 or number == 1:
                    break
                number //= 2
                blob, size = _encode(items[:number])
            goes_round = 0 <= place < at
            if goes_round:
                cells[ALLOCATED] = min(cells[ALLOCATED], 8 * _HOT)
            behind = (place << 3) + len(blob) + 8
            if place < 0 or (behind > cells[ALLOCATED] and not self._allocate(place << 3, behind)):
                return -1
            begin = PAGE + (place << 3)
            stop, end = begin + len(blob), place + (len(blob) >> 3)
            came = (tail >> 28) + number & COUNT
            # From here on there is no call.
            now = cells[HEAD]
            if cells[TAIL] != tail or (now >> 28 == tail >> 28 and now & PLACE != at):
                continue
            if now >> 28 < head >> 28:  # items were put in front, into the free part
                continue
            if place != at:
                self._lengths[at] = SKIP + place
            if goes_round:
                cells[TOP] = at + 1
            self._map[begin:stop] = blob
            cells[BYTES_IN] += size
            cells[TAIL] = came << 28 | end
            self.note_putter(client_id_bytes())
            return number

    def _find_place(self, at: int, units: int) -> int:
        """Find the position for so many units behind ``at``; -1 when there is no room."""
        freed, top = self._cells[FREED], self._cells[TOP]
        if at < freed:
            place = at if at + units < freed else top
            return place if place + units < _UNITS else -1
        may_go_round = not top and _BEGIN + units < freed
        if may_go_round and at + units >= _HOT and at - freed < freed - _BEGIN:
            return _BEGIN
        if at + units < _UNITS:
            return at
        return _BEGIN if may_go_round else -1

    def _allocate(self, begin: int, end: int) -> bool:
        """Have the file system allocate the file from ``begin`` to ``end``; return whether it did.
        A write to a part that is not allocated would end the process when there is no more
        memory."""
        has = max(self._cells[ALLOCATED], begin // PAGE * PAGE)
        least = -(-end // PAGE) * PAGE
        for wanted in (min(has + min(has - 8 * _BEGIN, _PART), _SIZE), least):
            if wanted >= least and self._reserve(has, wanted):
                self._cells[ALLOCATED] = max(wanted, self._cells[ALLOCATED])
                return True
        return False

    def _reserve(self, begin: int, end: int) -> bool:
        try:
            os.posix_fallocate(self._file.number, PAGE + begin, end - begin)
        except OSError as error:
            if interrupts.is_from_outside(error):
                raise
            return False
        return True

    # Taking, with the lock for takes

    def take(self, limit: int, taker: Taker) -> bool:
        """Take the first items, up to ``limit`` and about a megabyte; return whether there was one.
        The ``taker`` has them from the same step on that takes them."""
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
            self._tidy(place)
            return True

    def _tidy(self, place: int) -> None:
        """Make room after items before this position were taken for good."""
        cells = self._cells
        if not 0 <= place - cells[FREED] <= MOST_TAKEN:
            self._free_taken()
        if place > _NEAR and cells[TAIL] >> 28 == cells[HEAD] >> 28:
            self.putting.run(self._rewind, 0.0)

    def _rewind(self) -> None:
        """Let an empty ring begin at its beginning again, so that it stays small; with both
        locks."""
        cells = self._cells
        tail, head = cells[TAIL], cells[HEAD]
        is_empty = tail >> 28 == head >> 28 and head & PLACE == self._first_place()
        if is_empty and self._free(_HOT, _UNITS, _BEGIN):
            # In this order: the beginning says where the next record of an empty ring is written.
            cells[TAIL] = tail - (tail & PLACE) + _BEGIN
            cells[HEAD] = head - (head & PLACE) + _BEGIN

    def _first_place(self) -> int:
        """The position of the first record that is in use."""
        return self._cells[HEAD] & PLACE

    def _free_taken(self) -> None:
        """Let puts use the room of taken items, and give memory back to the system."""
        first, freed = self._first_place(), self._cells[FREED]
        if first < freed:  # it is at the beginning
            if self._cells[TAIL] & PLACE < freed:
                self.putting.run(self._end_round, 0.0)
        elif first - freed > MOST_TAKEN:
            end = (first - _LEFT) * 8 // PAGE * PAGE >> 3
            self._free(freed, end, end)

    def _end_round(self) -> None:
        """Note that all records are at the beginning, if so; with both locks."""
        freed = self._cells[FREED]
        if self._first_place() < freed and self._cells[TAIL] & PLACE < freed:
            self._free(freed, _UNITS, _BEGIN)

    def _free(self, begin: int, end: int, freed: int) -> bool:
        """Give memory back to the system, and then let puts use all up to ``freed``. Returns False
        in a signal handler that comes in the midst of this."""
        cells = self._cells
        if self._frees:
            return False
        self._frees = True
        try:
            if max(cells[ALLOCATED], 8 * cells[TOP]) > 8 * _HOT:
                self.remove(8 * max(begin, _HOT), 8 * end)
            if self._first_place() >= cells[TOP] or freed == _BEGIN:
                cells[TOP] = 0
            if freed == _BEGIN:
                cells[ALLOCATED] = min(cells[ALLOCATED], 8 * _HOT)
            cells[FREED] = freed
        finally:
            self._frees = False
        return True

    def give_back(self, items: list[bytes]) -> bool:
        """Put taken items in front, and empty the list; with the lock for puts, too. Returns False
        when there is no room for them."""
        blob, size = _encode(items)
        units = len(blob) >> 3
        cells = self._cells
        while True:
            tail, head = cells[TAIL], cells[HEAD]
            first = head & PLACE
            place = first - units
            goes_round = cells[TOP] > 0
            if place < 0 or (goes_round and place < cells[FREED] <= first):
                return False
            if not self._reserve(8 * place, 8 * first):
                return False
            begin = PAGE + (place << 3)
            stop = begin + len(blob)
            begins = (head >> 28) - len(items) & COUNT
            # From here on there is no call.
            if cells[HEAD] != head or cells[TAIL] != tail:
                continue
            self._map[begin:stop] = blob
            cells[BYTES_OUT] -= size
            if place < cells[FREED] and not goes_round:
                cells[FREED] = place
            if tail >> 28 == head >> 28:
                cells[TAIL] = tail - (tail & PLACE) + first
            cells[HEAD] = begins << 28 | place
            del items[:]
            return True

    def read(self, skip: int, limit: int) -> list[bytes]:
        """Read the items behind the first ``skip``, up to ``limit`` and about a megabyte; they
        stay."""
        head = self._cells[HEAD]
        before, _, place = self._read(head, skip)
        if len(before) < skip:
            return []
        begins = (head >> 28) + skip & COUNT
        return self._read(begins << 28 | place, limit)[0]

    def _read(self, begin: int, limit: int) -> tuple[list[bytes], int, int]:
        """Read items from a position on. Returns them, their size, and the position behind them."""
        found, lengths, place = self._map, self._lengths, begin & PLACE
        number = min(limit, (self._cells[TAIL] >> 28) - (begin >> 28) & COUNT)
        items: list[bytes] = Privates() if self._cells[SIGNED] else []
        size, add = 0, items.append
        for _ in range(number):
            length = lengths[place]
            if length >= SKIP:
                place = length - SKIP
                length = lengths[place]
            at = _FIRST + (place << 3)
            add(found[at : at + length])
            size += length
            place += length + 15 >> 3
            if size >= MOST_BYTES:
                break
        return items, size, place

    def advance(self, first: int) -> None:
        """Take all records before the number ``first`` that are still there."""
        cells, lengths = self._cells, self._lengths
        while True:
            head, size = cells[HEAD], 0
            number, place = first - (head >> 28) & COUNT, head & PLACE
            if not 0 < number <= (cells[TAIL] >> 28) - (head >> 28) & COUNT:
                return
            for _ in range(number):
                length = lengths[place]
                if length >= SKIP:
                    place = length - SKIP
                    length = lengths[place]
                size += length
                place += length + 15 >> 3
            # From here on there is no call.
            if cells[HEAD] == head:
                cells[BYTES_OUT] += size
                cells[HEAD] = (first & COUNT) << 28 | place
                self._tidy(place)
                return


def _encode(items: Sequence[bytes]) -> tuple[bytes, int]:
    """Make the records of these items. Returns the records, and the size of the items."""
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
