"""Addresses of brokers, and the capabilities of their engines."""

from __future__ import annotations

from typing import NamedTuple, Protocol
from urllib.parse import quote

from .levels import EVERY_LEVEL, Level

DEFAULT_PREFIX = "__pressure__"


class Capabilities(NamedTuple):
    """The differences between engines that matter to callers."""

    #: Queues stay when a process that uses them ends; other processes can use them.
    persistent: bool
    #: A put can be confirmed by replicas, or by the server's disk.
    durable: bool
    #: :meth:`Address.started`, or making the engine, may start a server, which takes a while.
    starts: bool = False
    #: Only this process can use it, and perhaps those that it starts.
    private: bool = False
    #: A put can return before the server's disk has it, although the server waits for its disk by
    #: default.
    relaxed: bool = False
    #: The number of takes that the workers of one run make at a time. More are faster where a call
    #: is cheap; one for all workers is faster where a call costs much, however much it takes.
    takes_at_a_time: int = 1
    #: The levels of the contract that the engine has.
    levels: frozenset[Level] = EVERY_LEVEL


class Endpoint(NamedTuple):
    """The server that clients connect to: a host and its port, if that is known; or the path of a
    socket, or another text that tells the server from others."""

    address: str
    port: int | None = None


class Origin(str):
    """Where an address was found, in words; empty if that is not known. Any two origins are equal:
    addresses that differ only in their origin are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(Origin)

    @property
    def shown(self) -> str:
        """The text to show behind the address."""
        return f" ({self!s})" if len(self) else ""


UNTOLD = Origin()


class Address(Protocol):
    """A broker and a key prefix on it. It can be hashed and pickled; two equal ones share one
    engine."""

    @property
    def scheme(self) -> str:
        """The scheme of its URL."""

    @property
    def prefix(self) -> str:
        """The beginning of all names that the broker keeps for this address."""

    @property
    def url(self) -> str:
        """The address as a URL, without passwords and without options that are passwords."""

    @property
    def endpoint(self) -> Endpoint | None:
        """The one server that the address names, for telemetry. None where it names several
        servers, or no server."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the engine."""

    def started(self) -> Address:
        """Return the address that other processes can use too. May start a server, and raises the
        errors of that."""


class SimpleAddress(NamedTuple):
    """A broker that its URL names by one text, without a login or options."""

    scheme: str
    capabilities: Capabilities
    place: str = ""
    prefix: str = DEFAULT_PREFIX
    endpoint: None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://{quote(self.place)}"

    def started(self) -> SimpleAddress:
        return self
