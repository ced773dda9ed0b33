"""The broker in a store: its queues, its samples, and the notes of its hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contract.brokers import Finding, ListQueues, QueuePage
from ..contract.default_replies import default_reply
from ..contract.requests import Request
from ..requests.brokers import Broker, for_brokers
from .items import StoredItems
from .packing import END, pack, unpack
from .records import JSON, RAW
from .space import Space
from .store import How
from .tasks import StoredTasks
from .unit import Names, Table, Unit

_KINDS = {"i": StoredItems, "t": StoredTasks}
#: The most queues that one transaction lists: FoundationDB ends a transaction after 5 seconds.
_MOST = 100


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
            page=lambda request: self._list(request, unit),
            find=self._find,
            drop=lambda name, discipline: None,  # this process keeps no queue
            noted=Names(unit, prefix + pack(("host", self._host)), single=False),
            samples=Table(unit, prefix + pack(("samples",)), RAW),
            about=Table(unit, prefix + pack(("broker",)), JSON),
        )

    def _list(self, request: ListQueues, unit: Unit) -> QueuePage:
        prefix = self._space.prefix + pack(("names",))  # a kind and a name follow
        limit = min(request.limit, _MOST)
        begin = prefix + bytes.fromhex(request.after)
        keys = [key for key, _ in unit.txn.range(begin, prefix + END, limit)]
        names = (unpack(key, len(prefix)) for key in keys)
        found = [_KINDS[kind](self._space, name).summary(unit) for kind, name in names]
        after = keys[-1][len(prefix) :].hex() + "00" if len(keys) == limit else ""
        return QueuePage([one for one in found if one is not None], after)

    def leave(self, caller: Any) -> None:
        """Do nothing: no caller waits here."""
