"""The engine of queues in a file of SQLite."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from ... import lifecycle
from ..contract.address import SimpleAddress
from ..contract.brokers import Finding
from ..contract.session import AsyncSessionIn, SessionIn
from ..kv.engine import KvBinding, KvEngine
from ..kv.space import NamedQueue
from .callers import AsyncTransactionSession, TransactionSession, check_no_transaction
from .store import SqliteStore

#: The stores of this process, by the real paths of their files. A file has one, whatever the
#: addresses: a call in the midst of another one must not wait for its lock.
_stores: dict[str, SqliteStore] = {}


class SqliteBinding(KvBinding):
    """One queue in a file."""

    def check_may_open(self, connection: object) -> None:
        assert isinstance(self.queue, NamedQueue)
        check_no_transaction(connection, self.queue.name)

    def session_in(self, connection: object) -> SessionIn:
        return TransactionSession(self, connection)

    def asession_in(self, connection: object) -> AsyncSessionIn:
        return AsyncTransactionSession(self, connection)


class SqliteEngine(KvEngine):
    """The queues in one file."""

    _binding = SqliteBinding
    store: SqliteStore

    def __init__(self, address: SimpleAddress) -> None:
        path = os.path.realpath(address.place)
        super().__init__(address, _stores.setdefault(path, SqliteStore(path)))

    def find(self) -> list[Finding]:
        return self.store.examine()


def _each(step: Callable[[SqliteStore], None]) -> None:
    for store in list(_stores.values()):
        step(store)


lifecycle.register("finish transactions of files", partial(_each, SqliteStore.before_fork))
lifecycle.register(
    "go on with transactions of files", partial(_each, SqliteStore.after_fork_in_parent)
)
