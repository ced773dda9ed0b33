"""An engine of queues in a store, whatever the store is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..contract.address import Address
from ..contract.brokers import Finding
from ..contract.session import DEFAULTS, Options
from .bells import Bells, of_process
from .broker import StoredBroker, StoredHost
from .items import StoredItems
from .session import AsyncStoredSession, StoredQueue, StoredSession
from .space import Space
from .store import Store
from .tasks import StoredTasks


class KvEngine:
    """The queues of one address."""

    opens_at_once = False

    def __init__(
        self,
        address: Address,
        store: Store,
        examine: Callable[[], list[Finding]],
        binding: type[KvBinding],
    ) -> None:
        self.address = address
        self.store = store
        self._binding = binding
        self._examine = examine
        self.bells = of_process
        self.space = Space(store, of_process, address.prefix)

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> KvBinding:
        kind = StoredTasks if discipline == "tasks" else StoredItems
        return self._binding(kind(self.space, name), self.bells, discipline, options)

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> KvBinding:
        return self.bind(name, "fifo" if discipline == "tasks" else "tasks", options)

    def broker(self, options: Options = DEFAULTS) -> KvBinding:
        return KvBinding(StoredBroker(self.space, self._examine), self.bells, "", options)

    def host(self, name: str, options: Options = DEFAULTS) -> KvBinding:
        return KvBinding(StoredHost(self.space, name), self.bells, "", options)

    def after_fork(self) -> None:
        self.store.after_fork()
        self.bells.after_fork()

    def close(self, kept: int = 0) -> None:
        if not kept:
            self.store.close()
            self.bells.close()


@dataclass(frozen=True)
class KvBinding:
    """One queue in a store, the notes of a host, or the broker."""

    queue: StoredQueue
    bells: Bells
    discipline: str
    options: Options

    def session(self) -> StoredSession:
        return StoredSession(self.queue, self.bells, self.discipline, self.options)

    def asession(self) -> AsyncStoredSession:
        return AsyncStoredSession(self.queue, self.bells, self.discipline, self.options)
