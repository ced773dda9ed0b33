"""An engine of queues in a store, whatever the store is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ..contract.address import Address
from ..contract.brokers import Finding
from ..contract.session import DEFAULTS, Options
from .bells import Bells, WatchedBells, of_process
from .broker import StoredBroker
from .items import StoredItems
from .packing import pack
from .session import AsyncStoredSession, StoredQueue, StoredSession
from .space import NamedQueue, Space
from .store import Store, Watching
from .tasks import StoredTasks


def bells_of(store: Store, prefix: str) -> Bells:
    if store.traits.one_host:
        return of_process
    return WatchedBells(cast(Watching, store), pack((prefix, "bells")))


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
            and self.queue.space.is_with(other.queue.space)
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
        self.bells = bells_of(store, address.prefix)
        self.space = Space(store, self.bells, address.prefix)

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> KvBinding:
        kind = StoredTasks if discipline == "tasks" else StoredItems
        return self._binding(kind(self.space, name), self.bells, discipline, options)

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> KvBinding:
        return self.bind(name, "fifo" if discipline == "tasks" else "tasks", options)

    def broker(self, options: Options = DEFAULTS) -> KvBinding:
        return KvBinding(StoredBroker(self.space, self.find), self.bells, "", options)

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
