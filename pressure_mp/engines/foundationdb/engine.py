"""The engine of queues in a cluster of FoundationDB."""

from __future__ import annotations

from ..contract.brokers import Finding
from ..kv.engine import KvEngine
from .address import FoundationAddress
from .store import FoundationStore


class FoundationEngine(KvEngine):
    """The queues in one cluster."""

    def __init__(self, address: FoundationAddress) -> None:
        super().__init__(address, FoundationStore(address.path, address.prefix), self._find)

    def _find(self) -> list[Finding]:
        return []
