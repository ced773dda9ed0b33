"""The engine of queues in a file of SQLite."""

from __future__ import annotations

import os

from ... import lifecycle
from ..contract.address import SimpleAddress
from ..contract.brokers import Finding
from ..contract.session import AsyncSessionIn, SessionIn
from ..kv.engine import KvBinding, KvEngine
from ..kv.space import NamedQueue
from ..kv.transactions import AsyncTransactionSession, TransactionSession
from .callers import SqliteTransaction, check_no_transaction
from .store import SqliteStore

#: The stores of this process, by the real paths of their files. A file has one, whatever the
#: addresses: a call in the midst of another one must not wait for its lock.
_stores: dict[str, SqliteStore] = {}


class SqliteBinding(KvBinding):
    """One queue in a file."""

    def check_may_open(self, connection: object) -> None:
        check_no_transaction(connection, self._named.name)

    def session_in(self, connection: object) -> SessionIn:
        return TransactionSession(self, self._joined(connection))

    def asession_in(self, connection: object) -> AsyncSessionIn:
        return AsyncTransactionSession(self, self._joined(connection))

    def _joined(self, connection: object) -> SqliteTransaction:
        queue = self._named
        store = queue.space.store
        assert isinstance(store, SqliteStore)
        return SqliteTransaction(store, connection, queue.name)

    @property
    def _named(self) -> NamedQueue:
        assert isinstance(self.queue, NamedQueue)
        return self.queue


class SqliteEngine(KvEngine):
    """The queues in one file."""

    _binding = SqliteBinding
    store: SqliteStore

    def __init__(self, address: SimpleAddress) -> None:
        path = os.path.realpath(address.place)
        super().__init__(address, _stores.setdefault(path, SqliteStore(path)))

    def find(self) -> list[Finding]:
        return self.store.examine()


def _before_fork() -> None:
    for store in list(_stores.values()):
        store.before_fork()


def _after_fork_in_parent() -> None:
    for store in list(_stores.values()):
        store.after_fork_in_parent()


lifecycle.register("finish transactions of files", _before_fork)
lifecycle.register("go on with transactions of files", _after_fork_in_parent)
