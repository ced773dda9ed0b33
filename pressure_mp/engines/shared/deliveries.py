"""A ring whose items can be held: taken, and not done before they are acknowledged.

Each has an entry in the table behind the ring. Its record stays where it is: puts use no memory
from there on. An entry is written before the beginning of the ring goes past its record, and counts
from that moment on: so a process that is killed has taken an item or not.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from ...encoding.unsigned_items import Private, Privates
from ...identity.client import client_id_bytes
from ..contract.items import MOST_BYTES, AcknowledgeReply, Hold, Taken
from ..contract.replies import Outcome
from .header import fixed
from .layout import (
    BYTES_OUT,
    CLOSED,
    COUNT,
    DONE,
    ENTRIES,
    FREED,
    HEAD,
    LAST_TAKER,
    NAME_SIZE,
    PAGE,
    PLACE,
    PREPARED,
    READS,
    RETURNED,
    SET_ASIDE,
    SIGNED,
    STATE,
    TABLE,
    TAIL,
    TAKER,
)
from .reading import Ring
from .ring import MOST_TAKEN, SKIP, Taker

#: The bytes and the numbers of eight bytes of an entry, and how many entries there are.
_SIZE, _CELLS, _MOST = 256, 32, TABLE // 256
#: The number of entries in a page.
_PAGEFUL = PAGE // _SIZE
_new = tuple.__new__
_fixed = struct.Struct("=QQQQQQ")
#: The longest name of an owner, in bytes.
_LONGEST = _SIZE - _fixed.size - 8
#: The places of the position, of the state, of the limit of deliveries and of the length of the
#: owner's name in an entry.
_PLACE, _STATE, _LIMIT, _LENGTH = 1, 2, 4, 6


class State(IntEnum):
    """What became of a taken item."""

    #: Its owner has it.
    HELD = 1
    #: It is taken again before the items in the ring.
    RETURNED = 2
    #: Another process acknowledged it, and its owner does not know.
    PASSED = 3


_HELD, _RETURNED, _PASSED = map(int, State)


class Entry(NamedTuple):
    """A taken item: its number, the position of its record, its :class:`State`; the call that took
    it, how often it may be delivered, how often it was, and its owner."""

    number: int
    place: int
    state: int
    call: int
    limit: int
    deliveries: int
    owner: str

    def pack(self) -> bytes:
        """Return the bytes of the entry."""
        number, *others, owner = self
        return _fixed.pack(number + 1, *others) + _named(owner)


@functools.lru_cache(64)
def _named(owner: str) -> bytes:
    """Return the end of an owner's entries: its name, and the length of that before it."""
    name = owner.encode()
    return (len(name).to_bytes(8, sys.byteorder) + name).ljust(_SIZE - _fixed.size, b"\0")


class HoldingRing(Ring):
    """The ring and the table in one file; the methods here are called with the lock for takes."""

    def __init__(self, path: str, bound: int | None = None) -> None:
        """``bound``: make the file, for a queue with that bound; None opens an existing file."""
        super().__init__(path, bound)
        self._table = PAGE + self._size
        self._numbers = memoryview(self._map)[self._table : self._table + TABLE].cast("Q")
        self._next_entry = 0  # where this process first looks for a free one
        #: With fewer entries this process adds one, and looks for no free one; and how many the
        #: file surely has room for.
        self._adds_until = self._allocated = 0
        #: The indexes of the items that this process held last, by the end of their numbers.
        self._indexes: dict[int, int] = {}
        #: When this process last looked at the owners, and since when it sees some stopped.
        self.looked = 0.0
        self.stopped: dict[str, float] = {}

    # Looking

    @property
    def holds(self) -> bool:
        """Whether an item was ever held."""
        return self._cells[ENTRIES] > 0

    @property
    def has_limits(self) -> bool:
        """Whether an item that was held may be delivered only so often."""
        return any(self._column(_LIMIT))

    @property
    def has_returned(self) -> bool:
        """Whether there may be an item that is to be taken again."""
        return self._cells[RETURNED] > 0

    @property
    def returned(self) -> int:
        """The number of items that were taken and are queued again."""
        return self._count(State.RETURNED) if self._cells[RETURNED] else 0

    @property
    def held(self) -> int:
        """The number of items that their owners have."""
        return self._count(State.HELD)

    def _column(self, place: int) -> list[int]:
        """Read one number of each entry; the number at 0 is 0 if the entry is free."""
        return self._numbers[place : self._cells[ENTRIES] * _CELLS : _CELLS].tolist()

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """List the taken items, and the index of each."""
        first = self.first
        for index, number in enumerate(self._column(0)):
            if 0 < number <= first:
                yield index, self._entry(index)

    def _count(self, *states: State) -> int:
        """Count the taken items of these states."""
        first, both = self.first, zip(self._column(0), self._column(_STATE), strict=False)
        return sum(0 < number <= first and state in states for number, state in both)

    def _entry(self, index: int) -> Entry:
        at = self._table + index * _SIZE
        number, place, state, call, limit, deliveries = _fixed.unpack_from(self._map, at)
        begin = at + _fixed.size + 8
        name = self._map[begin : begin + self._numbers[index * _CELLS + _LENGTH]].decode()
        return Entry(number - 1, place, state, call, limit, deliveries, name)

    def with_state(self, state: State) -> list[Entry]:
        """List the taken items of this state, in their order."""
        return sorted(entry for _, entry in self.entries() if entry.state == state)

    def item(self, entry: Entry) -> bytes:
        """Read a taken item."""
        return self._item(entry.place)[0]

    def _item(self, place: int) -> tuple[bytes, int, int]:
        """Read the record at a position: the item, its position, and the position behind it."""
        length = self._lengths[place]
        if length >= SKIP:
            place = length - SKIP
            length = self._lengths[place]
        at = PAGE + 8 + (place << 3)
        return self._map[at : at + length], place, place + (length + 15 >> 3)

    def _first_place(self) -> int:
        if not self.holds:
            return super()._first_place()
        first, numbers = self.first, self._column(0)
        oldest = min((number for number in numbers if 0 < number <= first), default=0)
        if not oldest:
            return super()._first_place()
        return self._numbers[numbers.index(oldest) * _CELLS + _PLACE]

    @property
    def unfinished(self) -> int:
        """The number of items that were put and are not done."""
        if not self.holds:
            return super().unfinished
        queued = 0 if self.drops else (self._cells[TAIL] >> 28) - self.first
        return queued + self._count(State.HELD, State.RETURNED) - self._cells[DONE]

    @property
    def is_done(self) -> bool:
        """Whether all items that were put are done."""
        cells = self._cells
        is_empty = cells[HEAD] >> 28 == cells[TAIL] >> 28 or self.drops
        return is_empty and not self.unfinished

    @property
    def done(self) -> int:
        """The number of items that are done, without items that were set aside or dropped."""
        if not self.holds:
            return super().done
        taken = self._count(State.HELD, State.RETURNED)
        return self.first - taken + self._cells[DONE] - self._cells[SET_ASIDE]

    # Taking

    def hold(self, limit: int, hold: Hold) -> tuple[list[int], list[bytes]] | None:
        """Take the next items, up to ``limit``; return their numbers, and the items. None: the
        table has no room."""
        if len(hold.owner.encode()) > _LONGEST:
            return None
        cells = self._cells
        if cells[PREPARED]:
            self._forget_prepared()
        if cells[RETURNED] and (found := self._hold_returned(limit, hold)):
            return found
        return self._hold_first(limit, hold)

    def take_at_once(self, hold: Hold | None, taker: Taker | None) -> Taken | None:
        """Take the next item of the ring, for good or with a ``hold``, if there is nothing else to
        do before; only to take it for good needs a ``taker``. It takes the steps of :meth:`take`
        and :meth:`hold` in less time."""
        cells = self._cells
        if cells[STATE] or cells[READS] or cells[CLOSED] > 1:
            return None
        if hold is not None and (cells[RETURNED] or cells[PREPARED]):
            return None
        while True:
            head, entries = cells[HEAD], cells[ENTRIES]
            number, place = head >> 28, head & PLACE
            if number == cells[TAIL] >> 28:
                return None
            length = self._lengths[place]
            if length >= SKIP:
                place = length - SKIP
                length = self._lengths[place]
            begin, behind = PAGE + 8 + (place << 3), place + (length + 15 >> 3)
            item, begins = self._map[begin : begin + length], (number + 1 & COUNT) << 28 | behind
            items = Privates((Private(item),)) if cells[SIGNED] else [item]
            if hold is None:
                taken = _new(Taken, (items, ()))
            else:
                index = self._next_entry
                if index >= entries or self._numbers[index * _CELLS]:
                    index = self._find_entries(1)
                owner, call, limit, _ = hold
                packed = _fixed.pack(number + 1, place, _HELD, call, limit, 1) + _named(owner)
                if index < 0 or len(packed) > _SIZE:
                    return None
                at, end = self._table + index * _SIZE, self._table + (index + 1) * _SIZE
                entries, taken = max(entries, index + 1), _new(Taken, (items, (number,)))
            # From here on there is no call.
            if cells[HEAD] != head:
                continue
            if hold is None and taker is not None:
                cells[BYTES_OUT] += length
                cells[HEAD] = begins
                cells[TAKER] = self.process
                taker.taken_here = items
            else:
                cells[PREPARED], cells[ENTRIES] = 1, entries
                self._map[at:end] = packed
                cells[BYTES_OUT] += length
                cells[HEAD] = begins
                cells[PREPARED] = 0
                self._indexes[number % _MOST] = index
                self._next_entry = index + 1
            if hold is None:
                self._tidy(behind)
            elif not 0 <= behind - cells[FREED] <= MOST_TAKEN:
                self._free_taken()
            self._map[LAST_TAKER : LAST_TAKER + NAME_SIZE] = fixed(client_id_bytes())
            return taken

    def _forget_prepared(self) -> None:
        """Clear the entries that a killed process wrote, and whose items it did not take."""
        numbers, first = self._numbers, self.first
        for index in range(self._cells[ENTRIES]):
            if numbers[index * _CELLS] > first:
                numbers[index * _CELLS] = 0
        self._cells[PREPARED] = 0

    def _hold_returned(self, limit: int, hold: Hold) -> tuple[list[int], list[bytes]] | None:
        cells, state = self._cells, self._numbers
        before = cells[RETURNED]
        found = sorted((entry, at) for at, entry in self.entries() if entry.state == State.RETURNED)
        if not found and cells[RETURNED] == before:
            cells[RETURNED] = 0
        numbers, items = [], self._empty()
        for entry, index in found[:limit]:
            again = entry._replace(
                state=State.HELD,
                call=hold.call,
                limit=hold.limit,
                deliveries=entry.deliveries + 1,
                owner=hold.owner,
            )
            at, packed, item = self._table + index * _SIZE, again.pack(), self.item(entry)
            # A signal handler may have taken it.
            if state[index * _CELLS + _STATE] == State.RETURNED:
                self._map[at : at + _SIZE] = packed
                numbers.append(entry.number)
                items.append(item)
        return (numbers, items) if numbers else None

    def _hold_first(self, limit: int, hold: Hold) -> tuple[list[int], list[bytes]] | None:
        cells = self._cells
        while True:
            head = cells[HEAD]
            items, places, size, place = self._read_places(head, limit)
            number, first = len(items), head >> 28
            if not items:
                return [], items
            index = self._find_entries(number)
            if index < 0:
                return None
            call, most, owner = hold.call, hold.limit, hold.owner
            packed = b"".join(
                Entry(first + at & COUNT, places[at], State.HELD, call, most, 1, owner).pack()
                for at in range(number)
            )
            begin = self._table + index * _SIZE
            end, begins = begin + len(packed), (first + number & COUNT) << 28 | place
            entries = max(cells[ENTRIES], index + number)
            # From here on there is no call.
            if cells[HEAD] != head:
                continue
            cells[PREPARED], cells[ENTRIES] = 1, entries
            self._map[begin:end] = packed
            cells[BYTES_OUT] += size
            cells[HEAD] = begins
            cells[PREPARED] = 0
            if not 0 <= place - cells[FREED] <= MOST_TAKEN:
                self._free_taken()
            return [first + at & COUNT for at in range(number)], items

    def _read_places(self, head: int, limit: int) -> tuple[list[bytes], list[int], int, int]:
        """Read the next items. Returns them, their positions, their size, and the position behind
        them."""
        items, places, size, place = self._empty(), [], 0, head & PLACE
        for _ in range(min(limit, (self._cells[TAIL] >> 28) - (head >> 28) & COUNT)):
            item, at, place = self._item(place)
            items.append(item)
            places.append(at)
            size += len(item)
            if size >= MOST_BYTES:
                break
        return items, places, size, place

    def _empty(self) -> list[bytes]:
        return Privates() if self._cells[SIGNED] else []

    def _find_entries(self, number: int) -> int:
        """Find the index of so many free entries, one behind the other; -1 when there is no room
        for them. Where many items are held, it mostly adds entries, as a look takes long."""
        entries, found = self._cells[ENTRIES], 0
        if entries >= self._adds_until or entries + number > _MOST:
            column = self._column(0)
            if 0 in column:
                for index in range(column.index(0), entries):
                    found = 0 if column[index] else found + 1
                    if found == number:
                        return index + 1 - number
            self._adds_until = 2 * entries
        begin = entries - found
        end = begin + number
        if end > _MOST:
            return -1
        if end > self._allocated:
            whole = -(-end // _PAGEFUL) * _PAGEFUL
            if not self._reserve(self._size + begin * _SIZE, self._size + whole * _SIZE):
                return -1
            self._allocated = whole
        return begin

    # What becomes of taken items

    def acknowledge(self, owner: str, number: int | None) -> AcknowledgeReply | None:
        """Do an :class:`~..contract.items.Acknowledge`; None if the items are not here."""
        if self._cells[STATE]:
            return None
        if number is None:
            return self._acknowledge_oldest()
        index = self._indexes.get(number % _MOST, 0)
        if self._numbers[index * _CELLS] != number + 1:
            index = self._find(number)
            if index < 0:
                return Outcome.LATE
        state, end = self._numbers[index * _CELLS + _STATE], self._table + (index + 1) * _SIZE
        if state == _RETURNED or self._map[end - _SIZE + _fixed.size : end] != _named(owner):
            return Outcome.LATE
        if self._cells[DONE] and state != _PASSED and self.unfinished <= 0:
            return Outcome.EXCESS
        self._numbers[index * _CELLS] = 0
        self._next_entry = index
        return Outcome.PASSED if state == _PASSED else Outcome.DONE

    def _acknowledge_oldest(self) -> AcknowledgeReply:
        held = sorted((entry, at) for at, entry in self.entries() if entry.state == State.HELD)
        if self.unfinished <= 0:
            return Outcome.EXCESS
        if held:
            self._numbers[held[0][1] * _CELLS + _STATE] = State.PASSED
        else:
            self._cells[DONE] += 1
        return Outcome.DONE

    def _find(self, number: int) -> int:
        wanted = number + 1
        column = self._column(0)
        return column.index(wanted) if wanted in column else -1

    def _clear(self, index: int) -> None:
        self._numbers[index * _CELLS] = 0
        self._next_entry = index

    def requeue(self, owner: str, call: int | None, numbers: Sequence[int]) -> list[Entry]:
        """Return the items of an owner to the front; return those that were delivered too often,
        which :meth:`set_aside` removes."""
        aside, cells = [], self._cells
        for index, entry in list(self.entries()):
            is_wanted = call in (None, entry.call) and (not numbers or entry.number in numbers)
            if entry.owner != owner or not is_wanted or entry.state == State.RETURNED:
                continue
            if entry.state == State.PASSED or self.drops:
                self._clear(index)
            elif not numbers and 0 < entry.limit <= entry.deliveries:
                aside.append(entry)
            else:
                at, back = self._table + index * _SIZE, entry._replace(state=State.RETURNED)
                packed = back._replace(deliveries=entry.deliveries - bool(numbers)).pack()
                cells[RETURNED] += 1
                if self._numbers[index * _CELLS + _STATE] == entry.state:
                    self._map[at : at + _SIZE] = packed
        return aside

    def set_aside(self, entry: Entry) -> None:
        """Remove an item that the broker has set aside, or that was moved there."""
        index = self._find(entry.number)
        if index >= 0:
            self._clear(index)

    def drop(self) -> None:
        """Shut the queue down, and drop all items that no process has, with both locks."""
        super().drop()
        for index, entry in list(self.entries()):
            if entry.state == State.RETURNED:
                self._clear(index)
