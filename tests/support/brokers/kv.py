"""Brokers whose engine keeps its state in a store of ordered keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from brokers.broker import Broker
from pressure_mp.engines import registry
from pressure_mp.engines.kv.items import StoredSlot
from pressure_mp.engines.kv.store import How
from pressure_mp.engines.kv.tasks import StoredTaskPlace
from pressure_mp.engines.kv.unit import Unit


class StoredBroker(Broker):
    """A broker into which tests look by its store."""

    looks = ("pressure_mp.engines.contract.session.TICK",)

    @property
    def _engine(self) -> Any:
        return registry.engine(registry.parse(self.url))

    def clock(self) -> int:
        return look(self._engine, lambda unit: self._engine.space.clock())

    @staticmethod
    def waiters(engine: Any, binding: Any) -> int:
        """Of all queues: the rows that hold sessions."""
        return look(engine, lambda unit: sum(map(len, lines_of(engine, unit))))

    @staticmethod
    def held(engine: Any, binding: Any) -> list[str]:
        def found(unit: Unit) -> list[str]:
            lines = StoredSlot(engine.space, unit, binding.queue.name).lines
            return [f"{[*line.waiting()]}" for line in (lines.putters, lines.takers) if line]

        return look(engine, found)

    def leases(self, name: str, discipline: str) -> list[tuple[str, int]]:
        engine = self._engine

        def found(unit: Unit) -> list[tuple[str, int]]:
            if discipline == "tasks":
                life = StoredTaskPlace(engine.space, unit, name).state
                return list(life.presence.items()) if life else []
            state = StoredSlot(engine.space, unit, name).state
            return list(state.consumers.items()) if state else []

        return look(engine, found)

    @staticmethod
    def contents(engine: Any, handle: Any, what: str) -> int:
        def count(unit: Unit) -> int:
            state = StoredSlot(engine.space, unit, handle.name).state
            return len(getattr(state.contents, {"uploads": "kept"}.get(what, what))) if state else 0

        return look(engine, count)


def look(engine: Any, read: Callable[[Unit], Any]) -> Any:
    """What a function sees in a transaction that changes nothing."""
    return engine.space.write(read, None, How())


def lines_of(engine: Any, unit: Unit) -> Iterator[Any]:
    for name in engine.space.names(unit, "i"):
        yield from StoredSlot(engine.space, unit, name).lines.all
    for name in engine.space.names(unit, "t"):
        line = StoredTaskPlace(engine.space, unit, name).line
        yield from (line.takers(), line.awaiting(), line.readers())
