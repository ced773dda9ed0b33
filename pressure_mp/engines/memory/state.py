"""What a broker keeps of a queue."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from .orders import Entry, Storage
from .parts import Parts


@dataclass
class Flight:
    """An item in flight. ``passed``: another process said that it is dealt with."""

    entry: Entry
    owner: str
    call: int
    limit: int
    token: str = ""  # of an item whose content is in parts
    passed: bool = False


@dataclass
class Reader:
    """A handle that fetches items ahead: its last call, what that fetched, how many of these it is
    known to have handed out, and until when it counts as one that consumes, in ms."""

    call: int
    entries: list[Entry]
    handed: int
    until: int

    @property
    def left(self) -> list[Entry]:
        return self.entries[self.handed :]


@dataclass
class FifoState:
    """Everything a broker keeps of one queue."""

    bound: int
    discipline: str
    format: str
    items: Storage
    closed: bool = False
    dropping: bool = False  # shut down with immediate: what comes back is dropped
    producer_id: bytes | None = None
    consumer_id: bytes | None = None
    produced: list[int] = field(default_factory=lambda: [0, 0])
    consumed: list[int] = field(default_factory=lambda: [0, 0])
    done: int = 0
    rejected: list[bytes] = field(default_factory=list)
    users: set[str] = field(default_factory=set)
    seqs: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    flights: dict[int, Flight] = field(default_factory=dict)
    presence: dict[str, int] = field(default_factory=dict)  # the end of each owner's lease, in ms
    readers: dict[str, Reader] = field(default_factory=dict)
    parts: Parts = field(default_factory=Parts)
    producers: dict[str, int] | None = None  # the same of producers; None: there was never one

    @property
    def unfinished(self) -> int:
        return max(self.produced[0], self.consumed[0]) - self.done

    @property
    def has_room(self) -> bool:
        return not 0 < self.bound <= len(self.items)

    def append(self, item: bytes, order: bytes, client: str) -> None:
        """Queue an item and count it."""
        self.items.put(Entry(item), order)
        self.produced[0] += 1
        size, token = self.parts.weigh(item)
        if token:
            self.parts.queue(token)
        self.produced[1] += size
        self.producer_id = client.encode()

    def pop(self, client: str) -> Entry:
        """Take the item whose turn it is, and count it."""
        entry = self.items.take()
        self.consumed[0] += 1
        self.consumed[1] += self.parts.weigh(entry.item)[0]
        self.consumer_id = client.encode()
        return entry

    def has_left(self, reader: str) -> bool:
        """Whether something is left that a reader fetched, and is not known to have handed out."""
        found = self.readers.get(reader)
        return found is not None and bool(found.left)

    def ended(self, owner: str | None) -> bool:
        """Whether every producer has ended; for the owner of flights: and nothing comes back."""
        elsewhere = owner is not None and (
            any(flight.owner != owner and not flight.passed for flight in self.flights.values())
            or any(owner_of(name) != owner and reader.left for name, reader in self.readers.items())
        )
        return self.producers == {} and not elsewhere


def owner_of(reader: str) -> str:
    """The process that answers for what a reader fetched."""
    return reader.rpartition("#")[0]
