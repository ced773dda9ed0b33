"""Sorted sets of Python's types."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=tuple[Any, ...])


class MemorySet(Generic[S]):
    """Tuples in their order."""

    def __init__(self) -> None:
        self._all: list[S] = []

    def add(self, one: S) -> None:
        insort(self._all, one)

    def remove(self, one: S) -> None:
        place = bisect_left(self._all, one)
        assert self._all[place] == one
        del self._all[place]

    def behind(self, *beginning: object) -> Iterator[S]:
        return self._behind(beginning) if self._all else iter(())

    def _behind(self, beginning: tuple[object, ...]) -> Iterator[S]:
        place, size = bisect_left(self._all, beginning), len(beginning)
        while place < len(self._all):
            one = self._all[place]
            if one[:size] != beginning:
                break
            yield one
            if place >= len(self._all) or self._all[place] is not one:
                place = bisect_right(self._all, one)
            else:
                place += 1
