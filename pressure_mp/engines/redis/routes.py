"""The routes of a pool's connections: to one server, or to the current primary."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...exceptions import (
    AddressError,
    BrokerError,
    BrokerUnavailable,
    PressureError,
    WrongServerError,
)
from . import eviction
from .address import RedisAddress
from .wire import Node, Wire

T = TypeVar("T")

#: Seconds for one of several servers to answer before the next one is asked.
_PATIENCE = 1.0
#: The shortest time for each of them, in seconds, however little time is left.
_SHORTEST = 0.01
#: The ``silence`` of a route on which another server may replace a silent one: longer than a script
#: takes.
SILENCE = 10.0


class Route(ABC):
    """The way from the address that a user gave to the server of a slot. Each pool has its own
    route.

    A slot is a number that the engine has for each queue; only in a cluster are there several.
    """

    #: Seconds after which a server that does not answer is given up. None: no other server can
    #: replace it, so it is waited for.
    silence: float | None = None

    def __init__(self, address: RedisAddress, kind: type[Wire]) -> None:
        self.address = address
        self._kind = kind
        self._nodes: dict[tuple[str, int], Node] = {}

    @abstractmethod
    async def node(self, slot: int, timeout: float | None) -> Node:
        """Find the server to connect to. May ask other servers, for ``timeout`` seconds.

        Raises BrokerUnavailable when none of them knows.
        """

    async def slots(self, timeout: float | None) -> list[int]:
        """List one slot of each server that has queues."""
        return [0]

    def known(self, slot: int) -> Node | None:
        """Return the server to connect to, if it is known without asking."""
        return None

    async def open(self, node: Node, timeout: float | None) -> Wire:
        """Open a new connection to ``node``.

        Raises what :meth:`Wire.open` does, and EvictingServerError.
        """
        question = eviction.question(node.address)
        wire = await self._kind.open(node.address, timeout, question)
        wire.node = node
        try:
            if question:
                eviction.check(wire.told, node.address)
        except BaseException:
            wire.close()
            raise
        return wire

    @abstractmethod
    def doubt(self, node: Node, error: OSError) -> None:
        """Note that an operation there ended with ``error``: the next one searches for the server
        again."""

    async def _ask(
        self,
        servers: Iterable[RedisAddress],
        command: tuple[str, ...],
        read: Callable[[RedisAddress, Any], T],
        timeout: float | None,
    ) -> T:
        """Send ``command`` to the servers, one after the other, until ``read`` can use a reply, and
        return its result. All of them together have ``timeout`` seconds."""
        asked = list(servers)
        end = None if timeout is None else time.monotonic() + timeout
        problems: list[Exception] = []
        for number, one in enumerate(asked):
            patience = _PATIENCE
            if end is not None:  # each has its part of the remaining time
                left = (end - time.monotonic()) / (len(asked) - number)
                patience = max(min(left, _PATIENCE), _SHORTEST)
            try:
                wire = await self._kind.open(one, patience)
                try:
                    reply = await wire.request(*command, timeout=patience)
                finally:
                    wire.close()
                return read(one, reply)
            except AddressError:
                raise
            except (OSError, PressureError) as error:
                problems.append(error)
        lasting = all(isinstance(problem, (WrongServerError, BrokerError)) for problem in problems)
        raise (WrongServerError if lasting else BrokerUnavailable)(
            f"no server of {self.address.url} says where to go: {'; '.join(map(str, problems))}"
        )

    def nodes(self) -> Iterable[Node]:
        """List all servers that connections were ever opened to."""
        return list(self._nodes.values())

    def _node_at(self, host: str, port: int) -> Node:
        found = self._nodes.get((host, port))
        if found is None:
            address = server(self.address, host, port)
            found = self._nodes.setdefault((host, port), Node(address))
        return found


class Direct(Route):
    """The route to the one server that the address names."""

    def __init__(self, address: RedisAddress, kind: type[Wire]) -> None:
        super().__init__(address, kind)
        self._node = self._nodes[address.host, address.port] = Node(address)

    async def node(self, slot: int, timeout: float | None) -> Node:
        return self._node

    def known(self, slot: int) -> Node:
        return self._node

    def doubt(self, node: Node, error: OSError) -> None:
        """Do nothing: there is no other server."""


def server(address: RedisAddress, host: str, port: int) -> RedisAddress:
    """Make the address of one of the servers that ``address`` stands for."""
    scheme = address.scheme.partition("+")[0]
    return address._replace(
        scheme=scheme,
        host=host,
        port=port,
        nodes=(),
        service="",
        sentinel_username=None,
        sentinel_password=None,
    )
