"""What a reader read, and the broker was not told to be handed out."""

from __future__ import annotations

#: How many items a call read, and their bytes; None when these are not known.
Batch = tuple[int, int | None]


def tell(batches: list[Batch], number: int) -> tuple[tuple[int, int], list[Batch]]:
    """The broker is told that the next so many items were handed out: that number and their bytes,
    or zeros if these are not known; and the batches that are left."""
    left, rest = number, batches
    size: int | None = 0
    while left > 0 and rest:
        (items, of_batch), rest = rest[0], rest[1:]
        if items > left:  # of a part of a batch nobody knows the bytes
            items, of_batch, rest = left, None, [(items - left, None), *rest]
        left -= items
        size = None if size is None or of_batch is None else size + of_batch
    return ((0, 0) if left or size is None else (number, size)), rest
