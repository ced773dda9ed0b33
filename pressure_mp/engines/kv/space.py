"""The store, the clock, the bells and the names, which the queues of one engine share."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ...identity.processes import mark
from ..contract.brokers import QueueSummary
from ..contract.forwarding import Forward, ForwardReply
from ..contract.requests import Request
from ..requests import forwarding
from ..requests.dispatch import Pair, Rules
from ..requests.line import Caller
from .bells import Bells
from .line import Session, Waiters
from .packing import pack
from .records import dump, load
from .store import Fate, How, Transactions, Txn
from .unit import Names, Unit

R = TypeVar("R")


class Space:
    """The queues with one prefix in one store."""

    def __init__(self, store: Transactions, bells: Bells, prefix: str) -> None:
        self.store, self.bells = store, bells
        self.prefix = pack((prefix,))
        self._epoch: int | None = None
        self._is_epoch_kept = False

    def names(self, unit: Unit, kind: str) -> Names[str]:
        """The names of the queues of a kind that exist."""
        return Names(unit, self.prefix + pack(("names", kind)))

    def clock(self) -> int:
        """Return the milliseconds since the epoch. Of the store of one host: by the system's clock
        when a process used it first since the machine was started, and by the monotonic clock since
        then. Between hosts: by the system's clock."""
        if not self.store.traits.one_host:
            return time.time_ns() // 1_000_000
        assert self._epoch is not None
        return self._epoch + time.monotonic_ns() // 1_000_000

    def write(self, body: Callable[[Unit], R], fate: Fate | None, how: How) -> R:
        """Call ``body`` in a transaction, commit it, wake the sessions that it chose, and return
        the result. The other arguments are as for :meth:`Store.write`."""
        traits = self.store.traits

        def do(txn: Txn) -> tuple[R, list[str]]:
            if traits.one_host and not self._is_epoch_kept:
                self._epoch = _epoch(txn)
            unit = Unit(txn, traits, self.bells)
            reply = body(unit)
            unit.flush()
            return reply, unit.woken

        reply, woken = self.store.write(do, fate, how)
        self._is_epoch_kept = True
        if woken:
            self.bells.ring(woken)
        return reply


class StoredPlace:
    """The place of one name, in one transaction."""

    _kind: str
    state: Any = None

    def __init__(self, space: Space, unit: Unit, name: str) -> None:
        self._space, self.unit, self._name = space, unit, name
        self.clock = space.clock
        prefix = space.prefix + pack((self._kind, name))
        self.prefix, self.waiters = prefix + b"q", Waiters(unit, prefix + b"w", space.clock)
        unit.heads.append(self._flush)

    def _flush(self) -> None:
        """Write the head of the queue, if that exists and changed."""

    def _note_name(self) -> None:
        self._space.names(self.unit, self._kind).add(self._name)

    def delete(self) -> None:
        self.state = None
        self.unit.clear(self.prefix)
        self._space.names(self.unit, self._kind).discard(self._name)


class NamedQueue:
    """The queue of one name in a space, and the callers that wait at it."""

    _rules: Rules
    _make: type[StoredPlace]

    def __init__(self, space: Space, name: str) -> None:
        self.space, self.name = space, name

    def within(self, store: Transactions) -> NamedQueue:
        """Return the same queue in a transaction of the caller's."""
        space = copy.copy(self.space)
        space.store = store
        return type(self)(space, self.name)

    def call(self, request: Request, caller: Session, how: How) -> Any:
        if isinstance(request, Forward):
            return self._forward(request, caller, how)
        return self._write(lambda place: self._rules.do(place, request, caller), caller, how)

    def leave(self, caller: Caller) -> None:
        self._write(lambda place: self._rules.leave(place, caller), None, How())

    def summary(self, unit: Unit) -> QueueSummary | None:
        return self._rules.summarize(self._place(unit), self.name)

    def _place(self, unit: Unit) -> Any:
        return self._make(self.space, unit, self.name)

    def _write(self, body: Callable[[Any], R], fate: Fate | None, how: How) -> R:
        return self.space.write(lambda unit: body(self._place(unit)), fate, how)

    def _forward(self, request: Forward, caller: Caller, how: How) -> ForwardReply:
        """Change this queue and another one in one transaction."""
        source: NamedQueue = request.source.queue
        is_one = type(source) is type(self) and (source.space.prefix, source.name) == (
            self.space.prefix,
            self.name,
        )

        def body(unit: Unit) -> ForwardReply:
            target = self._place(unit)
            pair = Pair(target if is_one else source._place(unit), target)
            return forwarding.forward(pair, request, caller)

        return self.space.write(body, None, how)


def _epoch(txn: Txn) -> int:
    """Return the milliseconds of the epoch at which the monotonic clock was 0, as all processes on
    this machine use it."""
    raw = txn.get(b"clock")
    if raw is not None and (found := load(raw)[0])[0] == mark():
        return int(found[1])
    epoch = int(time.time() * 1000) - time.monotonic_ns() // 1_000_000
    txn.set(b"clock", dump([mark(), epoch]))
    return epoch
