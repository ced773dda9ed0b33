"""Split many items or tasks into requests, so that no request holds the broker up for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from ..encoding.large import Large
from ..engines.contract.items import MOST_BYTES, MOST_ITEMS

T = TypeVar("T")


#: The sizes of so many are added up first: a request of large ones has no more.
_FEW = 128


def next_batch(ones: Sequence[T], start: int, size: Callable[[T], int]) -> Sequence[T]:
    """Return the elements from ``start`` on that one request can have, at least one; ``size`` gives
    the bytes of an element."""
    for most in (_FEW, MOST_ITEMS):
        batch = ones[start : start + most]
        if sum(map(size, batch)) > MOST_BYTES:
            return batch[: _number_of_first(batch, size)]
        if len(batch) < most:
            break
    return batch


def _number_of_first(batch: Sequence[T], size: Callable[[T], int]) -> int:
    """Return how many of the first elements have MOST_BYTES together, at least one."""
    room = MOST_BYTES
    for count, one in enumerate(batch):
        room -= size(one)
        if room < 0:
            return max(count, 1)
    return len(batch)


def next_items(items: Sequence[bytes | Large], start: int) -> Sequence[bytes]:
    """Return the items from ``start`` on that one request can have, up to the first large one; the
    first is not large."""
    found = items[start : start + MOST_ITEMS]
    if Large in set(map(type, found)):
        found = found[: next(at for at, item in enumerate(found) if type(item) is Large)]
    return next_batch(cast("Sequence[bytes]", found), 0, len)


def batches(ones: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split elements whose size does not matter into batches."""
    for start in range(0, len(ones), MOST_ITEMS):
        yield ones[start : start + MOST_ITEMS]
