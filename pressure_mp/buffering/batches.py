"""What a reader read, and the broker was not told to be handed out."""

from __future__ import annotations

#: How many items a call read, and their bytes; None when these are not known.
Batch = tuple[int, int | None]


def tell(batches: list[Batch], number: int) -> tuple[tuple[int, int], list[Batch]]:
    """The broker is told that the next so many items were handed out: that number and their bytes,
    or zeros if these are not known; and the batches that are left."""
    left, sizes, rest = number, 0, batches
    while left > 0 and rest:
        (items, size), rest = rest[0], rest[1:]
        if items > left:
            return (0, 0), [(items - left, None), *rest]
        if size is None:
            return (0, 0), tell(rest, left - items)[1]
        left, sizes = left - items, sizes + size
    return ((number, sizes) if left == 0 else (0, 0)), rest
