"""What is reserved of a ring, for a reader that hands it out."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from .header import (
    COUNT,
    ENDED,
    HEAD,
    HERE,
    LONGEST_NAME,
    MOST_ENDED,
    NEXT_ENDED,
    READ_FROM,
    READ_HANDED,
    READ_UNTIL,
    READER,
    READS,
    STATE,
    TAIL,
    TAKER,
    WANTED,
)
from .ring import Records


class Reading(NamedTuple):
    """The last reservation: who has it, the number of the first record, how many items the reader
    had handed out before, and when its lease ends, in nanoseconds of the monotonic clock."""

    reader: str
    first: int
    handed: int
    until: int


class Ring(Records):
    """One file, as all use it; the methods here are called with the lock of those who take. Raises
    OSError when it cannot be mapped."""

    def __init__(self, path: str, bound: int | None = None) -> None:
        """``bound``: make the file, for a queue with that bound; else it is there."""
        super().__init__(path, bound)
        #: The readers of this process whose last call was made here.
        self.readers: set[str] = set()
        #: Of each of them, the last call behind which its reservation was ended.
        self.ended_calls: defaultdict[str, int] = defaultdict(int)

    @property
    def reading(self) -> Reading | None:
        """What is reserved."""
        return self.last_reading if self._cells[READS] else None

    @property
    def is_reserved(self) -> bool:
        """Whether anything is, by whoever."""
        return self._cells[READS] > 0

    @property
    def is_free(self) -> bool:
        """Whether there is an item here that nobody has reserved."""
        cells = self._cells
        return cells[STATE] == HERE and not cells[READS] and cells[HEAD] >> 28 != cells[TAIL] >> 28

    @property
    def last_reading(self) -> Reading:
        """What is reserved, or was last; then ``handed`` is how many its reader handed out."""
        cells = self._cells
        length = int.from_bytes(self._map[READER : READER + 8], "little")
        name = self._map[READER + 8 : READER + 8 + length].decode()
        return Reading(name, cells[READ_FROM], cells[READ_HANDED], cells[READ_UNTIL])

    def begin_reading(self, reader: str, call: int, handed: int, until: int) -> bool:
        """Reserve what there is for a reader; False when its name is too long, or its reservation
        was ended behind that call."""
        cells, name, first = self._cells, reader.encode(), self.first
        if len(name) > LONGEST_NAME:
            return False
        self._forget_ended(reader)
        length, end = len(name).to_bytes(8, "little"), READER + 8 + len(name)
        # From here on there is no call.
        if self.ended_calls[reader] >= call:
            return False
        self._map[READER : READER + 8] = length
        self._map[READER + 8 : end] = name
        cells[READ_FROM], cells[READ_HANDED], cells[READ_UNTIL] = first, handed, until
        cells[WANTED] = 0
        cells[READS] = 1
        return True

    def go_on_reading(self, until: int) -> None:
        """Renew its lease."""
        self._cells[READ_UNTIL] = until

    def end_reading(self, handed: int) -> None:
        """Its reader handed out so many in all: the others are for anybody."""
        cells, reading = self._cells, self.last_reading
        self.advance(reading.first + handed - reading.handed & COUNT)
        cells[READ_HANDED] = handed
        cells[READS] = 0
        self.tell_all()

    def note_ended(self, reader: str, handed: int) -> None:
        """Others ended a reader's reservation: so many of all its items count as handed out."""
        cells, mark = self._cells, _mark(reader)
        number = self._find_ended(mark)
        if number is None:
            number = cells[NEXT_ENDED]
            cells[NEXT_ENDED] = number + 1
        slot = ENDED + 2 * (number % MOST_ENDED)
        cells[slot], cells[slot + 1] = mark, handed

    def _forget_ended(self, reader: str) -> None:
        """It begins again: what others ended was told it, or it has no part in it any more."""
        number = self._find_ended(_mark(reader)) if self._cells[NEXT_ENDED] else None
        if number is not None:
            self._cells[ENDED + 2 * (number % MOST_ENDED)] = 0

    def ended(self, reader: str) -> int | None:
        """How many of its items count, if others ended the reservation of that reader."""
        number = self._find_ended(_mark(reader))
        return None if number is None else self._cells[ENDED + 2 * (number % MOST_ENDED) + 1]

    def _find_ended(self, mark: int) -> int | None:
        cells = self._cells
        for number in range(max(cells[NEXT_ENDED] - MOST_ENDED, 0), cells[NEXT_ENDED]):
            if cells[ENDED + 2 * (number % MOST_ENDED)] == mark:
                return number
        return None

    def change_taker(self) -> bool:
        """This process takes items; whether another one was the last that did."""
        before, self._cells[TAKER] = self._cells[TAKER], self.process
        return before not in (0, self.process)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the end of it."""
        return self._cells[WANTED] > 0

    def want(self) -> None:
        """Its reader is to know that somebody waits for the end of it."""
        self._cells[WANTED] = 1


def _mark(reader: str) -> int:
    import hashlib  # which loads OpenSSL: only who meets a reader that was ended needs it

    return int.from_bytes(hashlib.blake2b(reader.encode(), digest_size=8).digest(), "little")
