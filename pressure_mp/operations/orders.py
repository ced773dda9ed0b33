"""Queues of other disciplines than first in, first out: many items are as many calls."""

from __future__ import annotations

from collections.abc import Sequence

from ..effects import Operation
from ..exceptions import PressureError
from ..large import Large, weight
from .batches import MOST_BYTES, MOST_ITEMS
from .fifo import FifoOperations


class OrderedOperations(FifoOperations):
    """What differs is where an item goes, so each has an order of its own."""

    def _put_some(
        self,
        items: Sequence[bytes | Large],
        start: int,
        orders: Sequence[bytes],
        block: bool,
        timeout: float | None,
        left: float | None,
    ) -> Operation[int]:
        yield from self.put(items[start], block, left, order=orders[start])
        return 1

    def get_many(
        self, limit: int, block: bool, timeout: float | None, eof: bool = False
    ) -> Operation[list[bytes]]:
        items = [(yield from self.get(block, timeout, eof))]
        size = weight(items[0])
        while len(items) < min(limit, MOST_ITEMS) and size < MOST_BYTES:
            try:
                items.append((yield from self.get(False, None, eof)))
            except PressureError:  # none is left; or the next call says what is wrong
                break
            size += weight(items[-1])
        return items
