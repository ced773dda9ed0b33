"""A store of ordered keys, as the engines of this family use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

R = TypeVar("R")


class Txn(Protocol):
    """A transaction: it sees what it wrote itself, and no other transaction comes in between."""

    def get(self, key: bytes, *, snapshot: bool = False) -> bytes | None:
        """Return the value of a key. With ``snapshot`` others may change it meanwhile."""

    def range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """List the first ``limit`` keys from ``begin`` on that are below ``end``, with values; if
        reversed the last ones, the last one first."""

    def set(self, key: bytes, value: bytes) -> None: ...

    def clear(self, key: bytes) -> None: ...

    def clear_range(self, begin: bytes, end: bytes) -> None: ...


class SharedTxn(Txn, Protocol):
    """A transaction of an optimistic store: others commit meanwhile, and then it is made again
    unless nothing changed that it read."""

    def add(self, key: bytes, number: int) -> None:
        """Add to a number, of 8 bytes with the lowest first, without reading it."""

    def append(self, prefix: bytes, value: bytes) -> None:
        """Write a value under a key that is behind all keys with the prefix which were ever written
        so. This transaction cannot read below the prefix any more."""

    def depend(self, key: bytes) -> None:
        """Have this transaction made again if another one writes the key meanwhile."""


#: What is done in a transaction.
Body = Callable[[Txn], R]


class Traits(NamedTuple):
    """The differences between stores that matter to the engine."""

    #: Its transactions are of :class:`SharedTxn`.
    optimistic: bool
    #: The processes of one host use it.
    one_host: bool


class Fate(Protocol):
    """The outcome of a transaction."""

    #: Set when it is committed, also when an exception comes just then. No method: an exception of
    #: a signal handler may come where one begins.
    is_done: bool


class How(NamedTuple):
    """The way in which a transaction is made."""

    #: Whether the disk has it before the call returns.
    durable: bool = False
    #: Whether the call waits while others are at work.
    wait: bool = True
    #: The time, on the monotonic clock, until which a store on other hosts is tried.
    until: float | None = None
    #: Whether it may need space that is kept: else it may use space which is spared for it.
    adds: bool = False


class Transactions(Protocol):
    """Keys in their order, with values, as transactions see them."""

    traits: Traits

    def write(self, body: Body[R], fate: Fate | None, how: How) -> R:
        """Call ``body`` with a transaction, commit it, and return what it returned. If it raises,
        nothing was done. It may be called several times: what its last call did is done, once. If
        it must not wait, raises Busy before ``body`` when others are at work."""


class Store(Transactions, Protocol):
    """Keys in their order, which the queues of an engine use."""

    def after_fork(self) -> None: ...

    def close(self) -> None: ...


class Watching(Store, Protocol):
    """A store that several hosts use."""

    def watch(self, key: bytes, ring: Callable[[], None]) -> Callable[[], None]:
        """Have ``ring`` called, in another thread, when the key is there. It may not be called when
        the connection is lost meanwhile. Returns a function that ends this. Neither blocks."""


class Busy(Exception):
    """Others are at work."""
