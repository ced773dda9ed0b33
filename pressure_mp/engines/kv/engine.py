"""An engine of queues in a store, whatever the store is, and its broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from ..contract.address import Address
from ..contract.brokers import Finding, ListQueues, QueuePage
from ..contract.default_replies import default_reply
from ..contract.requests import Request
from ..contract.session import DEFAULTS, Options
from ..requests.brokers import Broker, for_brokers
from .bells import Bells, WatchedBells, of_process
from .items import StoredItems
from .packing import END, pack, unpack
from .records import JSON, RAW
from .session import AsyncStoredSession, StoredQueue, StoredSession
from .space import NamedQueue, Space
from .store import How, Store, Watching
from .tasks import StoredTasks
from .unit import Names, Table, Unit

_KINDS = {"i": StoredItems, "t": StoredTasks}
#: The most queues that one transaction lists: FoundationDB ends a transaction after 5 seconds.
_MOST = 100


class StoredBroker:
    """All queues of one address, their samples, and the notes of a host."""

    def __init__(self, space: Space, find: Callable[[], list[Finding]], host: str) -> None:
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


@dataclass(frozen=True)
class KvBinding:
    """One queue in a store, the notes of a host, or the broker."""

    queue: StoredQueue
    bells: Bells
    discipline: str
    options: Options

    def is_beside(self, other: object) -> bool:
        return (
            isinstance(other, KvBinding)
            and isinstance(self.queue, NamedQueue)
            and isinstance(other.queue, NamedQueue)
            and self.bells == other.bells
            and self.queue.space.store == other.queue.space.store
        )

    def session(self) -> StoredSession:
        return StoredSession(self.queue, self.bells, self.discipline, self.options)

    def asession(self) -> AsyncStoredSession:
        return AsyncStoredSession(self.queue, self.bells, self.discipline, self.options)


class KvEngine:
    """The queues of one address."""

    opens_at_once = False
    _binding: type[KvBinding] = KvBinding

    def __init__(self, address: Address, store: Store) -> None:
        self.address = address
        self.store = store
        self.bells: Bells = of_process
        if not store.traits.one_host:
            bells = pack((address.prefix, "bells"))
            self.bells = WatchedBells(cast(Watching, store), bells)
        self.space = Space(store, self.bells, address.prefix)

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> KvBinding:
        kind = StoredTasks if discipline == "tasks" else StoredItems
        return self._binding(kind(self.space, name), self.bells, discipline, options)

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> KvBinding:
        return self.bind(name, "fifo" if discipline == "tasks" else "tasks", options)

    def broker(self, options: Options = DEFAULTS) -> KvBinding:
        return self.host("", options)

    def host(self, name: str, options: Options = DEFAULTS) -> KvBinding:
        return KvBinding(StoredBroker(self.space, self.find, name), self.bells, "", options)

    def find(self) -> list[Finding]:
        """Find what is wrong with the store. The caller is in the midst of a transaction."""
        return []

    def after_fork(self) -> None:
        self.store.after_fork()
        self.bells.after_fork()

    def close(self, kept: int = 0) -> None:
        if not kept:
            self.store.close()
            self.bells.close()
