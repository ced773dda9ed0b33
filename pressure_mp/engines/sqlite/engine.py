"""The engine of queues in a file of SQLite."""

from __future__ import annotations

from ..contract.brokers import Finding
from ..kv.engine import KvEngine
from .address import SqliteAddress
from .store import SqliteStore


class SqliteEngine(KvEngine):
    """The queues in one file."""

    def __init__(self, address: SqliteAddress) -> None:
        super().__init__(address, SqliteStore(address.path), self._find)

    def _find(self) -> list[Finding]:
        return []
