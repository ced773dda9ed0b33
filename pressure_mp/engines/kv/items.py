"""The queue of items of one name, in a store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from ..contract.default_replies import reply_alone
from ..contract.items import Take, TakeBack, TakeBackReply, Taken, TakeReply
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..requests import queue
from ..requests.deliveries import count_back
from ..requests.line import Lines
from ..requests.state import QueueState, queue_of
from .head import Head
from .line import Session, StoredLine, Took
from .orders import ORDERS, Fifo
from .packing import END, pack
from .records import DELIVERY, JSON, READER, load_entry
from .space import NamedQueue, Space, StoredPlace
from .store import How
from .unit import Names, StoredLeases, StoredSet, Table, Unit, contents


class StoredRejected:
    """The items that were set aside, the oldest first: by number, and by a hash to find them."""

    def __init__(self, unit: Unit, prefix: bytes) -> None:
        self._txn, self._prefix = unit.txn, prefix + b"i"
        self._hashes: StoredSet[tuple[bytes, int]] = StoredSet(unit, prefix + b"h")
        #: The number of items, and the number of the last one.
        self._counts: Table[str, int] = Table(unit, prefix + b"c", JSON)

    def append(self, item: bytes) -> None:
        last = self._counts["last"] = self._counts.get("last", 0) + 1
        self._counts["length"] = len(self) + 1
        self._txn.set(self._prefix + pack((last,)), item)
        self._hashes.add((_hash(item), last))

    def remove(self, item: bytes) -> None:
        number = next(self._hashes.behind(_hash(item)))[1]
        self._hashes.remove((_hash(item), number))
        self._txn.clear(self._prefix + pack((number,)))
        self._counts["length"] = len(self) - 1

    def __contains__(self, item: object) -> bool:
        return isinstance(item, bytes) and any(True for _ in self._hashes.behind(_hash(item)))

    def __len__(self) -> int:
        return self._counts.get("length", 0)

    def __getitem__(self, some: slice) -> list[bytes]:
        limit = len(self) if some.stop is None else some.stop
        return [item for _, item in self._txn.range(self._prefix, self._prefix + END, limit)]


def _hash(item: bytes) -> bytes:
    return hashlib.sha256(item).digest()


class StoredState(QueueState):
    """A queue that was created and not deleted, of which the head has the counts."""

    items: Fifo

    def __init__(self, slot: StoredSlot, about: list[Any]) -> None:
        self.head: Head
        self._unit, self._prefix = slot.unit, slot.prefix
        self.head = self.counts = slot.head
        self.lines, self.clock = slot.lines, slot.clock
        self.bound, self.discipline, self.closed, self.dropping, self.had_producers = about
        self.items = ORDERS[self.discipline](self._unit, self._prefix + b"i", self.head)

    def next_number(self) -> int:
        return self.head.next("number")

    def flush(self) -> None:
        for end in ("producer", "consumer"):
            if end in self.__dict__:
                self.head.set(end, self.__dict__[end])
        about = [self.bound, self.discipline, self.closed, self.dropping, self.had_producers]
        self.head.flush(about)

    def __getattr__(self, name: str) -> Any:
        """Read a part of the state when it is first asked for."""
        made = self.__dict__[name] = _PARTS[name](self, self._unit, self._prefix)
        return made


_PARTS: dict[str, Callable[[StoredState, Unit, bytes], Any]] = {
    "producer": lambda state, unit, prefix: state.head.client("producer"),
    "consumer": lambda state, unit, prefix: state.head.client("consumer"),
    "contents": lambda state, unit, prefix: contents(unit, prefix, state.clock),
    "rejected": lambda state, unit, prefix: StoredRejected(unit, prefix + b"r"),
    "users": lambda state, unit, prefix: Names(unit, prefix + b"u"),
    "in_flight": lambda state, unit, prefix: Table(unit, prefix + b"f", DELIVERY),
    "readers": lambda state, unit, prefix: Table(unit, prefix + b"R", READER),
    "consumers": lambda state, unit, prefix: StoredLeases(unit, prefix + b"C"),
    "producers": lambda state, unit, prefix: Table(unit, prefix + b"P", JSON),
}


class StoredSlot(StoredPlace):
    """The place of a queue of items."""

    _kind = "i"
    state: StoredState | None

    def __init__(self, space: Space, unit: Unit, name: str) -> None:
        super().__init__(space, unit, name)
        self.lines = Lines(*(StoredLine(self.waiters, what) for what in "ptj"))
        self.head = unit.head(self.prefix + b"h")
        if self.head.about is not None:
            self._make(self.head.about)

    def _make(self, about: list[Any]) -> StoredState:
        self.state = StoredState(self, about)
        return self.state

    def create(self, bound: int, discipline: str) -> StoredState:
        self._note_name()
        return self._make([bound, discipline, False, False, False])

    def _flush(self) -> None:
        if self.state is not None:
            self.state.flush()


class StoredItems(NamedQueue):
    """The queue of items of one name."""

    _rules, _make = queue, StoredSlot

    def call(self, request: Request, caller: Session, how: How) -> Any:
        if (found := reply_alone(request)) is not None:
            return found
        if isinstance(request, TakeBack):
            return self._take_back(request, caller, how)
        if isinstance(request, Take) and request.hold is None:
            return self._take_for_good(request, caller, how)
        return super().call(request, caller, how)

    def _take_for_good(self, request: Take, caller: Session, how: How) -> TakeReply:
        def body(slot: StoredSlot) -> TakeReply:
            reply: TakeReply = queue.do(slot, request, caller)
            state = slot.state
            caller.took = Took(state.items.taken) if state and isinstance(reply, Taken) else None
            return reply

        return self._write(body, caller, how)

    def _take_back(self, request: TakeBack, caller: Session, how: How) -> TakeBackReply:
        took: Took = request.call

        def body(slot: StoredSlot) -> TakeBackReply:
            state = queue_of(slot, caller.discipline)
            if not isinstance(state, StoredState):  # there is none
                return Outcome.MISSING
            if took.is_done:
                return Outcome.DONE
            entries = [load_entry(value) for _, value in took.taken]
            if request.if_open and state.closed:
                return Taken([entry.item for entry in entries])
            count_back(state, entries)
            for entry in entries:
                _, token = state.contents.weigh(entry.item)
                if token:
                    state.contents.queue(token)
            if state.dropping:
                state.counts.add("done", len(entries))
            else:
                state.items.restore(took.taken)
            queue.wake_ready(state, slot.lines)
            return Outcome.DONE

        return self._write(body, took, how)
