"""The reservation of items of a ring, for a reader that hands them out."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from .layout import (
    CLOSED,
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
    RETURNED,
    STATE,
    TAIL,
    TAKER,
    WANTED,
)
from .ring import Records


class Reading(NamedTuple):
    """The last reservation: its reader, the number of the first record, how many items the reader
    had handed out before, and the end of its lease, in nanoseconds of the monotonic clock."""

    reader: str
    first: int
    handed: int
    until: int


class Ring(Records):
    """The ring in one file, with its reservation; the methods here are called with the lock for
    takes. Raises OSError when the file cannot be mapped."""

    def __init__(self, path: str, bound: int | None = None) -> None:
        """``bound``: make the file, for a queue with that bound; None opens an existing file."""
        super().__init__(path, bound)
        #: The readers of this process whose last call was done in shared memory.
        self.readers: set[str] = set()
        #: For each of them, the last call after which its reservation was ended.
        self.ended_calls: defaultdict[str, int] = defaultdict(int)

    @property
    def reading(self) -> Reading | None:
        return self.last_reading if self._cells[READS] else None

    @property
    def is_reserved(self) -> bool:
        return self._cells[READS] > 0

    @property
    def is_free(self) -> bool:
        """Whether there is an item, and no reader has reserved items."""
        cells = self._cells
        return (
            cells[STATE] == HERE
            and not cells[READS]
            and cells[HEAD] >> 28 != cells[TAIL] >> 28
            and cells[CLOSED] < 2
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is no item, and no other reply to a request for one."""
        cells = self._cells
        tail = cells[TAIL]
        return (
            cells[HEAD] >> 28 == tail >> 28
            and cells[STATE] == HERE
            and not (cells[READS] or cells[CLOSED] or cells[RETURNED])
            and cells[TAIL] == tail  # so it was empty all the time
        )

    @property
    def last_reading(self) -> Reading:
        """The reservation, or the last one; then ``handed`` is how many items its reader handed
        out."""
        cells = self._cells
        length = int.from_bytes(self._map[READER : READER + 8], "little")
        name = self._map[READER + 8 : READER + 8 + length].decode()
        return Reading(name, cells[READ_FROM], cells[READ_HANDED], cells[READ_UNTIL])

    def begin_reading(self, reader: str, call: int, handed: int, until: int) -> bool:
        """Reserve the items for a reader. Returns False when its name is too long, or its
        reservation was ended after that call."""
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
        """Renew the lease of the reservation."""
        self._cells[READ_UNTIL] = until

    def end_reading(self, handed: int) -> None:
        """End the reservation: its reader handed out ``handed`` items in all, and any client may
        take the others."""
        cells, reading = self._cells, self.last_reading
        self.advance(reading.first + handed - reading.handed & COUNT)
        cells[READ_HANDED] = handed
        cells[READS] = 0
        self.tell_all()

    def note_ended(self, reader: str, handed: int) -> None:
        """Note that another process ended a reader's reservation: ``handed`` items in all count as
        handed out."""
        cells, mark = self._cells, _mark(reader)
        number = self._find_ended(mark)
        if number is None:
            number = cells[NEXT_ENDED]
            cells[NEXT_ENDED] = number + 1
        slot = ENDED + 2 * (number % MOST_ENDED)
        cells[slot], cells[slot + 1] = mark, handed

    def _forget_ended(self, reader: str) -> None:
        """Remove the note about a reader that reserves again: it knows the end of its last
        reservation, or does not need it any more."""
        number = self._find_ended(_mark(reader)) if self._cells[NEXT_ENDED] else None
        if number is not None:
            self._cells[ENDED + 2 * (number % MOST_ENDED)] = 0

    def ended(self, reader: str) -> int | None:
        """Return how many items of a reader count as handed out, if another process ended its
        reservation."""
        number = self._find_ended(_mark(reader))
        return None if number is None else self._cells[ENDED + 2 * (number % MOST_ENDED) + 1]

    def _find_ended(self, mark: int) -> int | None:
        cells = self._cells
        for number in range(max(cells[NEXT_ENDED] - MOST_ENDED, 0), cells[NEXT_ENDED]):
            if cells[ENDED + 2 * (number % MOST_ENDED)] == mark:
                return number
        return None

    def change_taker(self) -> bool:
        """Note that this process takes items. Returns whether another process took the last
        ones."""
        before, self._cells[TAKER] = self._cells[TAKER], self.process
        return before not in (0, self.process)

    @property
    def is_wanted(self) -> bool:
        """Whether a client waits for the end of the reservation."""
        return self._cells[WANTED] > 0

    def want(self) -> None:
        """Let the reader know that a client waits for the end of its reservation."""
        self._cells[WANTED] = 1


def _mark(reader: str) -> int:
    import hashlib  # loads OpenSSL, which only another process's end of a reservation needs

    return int.from_bytes(hashlib.blake2b(reader.encode(), digest_size=8).digest(), "little")
