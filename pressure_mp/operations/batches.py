"""Many items in one call: how many of them, so that no call holds the broker up for long."""

from __future__ import annotations

from collections.abc import Sequence

#: One call has at most so many items, and at most so many bytes unless it is a single item:
#: a server is busy with it for less than 2 ms.
MOST_ITEMS = 1000
MOST_BYTES = 1_000_000


def next_batch(items: Sequence[bytes], start: int) -> Sequence[bytes]:
    """The items from ``start`` on that one call can have; at least one."""
    end, size = start, 0
    limit = min(start + MOST_ITEMS, len(items))
    while end < limit:
        size += len(items[end])
        if size > MOST_BYTES and end > start:
            break
        end += 1
    return items[start:end]
