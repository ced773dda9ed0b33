"""Ranges of keys, each from its beginning up to, and without, its end."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

Range = tuple[bytes, bytes]


def point(key: bytes) -> Range:
    """The range of one key."""
    return key, key + b"\0"


def overlap(some: Iterable[Range], others: Iterable[Range]) -> bool:
    """Whether a range of one has a key in common with a range of the other."""
    both = [(begin, end, 0) for begin, end in some] + [(begin, end, 1) for begin, end in others]
    reached = [b"", b""]  # the last end of each
    for begin, end, which in sorted(both):
        if begin == end:
            continue
        if begin < reached[1 - which]:
            return True
        reached[which] = max(reached[which], end)
    return False


class Ranges:
    """A set of keys that consists of ranges."""

    def __init__(self) -> None:
        self._begins: list[bytes] = []
        self._ends: list[bytes] = []

    def add(self, begin: bytes, end: bytes) -> None:
        first, last = bisect_left(self._ends, begin), bisect_right(self._begins, end)
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._replace(first, last, [(begin, end)])

    def remove(self, begin: bytes, end: bytes) -> None:
        first, last = self._span(begin, end)
        if first < last:
            parts = (self._begins[first], begin), (end, self._ends[last - 1])
            self._replace(first, last, [one for one in parts if one[0] < one[1]])

    def within(self, begin: bytes, end: bytes) -> list[Range]:
        """The parts of them that are in a range, in order."""
        first, last = self._span(begin, end)
        found = zip(self._begins[first:last], self._ends[first:last], strict=True)
        return [(max(one, begin), min(other, end)) for one, other in found]

    def __contains__(self, key: bytes) -> bool:
        return bool(self.within(*point(key)))

    def _span(self, begin: bytes, end: bytes) -> tuple[int, int]:
        """The indexes of the ranges that have a key in common with one."""
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        return first, max(first, last)

    def _replace(self, first: int, last: int, ranges: list[Range]) -> None:
        self._begins[first:last] = [begin for begin, _ in ranges]
        self._ends[first:last] = [end for _, end in ranges]
