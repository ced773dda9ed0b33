"""The engine of queues in a file of SQLite."""

from __future__ import annotations

import os

from ..contract.brokers import Finding
from ..contract.session import AsyncSessionIn, SessionIn
from ..kv.engine import KvBinding, KvEngine
from ..kv.items import StoredItems
from ..kv.tasks import StoredTasks
from ..kv.transactions import AsyncTransactionSession, CallersStore, TransactionSession
from .address import SqliteAddress
from .callers import SqliteTransaction
from .store import SqliteStore

#: The stores of this process, by the real paths of their files. A file has one, whatever the
#: addresses: a call in the midst of another one must not wait for its lock.
_stores: dict[str, SqliteStore] = {}


class SqliteEngine(KvEngine):
    """The queues in one file."""

    def __init__(self, address: SqliteAddress) -> None:
        path = os.path.realpath(address.path)
        store = _stores.setdefault(path, SqliteStore(path))
        super().__init__(address, store, self._find, SqliteBinding)

    def _find(self) -> list[Finding]:
        assert isinstance(self.store, SqliteStore)
        return self.store.examine()


class SqliteBinding(KvBinding):
    """One queue in a file."""

    def session_in(self, connection: object) -> SessionIn:
        return TransactionSession(self, self._joined(connection))

    def asession_in(self, connection: object) -> AsyncSessionIn:
        return AsyncTransactionSession(self, self._joined(connection))

    def _joined(self, connection: object) -> CallersStore:
        queue = self.queue
        assert isinstance(queue, (StoredItems, StoredTasks))
        store = queue.space.store
        assert isinstance(store, SqliteStore)
        return SqliteTransaction(store, connection, queue.name)
