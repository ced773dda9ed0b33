"""What a queue that is fair by key can do more."""

from __future__ import annotations

from ..effects import Operation
from ..engines.contract.fair import (
    GetKeys,
    GetKeysReply,
    GetQueued,
    GetQueuedReply,
    GetSnapshot,
    GetSnapshotReply,
    Snapshot,
)
from .items import ItemOperations

FAIR = "fair"


class FairOperations(ItemOperations):
    """Keys and items are bytes."""

    def __init__(self, name: str) -> None:
        super().__init__(name, FAIR)

    def snapshot(self, limit: int) -> Operation[Snapshot]:
        """The next ``limit`` items, in the order of service. Nothing is taken."""
        reply: GetSnapshotReply = yield GetSnapshot(limit)
        return self._found(reply)

    def keys(self) -> Operation[list[bytes]]:
        """The keys that have items queued."""
        reply: GetKeysReply = yield GetKeys()
        return self._found(reply)

    def queued(self, key: bytes) -> Operation[int]:
        """How many items of one key are queued."""
        reply: GetQueuedReply = yield GetQueued(key)
        return self._found(reply)
