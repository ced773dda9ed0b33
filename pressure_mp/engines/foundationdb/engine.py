"""The engine of queues in a cluster of FoundationDB."""

from __future__ import annotations

from ..contract.address import SimpleAddress
from ..kv.engine import KvEngine
from .store import FoundationStore


class FoundationEngine(KvEngine):
    """The queues in one cluster."""

    def __init__(self, address: SimpleAddress) -> None:
        super().__init__(address, FoundationStore(address.place, address.prefix))
