"""The queue of items of one name, in a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contract.default_replies import reply_alone
from ..contract.items import Take, TakeBack, TakeBackReply, Taken, TakeReply
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..requests import queue
from ..requests.line import Lines
from ..requests.returning import count_back
from ..requests.state import QueueState
from .head import Head
from .line import Session, StoredLine, Took, Waiters
from .orders import ORDERS, Fifo
from .packing import pack
from .records import DELIVERY, JSON, READER, load_entry
from .rejected import StoredRejected
from .space import NamedQueue, Space
from .store import How
from .unit import Names, StoredLeases, Table, Unit, contents


class StoredState(QueueState):
    """A queue that was created and not deleted, of which the head has the counts."""

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


class StoredSlot:
    """The slot of one name, in one transaction."""

    def __init__(self, space: Space, unit: Unit, name: str) -> None:
        self._space, self.unit, self._name = space, unit, name
        self.clock = space.clock
        prefix = space.prefix + pack(("i", name))
        self.prefix, lines = prefix + b"q", prefix + b"w"
        waiters = Waiters(unit, lines)
        self.lines = Lines(*(StoredLine(unit, lines, k, self.clock, waiters) for k in "ptj"))
        self.head = unit.head(self.prefix + b"h")
        self.state: StoredState | None = None
        unit.note_head(self._flush)
        if self.head.about is not None:
            self._make(self.head.about)

    def _make(self, about: list[Any]) -> StoredState:
        self.state = StoredState(self, about)
        return self.state

    def create(self, bound: int, discipline: str) -> StoredState:
        self._space.names(self.unit, "i").add(self._name)
        return self._make([bound, discipline, False, False, False])

    def delete(self) -> None:
        self.state = None
        self.unit.clear(self.prefix)
        self._space.names(self.unit, "i").discard(self._name)

    @property
    def items(self) -> Fifo:
        assert self.state is not None
        assert isinstance(self.state.items, Fifo)
        return self.state.items

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
            return self._take_back(request, how)
        if isinstance(request, Take) and request.hold is None:
            return self._take_for_good(request, caller, how)
        return super().call(request, caller, how)

    def _take_for_good(self, request: Take, caller: Session, how: How) -> TakeReply:
        def body(slot: StoredSlot) -> TakeReply:
            reply: TakeReply = queue.do(slot, request, caller)
            caller.took = Took(slot.items.taken) if isinstance(reply, Taken) else None
            return reply

        return self._write(body, caller, how)

    def _take_back(self, request: TakeBack, how: How) -> TakeBackReply:
        took: Took = request.call

        def body(slot: StoredSlot) -> TakeBackReply:
            state = slot.state
            if state is None:
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
                slot.items.restore(took.taken)
            queue.wake_ready(state, slot.lines)
            return Outcome.DONE

        return self._write(body, took, how)
