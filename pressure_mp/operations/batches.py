"""Many items in one call: how many of them, so that no call holds the broker up for long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..encoding.large import Large
from ..engines.contract.items import MOST_BYTES, MOST_ITEMS


def next_batch(items: Sequence[bytes | Large], start: int) -> Sequence[bytes]:
    """The items from ``start`` on that one call can have: at least one, and none that is large."""
    found = items[start : start + MOST_ITEMS]
    if Large in set(map(type, found)):
        found = found[: next(at for at, item in enumerate(found) if type(item) is Large)]
    batch = cast("Sequence[bytes]", found)
    if sum(map(len, batch)) <= MOST_BYTES:
        return batch
    size = 0
    for count, item in enumerate(batch):
        size += len(item)
        if size > MOST_BYTES:
            return batch[: max(count, 1)]
    return batch
