"""Encode the place of an item in a queue ordered by priority or key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..encoding import sort_keys
from ..exceptions import ArgumentError, ArgumentTypeError
from ..numeric import integer
from .arguments import ask_for_name


class Order:
    """The order of FIFO and LIFO, which needs nothing of an item."""

    def of(self, item: Any, queue: str) -> bytes:
        """Return the place of an item in the order; errors name the ``queue``."""
        return b""

    def of_all(self, items: Sequence[Any], queue: str) -> Sequence[bytes]:
        """Return the place of each item in the order; nothing if the order needs none."""
        return ()


class _Asking(Order):
    """An order that needs something of each item."""

    def of_all(self, items: Sequence[Any], queue: str) -> Sequence[bytes]:
        return [self.of(item, queue) for item in items]


class ByPriority(_Asking):
    """The order of a PriorityQueue. It is pickled with the handle."""

    def __init__(self, key: Callable[[Any], Any] | None) -> None:
        self._key = _check_callable("key", key)

    def of(self, item: Any, queue: str) -> bytes:
        if self._key is not None:
            return sort_keys.encode(self._key(item))
        try:
            return sort_keys.encode_item(item)
        except ArgumentTypeError as error:
            raise ArgumentTypeError(
                f"an item for queue {queue!r} has no priority: {error}; "
                "PriorityQueue(key=...) tells it"
            ) from None


class ByKey(_Asking):
    """The order of a FairQueue. It is pickled with the handle."""

    def __init__(self, key: Callable[[Any], Any], weight: Callable[[Any], int] | None) -> None:
        if key is None:
            raise ArgumentTypeError(
                "a FairQueue needs a key: a callable that returns the key of an item"
            )
        self._key = _check_callable("key", key)
        self._weight = _check_callable("weight", weight)

    def of(self, item: Any, queue: str) -> bytes:
        assert self._key is not None
        key = self._key(item)
        what = f"the weight of key {key!r}"
        weight = 1 if self._weight is None else integer(what, self._weight(key), 1)
        if weight >= 2**31:
            raise ArgumentError(f"{what} is {weight}; it must be less than 2**31")
        return b"%d %b" % (weight, encode_key(key))


def encode_key(key: Any) -> bytes:
    """Encode a key. Raises ArgumentTypeError if the object cannot be a key."""
    try:
        hash(key)
    except TypeError:
        raise ArgumentTypeError(
            f"a {type(key).__name__} cannot be the key of an item: {key!r}; it can be None, a "
            "bool, int, float, str, bytes, or a tuple of these"
        ) from None
    return sort_keys.encode(key)


def _check_callable(name: str, given: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    if given is not None and not callable(given):
        raise ArgumentTypeError(
            f"{name} is a callable, not {type(given).__name__}{ask_for_name(given)}"
        )
    return given
