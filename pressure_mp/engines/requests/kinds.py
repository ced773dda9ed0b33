"""The types of state that Python has no protocol for; the others are mutable mappings and sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Protocol, TypeVar

#: A tuple of numbers, strings and bytes. The tuples of one set can be compared with each other.
S = TypeVar("S")


class SortedSet(Protocol[S]):
    """Tuples in their order."""

    def add(self, one: S) -> None: ...

    def remove(self, one: S) -> None:
        """Remove a tuple that is there."""

    def behind(self, *beginning: object) -> Iterator[S]:
        """Iterate over the tuples that begin so. Each step looks anew, so that tuples may be added
        and removed meanwhile."""


class Counter(Protocol):
    """Numbers by name. A name that was never counted has none."""

    def add(self, name: str, number: int) -> None: ...

    def value(self, name: str) -> int: ...


class Counts:
    """A counter whose names can be listed."""

    def __init__(self, numbers: MutableMapping[str, int]) -> None:
        self._numbers = numbers

    def add(self, name: str, number: int) -> None:
        self._numbers[name] = self._numbers.get(name, 0) + number

    def value(self, name: str) -> int:
        return self._numbers.get(name, 0)

    def all(self) -> Mapping[str, int]:
        return self._numbers


class Leases(MutableMapping[str, int]):
    """The ends of leases by owner, in milliseconds."""

    def extend(self, owner: str, until: int) -> None:
        """Have an owner's lease end at that time, or later."""
        self[owner] = max(self.get(owner, 0), until)


class OwnLeases(dict[str, int], Leases):
    """Leases that no other process reads."""


class Rejected(Protocol):
    """The items that were set aside, the oldest first."""

    def append(self, item: bytes, /) -> None: ...

    def remove(self, item: bytes, /) -> None: ...

    def __contains__(self, item: object, /) -> bool: ...

    def __len__(self) -> int: ...

    def __getitem__(self, some: slice, /) -> list[bytes]: ...
