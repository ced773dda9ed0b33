"""Redis Cluster: each queue is in one slot, each slot at one node, and slots may move.

The map of slots is read when it is first needed and after a connection broke; a node replies to a
call for a slot that moved with its new node.
"""

from __future__ import annotations

from typing import Any

from redis.crc import key_slot

from ...exceptions import ArgumentError, BrokerUnavailable, WrongServerError
from ..contract.session import DEFAULTS, Binding, Options
from . import keys
from .address import RedisAddress
from .engine import RedisEngine
from .errors import Moved, not_done
from .routes import SILENCE, Route
from .wire import Node, Wire


class ClusterRoute(Route):
    """The route to the node that serves a slot."""

    silence = SILENCE

    def __init__(self, address: RedisAddress, kind: type[Wire]) -> None:
        super().__init__(address, kind)
        self._slots: dict[int, Node] = {}
        self._is_doubtful = True

    async def node(self, slot: int, timeout: float | None) -> Node:
        if self._is_doubtful or slot not in self._slots:
            await self._load(timeout)
        try:
            return self._slots[slot]
        except KeyError:
            raise BrokerUnavailable(f"no node of {self.address.url} serves slot {slot}") from None

    def known(self, slot: int) -> Node | None:
        return None if self._is_doubtful else self._slots.get(slot)

    async def slots(self, timeout: float | None) -> list[int]:
        await self.node(0, timeout)
        return list({node: slot for slot, node in self._slots.items()}.values())

    async def open(self, node: Node, timeout: float | None) -> Wire:
        try:
            return await super().open(node, timeout)
        except WrongServerError:
            raise
        except BrokerUnavailable as error:
            self._is_doubtful = True
            raise BrokerUnavailable(f"a node of {self.address.url} is lost: {error}") from error

    def doubt(self, node: Node, error: OSError) -> None:
        if isinstance(error, Moved):
            self._slots[error.slot] = self._node_at(error.host or node.address.host, error.port)
        else:
            self._is_doubtful = True

    async def _load(self, timeout: float | None) -> None:
        """Read the map of slots, from the first node that answers."""
        seeds = (self._node_at(*place) for place in self.address.nodes)
        known = dict.fromkeys([*seeds, *self._slots.values()])
        addresses = [node.address for node in known]
        self._slots = await self._ask(addresses, ("CLUSTER", "SLOTS"), self._read, timeout)
        self._is_doubtful = False
        for left in set(self.nodes()) - set(self._slots.values()):
            left.hang_up()

    def _read(self, asked: RedisAddress, reply: Any) -> dict[int, Node]:
        if not isinstance(reply, list):
            raise not_done(str(reply), asked) or WrongServerError(
                f"the server at {asked.url} has no slots: {reply}"
            )
        slots: dict[int, Node] = {}
        for first, last, (host, port, *_), *_ in reply:
            # The cluster gives no host, or "?", where it means the node that was asked.
            named = "" if host in (None, b"?") else host.decode()
            serving = self._node_at(named or asked.host, port)
            slots.update(dict.fromkeys(range(first, last + 1), serving))
        return slots


class ClusterEngine(RedisEngine):
    """The engine for nodes that share the slots."""

    _route = ClusterRoute
    opens_at_once = False

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding:
        if not keys.has_hash_tag(self.address.prefix, name, discipline):
            raise ArgumentError(
                f"queue name {name!r} has no hash tag, so a cluster would spread the queue's keys "
                f"over its nodes: call it '{{{name}}}', or have one in the prefix"
            )
        return super().bind(name, discipline, options)

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding | None:
        if discipline != keys.FIFO and not keys.has_hash_tag(self.address.prefix, name):
            return None  # no queue of the protocol can have this name here
        return super().rival(name, discipline, options)

    def slot(self, key: bytes) -> int:
        return key_slot(key)
