"""Queues of other disciplines than first in, first out: many items are as many calls."""

from __future__ import annotations

from collections.abc import Sequence

from ..effects import Now, Operation
from ..exceptions import PressureError
from ..large import Large, weight
from .batches import MOST_BYTES, MOST_ITEMS
from .fifo import FifoOperations
from .turns import deadline


class OrderedOperations(FifoOperations):
    """What differs is where an item goes, so each has an order of its own."""

    def put_many(
        self,
        items: Sequence[bytes | Large],
        block: bool,
        timeout: float | None,
        orders: Sequence[bytes] = (),
    ) -> Operation[None]:
        end = yield from deadline(block, timeout)
        accepted, left = 0, timeout
        try:
            for item, order in zip(items, orders, strict=True):
                if end is not None:
                    now: float = yield Now()
                    left = max(end - now, 0.0)
                yield from self.put(item, block, left, order=order)
                accepted += 1
        except PressureError as error:
            error.accepted = accepted
            raise

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
