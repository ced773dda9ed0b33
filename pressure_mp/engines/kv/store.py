"""A store of ordered keys, as the engines of this family use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

R = TypeVar("R")


class Txn(Protocol):
    """A transaction: it sees what it wrote itself, and no other transaction comes in between."""

    def will_add(self) -> None:
        """Say that items or tasks are put. Raises BrokerFull if there is no space for more."""

    def get(self, key: bytes) -> bytes | None: ...

    def range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """List the first ``limit`` keys from ``begin`` on that are below ``end``, with values; if
        reversed the last ones, the last one first."""

    def set(self, key: bytes, value: bytes) -> None: ...

    def clear(self, key: bytes) -> None: ...

    def clear_range(self, begin: bytes, end: bytes) -> None: ...


class Fate(Protocol):
    """What became of a transaction."""

    #: Set when it is committed, also when an exception comes just then. No method: an exception of
    #: a signal handler may come where one begins.
    is_done: bool


class Store(Protocol):
    """Keys in their order, with values."""

    def write(self, body: Callable[[Txn], R], fate: Fate | None, durable: bool, wait: bool) -> R:
        """Call ``body`` with a transaction, commit it, and return what it returned. If it raises,
        nothing was done; it may be called several times. With ``durable`` the disk has it before
        this returns. Without ``wait`` raises Busy, before ``body``, when others are at work."""

    def after_fork(self) -> None: ...

    def close(self) -> None: ...


class Busy(Exception):
    """Others are at work."""
