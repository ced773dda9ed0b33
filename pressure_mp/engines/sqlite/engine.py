"""The engine of queues in a file of SQLite."""

from __future__ import annotations

import os

from ..contract.brokers import Finding
from ..kv.engine import KvEngine
from .address import SqliteAddress
from .store import SqliteStore

#: The stores of this process, by the real paths of their files. A file has one, whatever the
#: addresses: a call in the midst of another one must not wait for its lock.
_stores: dict[str, SqliteStore] = {}


class SqliteEngine(KvEngine):
    """The queues in one file."""

    def __init__(self, address: SqliteAddress) -> None:
        path = os.path.realpath(address.path)
        store = _stores.setdefault(path, SqliteStore(path))
        super().__init__(address, store, self._find)

    def _find(self) -> list[Finding]:
        return []
