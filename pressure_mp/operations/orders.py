"""Queues of other disciplines than first in, first out: many items are put in as many calls."""

from __future__ import annotations

from collections.abc import Sequence

from ..effects import Operation
from ..large import Large
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
