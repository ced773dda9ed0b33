"""The queue of items of one name, in a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ..contract.brokers import QueueSummary
from ..contract.default_replies import reply_alone
from ..contract.items import Take, TakeBack, TakeBackReply, Taken
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..requests import queue
from ..requests.administration import summarize
from ..requests.contents import Contents
from ..requests.line import Lines
from ..requests.state import QueueState
from .line import Session, StoredLine, Took, Waiters
from .orders import ORDERS, Fifo
from .packing import pack
from .records import DELIVERY, JSON, RAW, READER, dump, load, load_entry
from .rejected import StoredRejected
from .space import ADDING, Space
from .store import Store
from .unit import Names, StoredSet, Table, Unit

#: The fields of a queue that are kept together; the others are tables.
_HEAD = tuple(
    field.name for field in fields(QueueState) if field.type in ("int", "str", "bool", "str | None")
)


class StoredSlot:
    """The slot of one name, in one transaction."""

    def __init__(self, space: Space, unit: Unit, name: str) -> None:
        self._space, self.unit, self._name = space, unit, name
        prefix = space.prefix + pack(("i", name))
        self._prefix, lines = prefix + b"q", prefix + b"w"
        waiters = Waiters(unit, lines)
        self.lines = Lines(*(StoredLine(unit, lines, k, space.clock, waiters) for k in "ptj"))
        self._raw = unit.txn.get(self._prefix + b"h")
        self.state: QueueState | None = None
        unit.note_head(self._flush)
        if self._raw is not None:
            (values, numbers), _ = load(self._raw)
            head = dict(zip(_HEAD, values, strict=True))
            self.state = self._make(head, head["discipline"], numbers)

    def _make(self, head: dict[str, Any], discipline: str, numbers: list[int]) -> QueueState:
        unit, prefix = self.unit, self._prefix
        chunks: Table[tuple[str, int], bytes] = Table(unit, prefix + b"xc", RAW, False)
        kept: Table[str, int] = Table(unit, prefix + b"xk", JSON)
        ends: StoredSet[tuple[int, str]] = StoredSet(unit, prefix + b"xe")
        return QueueState(
            **head,
            items=ORDERS[discipline](unit, prefix + b"i", numbers),
            lines=self.lines,
            contents=Contents(chunks, kept, ends, self._space.clock),
            clock=self._space.clock,
            rejected=StoredRejected(unit, prefix + b"r"),
            users=Names(unit, prefix + b"u"),
            in_flight=Table(unit, prefix + b"f", DELIVERY),
            readers=Table(unit, prefix + b"R", READER),
            consumers=Table(unit, prefix + b"C", JSON),
            producers=Table(unit, prefix + b"P", JSON),
        )

    def create(self, bound: int, discipline: str) -> QueueState:
        head = {"bound": bound, "discipline": discipline}
        self.state = self._make(head, discipline, [0, 0, 0, 0])
        self._space.names(self.unit, "i").add(self._name)
        return self.state

    def delete(self) -> None:
        self.state = self._raw = None
        self.unit.clear(self._prefix)
        self._space.names(self.unit, "i").discard(self._name)

    @property
    def items(self) -> Fifo:
        assert self.state is not None
        assert isinstance(self.state.items, Fifo)
        return self.state.items

    def _flush(self) -> None:
        if self.state is not None:
            values = [getattr(self.state, name) for name in _HEAD]
            raw = dump([values, self.items.numbers])
            if raw != self._raw:
                self.unit.txn.set(self._prefix + b"h", raw)


class StoredItems:
    """The queue of items of one name, and the callers that wait at it."""

    def __init__(self, space: Space, name: str) -> None:
        self.space, self.name = space, name

    def within(self, store: Store) -> StoredItems:
        """The same queue, in a transaction of the store."""
        return StoredItems(self.space.within(store), self.name)

    def call(self, request: Request, caller: Session, durable: bool, wait: bool) -> Any:
        if (found := reply_alone(request)) is not None:
            return found
        if isinstance(request, TakeBack):
            return self._take_back(request, wait)

        def body(slot: StoredSlot) -> Any:
            if isinstance(request, ADDING):
                slot.unit.txn.will_add()
            reply = queue.do(slot, request, caller)
            if isinstance(request, Take) and request.hold is None and isinstance(reply, Taken):
                caller.took = Took(slot.items.taken)
            return reply

        return self._write(body, caller, durable, wait)

    def _write(
        self, body: Callable[[StoredSlot], Any], fate: Any, durable: bool, wait: bool
    ) -> Any:
        space = self.space
        return space.write(
            lambda unit: body(StoredSlot(space, unit, self.name)), fate, durable, wait
        )

    def _take_back(self, request: TakeBack, wait: bool) -> TakeBackReply:
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
            state.consumed_messages -= len(entries)
            for entry in entries:
                size, token = state.contents.weigh(entry.item)
                state.consumed_bytes -= size
                if token:
                    state.contents.queue(token)
            if state.dropping:
                state.done += len(entries)
            else:
                slot.items.restore(took.taken)
            queue.wake_ready(state, slot.lines)
            return Outcome.DONE

        reply: TakeBackReply = self._write(body, took, False, wait)
        return reply

    def summary(self, unit: Unit) -> QueueSummary | None:
        state = StoredSlot(self.space, unit, self.name).state
        return None if state is None else summarize(state, self.name)

    def leave(self, caller: Session) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""
        self._write(lambda slot: queue.leave(slot, caller), None, False, True)
