"""The operations that only a queue that is fair by key has."""

from __future__ import annotations

from typing import Any

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
from .objects import ObjectOperations

FAIR = "fair"


class FairOperations(ObjectOperations):
    """Keys and items are bytes."""

    def __init__(self, name: str) -> None:
        super().__init__(name, FAIR)

    def snapshot(self, limit: int) -> Operation[Snapshot]:
        """Return the next ``limit`` items, in the order of service. Nothing is taken."""
        reply: GetSnapshotReply = yield GetSnapshot(limit)
        return self._found(reply)

    def snapshot_objects(self, limit: int) -> Operation[tuple[Snapshot, list[Any]]]:
        """Return the next items, and the objects in them. Raises AuthenticationError,
        DecodingError."""
        picture = yield from self.snapshot(limit)
        objects = []
        for _, item in picture.items:
            objects.append((yield from self.peek(item)))
        return picture, objects

    def keys(self) -> Operation[list[bytes]]:
        reply: GetKeysReply = yield GetKeys()
        return self._found(reply)

    def queued(self, key: bytes) -> Operation[int]:
        """Return how many items of one key are queued."""
        reply: GetQueuedReply = yield GetQueued(key)
        return self._found(reply)
