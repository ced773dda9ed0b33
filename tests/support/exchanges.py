"""What a handle's threads send, one call after the other, and what happens between two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import inside
import pytest

from pressure_mp.engines.redis.blocking_wire import BlockingWire
from pressure_mp.engines.redis.broker import RedisBroker
from pressure_mp.engines.redis.commands import Command
from pressure_mp.engines.redis.lanes import Lane


class Exchanges:
    """From now on: the operations that are called over the connections of one handle's engine.

    ``before`` and ``after`` have, by the number of a call that takes the fast path, what to do
    just before it is sent, with its connection and its command, and just after its reply. They
    run in the thread that calls; what they call themselves goes over other connections.
    """

    def __init__(self, patch: pytest.MonkeyPatch, handle: Any) -> None:
        self.ops: list[str] = []
        self.before: dict[int, Callable[[BlockingWire, bytes], Any]] = {}
        self.after: dict[int, Callable[[], Any]] = {}
        self._engine = inside.binding(handle).engine
        self._number = 0
        self._pack, self._exchange = Command.pack, BlockingWire.exchange_now
        patch.setattr(Command, "pack", lambda *args: self._note(*args))
        patch.setattr(BlockingWire, "exchange_now", lambda *args: self._pass_on(*args))
        self._name, self._ask = handle.name, RedisBroker._ask
        patch.setattr(RedisBroker, "_ask", lambda *args: self._note_broker(*args))

    async def _note_broker(self, broker: RedisBroker, op: str, parts: Any, names: Any, *rest: Any):
        """A call for several queues, if the handle's is one of them."""
        if self._name in names:
            self.ops.append(op)
        return await self._ask(broker, op, parts, names, *rest)

    def _note(
        self, command: Command, args: tuple[Any, ...], conn: int, lane: Lane, number: bytes
    ) -> bytes:
        if any(wire.lane is lane for wire in self._engine.thread_pool._all):
            self.ops.append(command.script.name)
        return self._pack(command, args, conn, lane, number)

    def _pass_on(self, wire: BlockingWire, packed: bytes) -> Any:
        if wire not in self._engine.thread_pool._all:
            return self._exchange(wire, packed)
        self._number += 1
        number = self._number
        if number in self.before:
            self.before[number](wire, packed)
        reply = self._exchange(wire, packed)
        if number in self.after:
            self.after[number]()
        return reply
