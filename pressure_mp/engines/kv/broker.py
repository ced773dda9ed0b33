"""The broker in a store: its queues, its samples, and the notes of its hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..contract.brokers import Finding, QueueSummary
from ..contract.default_replies import default_reply
from ..contract.requests import Request
from ..requests.brokers import Broker, for_brokers
from .items import StoredItems
from .packing import pack
from .records import JSON, RAW
from .space import Space
from .store import How
from .tasks import StoredTasks
from .unit import Names, Table, Unit


class StoredBroker:
    """All queues of one address, their samples, and the notes of a host."""

    def __init__(self, space: Space, find: Callable[[], list[Finding]], host: str = "") -> None:
        self._space, self._find, self._host = space, find, host

    def call(self, request: Request, caller: Any, how: How) -> Any:
        do = for_brokers.get(type(request))
        if do is None:
            return default_reply(request)
        return self._space.write(lambda unit: do(self._state(unit), request), None, how)

    def _state(self, unit: Unit) -> Broker:
        prefix = self._space.prefix
        return Broker(
            clock=self._space.clock,
            summaries=lambda: self._summaries(unit),
            find=self._find,
            drop=lambda name, discipline: None,  # this process keeps no queue
            noted=Names(unit, prefix + pack(("host", self._host)), single=False),
            samples=Table(unit, prefix + pack(("samples",)), RAW),
            about=Table(unit, prefix + pack(("broker",)), JSON),
        )

    def _summaries(self, unit: Unit) -> Iterator[QueueSummary]:
        for kind, queue in ("i", StoredItems), ("t", StoredTasks):
            for name in self._space.names(unit, kind):
                summary = queue(self._space, name).summary(unit)
                if summary is not None:
                    yield summary

    def leave(self, caller: Any) -> None:
        """Do nothing: no caller waits here."""
