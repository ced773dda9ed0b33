"""Where queues are, and what the engine there can do."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from .levels import EVERY_LEVEL, Level

DEFAULT_PREFIX = "__pressure__"


class Capabilities(NamedTuple):
    """In what engines differ, to those who use them."""

    #: Queues stay when a process that uses them ends; other processes can use them.
    persistent: bool
    #: A put can be confirmed by replicas, or by the server's disk.
    durable: bool
    #: To settle its address, or to get its engine, may start a server, which takes a while.
    starts: bool = False
    #: Only this process can use it, and perhaps those that it starts.
    private: bool = False
    #: A put can return before the server's disk has it, although the server waits for that else.
    relaxed: bool = False
    #: The levels of the contract that the engine has.
    levels: frozenset[Level] = EVERY_LEVEL


class Endpoint(NamedTuple):
    """What clients connect to: a host and its port, if that is known; or a socket's path, or what
    else tells a server from others."""

    address: str
    port: int | None = None


class Origin(str):
    """Where an address was found, in words; nothing where nobody told. Any two are equal: addresses
    that differ in it alone are the same."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(Origin)

    @property
    def shown(self) -> str:
        """To be put behind the address."""
        return f" ({self!s})" if len(self) else ""


UNTOLD = Origin()


class Address(Protocol):
    """A broker and a key prefix on it. It can be hashed and pickled; two equal ones share one
    engine."""

    @property
    def scheme(self) -> str:
        """What its URL begins with."""

    @property
    def prefix(self) -> str:
        """What the names begin with that the broker keeps."""

    @property
    def url(self) -> str:
        """The address as a URL, without passwords and without options that are passwords."""

    @property
    def endpoint(self) -> Endpoint | None:
        """The one server that it names, for those who watch. None where it names several, of which
        one is used that it does not say, and where there is none."""

    @property
    def capabilities(self) -> Capabilities:
        """Of the engine there."""

    def started(self) -> Address:
        """The address that other processes can use too. May start a server, and raises what that
        does."""
