"""Where a pool's connections lead: to one server, or to the one that has the word just now."""

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

#: Seconds for one of several servers to say what it knows; then the next one is asked.
_PATIENCE = 1.0
#: As long as that each is asked, whatever time is left.
_SHORTEST = 0.01
#: A route's ``silence`` where another server may take the place of one: longer than a script takes.
SILENCE = 10.0


class Route(ABC):
    """From an address, as a user gave it, to the server for a slot. Each pool has its own.

    A slot is a number that the engine has for each queue; only in a cluster are there several.
    """

    #: Seconds after which a server that answers nothing is given up. One that nobody can take the
    #: place of is waited for.
    silence: float | None = None

    def __init__(self, address: RedisAddress, kind: type[Wire]) -> None:
        self.address = address
        self._kind = kind
        self._nodes: dict[tuple[str, int], Node] = {}

    @abstractmethod
    async def node(self, slot: int, timeout: float | None) -> Node:
        """The server to go to. May have to ask others, for ``timeout`` seconds.

        Raises BrokerUnavailable when nobody knows.
        """

    async def slots(self, timeout: float | None) -> list[int]:
        """One slot of each server that has queues."""
        return [0]

    def known(self, slot: int) -> Node | None:
        """The server to go to, if that can be told without asking."""
        return None

    async def open(self, node: Node, timeout: float | None) -> Wire:
        """A new connection to ``node``.

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
        """An operation there ended with ``error``: look anew before the next one."""

    async def _ask(
        self,
        servers: Iterable[RedisAddress],
        command: tuple[str, ...],
        read: Callable[[RedisAddress, Any], T],
        timeout: float | None,
    ) -> T:
        """What ``read`` makes of the first reply to ``command`` that it can use. All of them
        together have ``timeout`` seconds."""
        asked = list(servers)
        end = None if timeout is None else time.monotonic() + timeout
        problems: list[Exception] = []
        for number, one in enumerate(asked):
            patience = _PATIENCE
            if end is not None:  # each has its part of what those before it left
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
        """All servers that were ever gone to."""
        return list(self._nodes.values())

    def _node_at(self, host: str, port: int) -> Node:
        found = self._nodes.get((host, port))
        if found is None:
            address = server(self.address, host, port)
            found = self._nodes.setdefault((host, port), Node(address))
        return found


class Direct(Route):
    """To the one server that the address names."""

    def __init__(self, address: RedisAddress, kind: type[Wire]) -> None:
        super().__init__(address, kind)
        self._node = self._nodes[address.host, address.port] = Node(address)

    async def node(self, slot: int, timeout: float | None) -> Node:
        return self._node

    def known(self, slot: int) -> Node:
        return self._node

    def doubt(self, node: Node, error: OSError) -> None:
        """There is no other."""


def server(address: RedisAddress, host: str, port: int) -> RedisAddress:
    """The address of one of the servers that ``address`` stands for."""
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
