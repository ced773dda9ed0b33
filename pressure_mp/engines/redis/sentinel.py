"""Redis Sentinel: the sentinels say which server is the primary, and another one after a failover.

They are asked whenever a connection is opened after another one broke, or after a server said that
it is not the primary.
"""

from __future__ import annotations

from typing import Any

from ...exceptions import BrokerUnavailable, WrongServerError
from .address import RedisAddress
from .engine import RedisEngine
from .routes import SILENCE, Route, server
from .wire import Node, Wire


class SentinelRoute(Route):
    """The route to the primary of a service."""

    silence = SILENCE

    def __init__(self, address: RedisAddress, kind: type[Wire]) -> None:
        super().__init__(address, kind)
        login = address.sentinel_username, address.sentinel_password
        asked = address._replace(username=login[0], password=login[1], db=0)
        self._sentinels = [server(asked, *place) for place in address.nodes]
        self._primary: Node | None = None

    async def node(self, slot: int, timeout: float | None) -> Node:
        primary = self._primary
        if primary is None:
            command = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.address.service)
            primary = await self._ask(self._sentinels, command, self._read, timeout)
            self._primary = primary
        return primary

    def known(self, slot: int) -> Node | None:
        return self._primary

    async def open(self, node: Node, timeout: float | None) -> Wire:
        try:
            wire = await super().open(node, timeout)
        except WrongServerError:
            self._ask_another()
            raise
        except BrokerUnavailable as error:
            self._ask_another()
            raise BrokerUnavailable(f"no primary for {self.address.url}: {error}") from error
        if wire.role != "master":
            wire.close()
            self._ask_another()
            raise BrokerUnavailable(
                f"no primary for {self.address.url}: the sentinels name {node.address.url}, "
                f"which is a {wire.role} still, or again"
            )
        return wire

    def doubt(self, node: Node, error: OSError) -> None:
        node.hang_up()
        if self._primary is node:
            self._primary = None

    def _ask_another(self) -> None:
        """Ask another sentinel first: the answer of the first one does not help."""
        self._primary = None
        first, *others = self._sentinels
        self._sentinels = [*others, first]

    def _read(self, sentinel: RedisAddress, reply: Any) -> Node:
        if not isinstance(reply, list):
            what = (
                f"knows no service {self.address.service!r}" if reply is None else f"says {reply}"
            )
            raise BrokerUnavailable(f"the sentinel at {sentinel.url} {what}")
        # Ask the sentinel that answered first, until it names a server that is no primary.
        self._sentinels = [sentinel, *(one for one in self._sentinels if one is not sentinel)]
        host, port = reply
        return self._node_at(host.decode(), int(port))


class SentinelEngine(RedisEngine):
    """The engine for servers of which the sentinels name one as the primary."""

    _route = SentinelRoute
