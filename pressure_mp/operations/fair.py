"""What a queue that is fair by key can do more."""

from __future__ import annotations

from typing import NamedTuple

from ..effects import Call, Operation, Reply
from .orders import OrderedOperations

FAIR = "fair"


class Picture(NamedTuple):
    """A fair queue at one moment: how many items are queued; and of these the next ones, each
    with its key, of which the first ``current`` belong to the present snapshot."""

    length: int
    items: list[tuple[bytes, bytes]]
    current: int


class FairOperations(OrderedOperations):
    """Keys and items are bytes."""

    def __init__(self, name: str, lease: int) -> None:
        super().__init__(name, lease, FAIR)

    def snapshot(self, limit: int) -> Operation[Picture]:
        """The next ``limit`` items, in the order of service. Nothing is taken."""
        reply: Reply = yield Call("snapshot", (limit,))
        length, keys, items, current = self._check(reply)[1:]
        return Picture(int(length), list(zip(keys, items, strict=True)), int(current))

    def keys(self) -> Operation[list[bytes]]:
        """The keys that have items queued."""
        reply: Reply = yield Call("tenants")
        return list(self._check(reply)[1])

    def queued(self, key: bytes) -> Operation[int]:
        """How many items of one key are queued."""
        reply: Reply = yield Call("queued", (key,))
        return int(self._check(reply)[1])
