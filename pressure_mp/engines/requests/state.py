"""The state of a queue of items."""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping, MutableSet
from dataclasses import dataclass, field
from typing import Protocol

from ..contract.items import MOST_BYTES, MOST_ITEMS
from ..contract.replies import Closed, Ended, Outcome
from .contents import Contents
from .kinds import Counter, Leases, OwnLeases, Rejected
from .line import Lines
from .storage import Entry, Storage


@dataclass
class Delivery:
    """An item in flight. ``passed``: another process acknowledged it."""

    entry: Entry
    owner: str
    call: int
    limit: int
    token: str = ""  # of an item whose content is in chunks
    passed: bool = False


@dataclass
class Reader:
    """A handle that prefetches: its last call, 0 if it made none; the items that it is not known to
    have handed out, and how many it is known to have handed out in all; and until when it counts as
    a consumer, in milliseconds, 0 when it has no items, and that call does nothing any more."""

    call: int = 0
    left: list[Entry] = field(default_factory=list)
    handed: int = 0
    until: int = 0

    def end(self, call: int, handed: int) -> list[Entry]:
        """Take away the items that are left when so many were handed out in all, and return
        them."""
        number = min(max(handed - self.handed, 0), len(self.left))
        back = self.left[number:]
        self.call, self.left, self.handed, self.until = call, [], self.handed + number, 0
        return back


@dataclass
class QueueState:
    """A queue that was created and not deleted. Leases are given by their ends, in milliseconds."""

    bound: int
    discipline: str
    items: Storage
    lines: Lines
    contents: Contents
    clock: Callable[[], int]  # the broker's, in milliseconds since the epoch
    #: How many items, and bytes, were put and taken in all: ``produced_messages``,
    #: ``produced_bytes``, ``consumed_messages``, ``consumed_bytes``; how many items are ``done``;
    #: and how often an item in flight was requeued: ``returned``.
    counts: Counter
    closed: bool = False
    dropping: bool = False  # shut down with immediate: requeued items are dropped
    had_producers: bool = False
    rejected: Rejected = field(default_factory=list[bytes])
    users: MutableSet[str] = field(default_factory=set)
    in_flight: MutableMapping[int, Delivery] = field(default_factory=dict)
    readers: MutableMapping[str, Reader] = field(default_factory=dict)
    consumers: Leases = field(default_factory=OwnLeases)
    producers: MutableMapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.producer: str | None = None  # the client that put last, or waits to put
        self.consumer: str | None = None
        self.number = 0  # the last one of an item in flight

    @property
    def unfinished(self) -> int:
        """The number of items that are not done; below 0 after a ``task_done`` too many."""
        value = self.counts.value
        return max(value("produced_messages"), value("consumed_messages")) - value("done")

    @property
    def space(self) -> float:
        """The number of items for which there is space."""
        return self.bound - len(self.items) if self.bound > 0 else math.inf

    @property
    def has_space(self) -> bool:
        return self.space > 0

    @property
    def number_in_flight(self) -> int:
        """The number of items that were taken and may still be requeued."""
        delivered = sum(not delivery.passed for delivery in self.in_flight.values())
        return delivered + sum(len(reader.left) for reader in self.readers.values())

    @property
    def has_no_producers(self) -> bool:
        """Whether there were producers, and all have ended."""
        return self.had_producers and not self.producers

    def next_number(self) -> int:
        """Return the number of an item that is in flight for the first time."""
        self.number += 1
        return self.number

    def add(self, item: bytes, sort_key: bytes, client: str) -> None:
        self.items.put(Entry(item), sort_key)
        size, token = self.contents.weigh(item)
        if token:
            self.contents.queue(token)
        self.counts.add("produced_messages", 1)
        self.counts.add("produced_bytes", size)
        self.producer = client

    def remove(self, client: str) -> Entry:
        """Remove the next item, and count it."""
        entry = self.items.take()
        self.counts.add("consumed_messages", 1)
        self.counts.add("consumed_bytes", self.contents.weigh(entry.item)[0])
        self.consumer = client
        return entry

    def remove_some(self, limit: int, client: str) -> list[Entry]:
        """Remove the next item, and the items that one call may take together with it, and count
        them. An item whose content is in chunks is taken alone."""
        is_alone = self.is_next_large
        removed = [self.remove(client)]
        space = MOST_BYTES - len(removed[0].item)
        while len(removed) < min(limit, MOST_ITEMS) and self.items and not is_alone:
            space -= len(self.items.next().item)
            if space < 0 or self.is_next_large:
                break
            removed.append(self.remove(client))
        return removed

    @property
    def is_next_large(self) -> bool:
        """Whether the content of the next item is in chunks."""
        return bool(self.contents.weigh(self.items.next().item)[1])

    def end_of_items(self, until_ended: bool, owner: str | None) -> Closed | Ended | None:
        """Return the reason why no item will come any more, for a caller of get or for the owner of
        deliveries; None while an item is queued or may come."""
        if self.items:
            return None
        if self.closed:
            return Outcome.CLOSED
        return Outcome.ENDED if until_ended and self._has_ended(owner) else None

    def _has_ended(self, owner: str | None) -> bool:
        """Tell whether every producer has ended and, for the owner of deliveries, no item of others
        in flight may be requeued."""
        elsewhere = owner is not None and (
            any(
                delivery.owner != owner and not delivery.passed
                for delivery in self.in_flight.values()
            )
            or any(owner_of(name) != owner and reader.left for name, reader in self.readers.items())
        )
        return self.has_no_producers and not elsewhere


class Slot(Protocol):
    """The slot of one name: its queue, if there is one, and its lines, which stay when the queue is
    deleted."""

    @property
    def lines(self) -> Lines: ...

    @property
    def state(self) -> QueueState | None: ...

    def create(self, bound: int, discipline: str) -> QueueState: ...

    def delete(self) -> None: ...


def queue_of(slot: Slot, discipline: str) -> QueueState | None:
    """Return the queue for a caller of this discipline. A queue of another one, which was created
    under the name of a deleted queue, does not exist for that caller."""
    state = slot.state
    return state if state is not None and state.discipline == discipline else None


def owner_of(reader: str) -> str:
    """Return the process that owns the items that a reader prefetched."""
    return reader.rpartition("#")[0]
