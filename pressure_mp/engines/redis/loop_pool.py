"""The connections of one event loop: for each server one that all quick calls share, and the
connections of operations that wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ..cancelled_calls import to_its_end
from ..closed_loops import OwnLoop
from ..lines import Lines
from .channels import Channel, SharedConnection
from .lanes import Lane
from .loop_wire import LoopWire
from .opening import Gate, Together
from .pool import SHORTEST, Pool
from .routes import Route
from .wire import Carrier, Node, Wire

T = TypeVar("T")


class _Server:
    """The shared connection and the lanes of one server."""

    def __init__(self, pool: LoopPool, node: Node) -> None:
        self._pool, self._node = pool, node
        self._shared: SharedConnection | None = None
        #: The lanes without a call. The lane that was used last is used first, since the server
        #: keeps the last reply of each.
        self.lanes: list[Lane] = []
        self.lanes_in_use: dict[Lane, None] = {}
        self.connect = Together(self._connect)
        self.gate = Gate()

    async def _connect(self, timeout: float | None) -> None:
        wire = await self._pool.open(self._node, timeout)
        assert isinstance(wire, LoopWire)
        self._shared = SharedConnection(wire)

    def channel(self) -> Channel | None:
        """Make a channel of the shared connection, if there is one."""
        shared = self._shared
        if shared is None or not shared.is_usable:
            return None
        lane = self.lanes.pop() if self.lanes else Lane()
        self.lanes_in_use[lane] = None
        return Channel(shared, lane)

    def take_in(self, channel: Channel) -> None:
        self.lanes_in_use.pop(channel.lane, None)
        self.lanes.append(channel.lane)

    def drop(self, lane: Lane) -> None:
        self.lanes_in_use.pop(lane, None)
        lane.drop()

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()
        for lane in (*self.lanes, *self.lanes_in_use):
            lane.drop()


class LoopPool(Pool):
    """The connections of one event loop, which are closed when the loop ends."""

    def __init__(self, route: Route) -> None:
        super().__init__(route)
        #: The loop, and its operations that wait at the server.
        self.loop = OwnLoop()
        #: The lines of operations, of which the first waits at the server.
        self.lines = Lines()
        self._servers: dict[Node, _Server] = {}
        self._find = Together(route.node)
        self._guard: AsyncGenerator[None, None] | None = None
        self._background: set[asyncio.Task[None]] = set()

    def channel_now(self, slot: int) -> Channel | None:
        """Return a channel to the slot's server, if that needs no waiting."""
        node = self._route.known(slot)
        server = self._servers.get(node) if node is not None else None
        return server.channel() if server is not None else None

    async def lend(self, slot: int, timeout: float | None = None) -> Channel:
        """Return a channel to the slot's server; ``timeout`` is as in :meth:`checkout`."""
        end = None if timeout is None else time.monotonic() + timeout
        server = self._server(await self._node(slot, timeout))
        channel = server.channel()
        if channel is None:
            await server.connect(_left(end), _left(end))
            channel = server.channel()
        if channel is None:  # a retry pauses first, and has a deadline
            raise ConnectionResetError("the server closed the connection behind its greeting")
        return channel

    def take_in(self, wire: Carrier) -> None:
        if isinstance(wire, Channel):
            self._server(wire.node).take_in(wire)
        else:
            super().take_in(wire)

    def lose(self, wire: Carrier, error: BaseException) -> None:
        self.drop(wire)
        super().lose(wire, error)

    def drop(self, wire: Carrier) -> None:
        self._server(wire.node).drop(wire.lane)

    async def checkout(self, slot: int, timeout: float | None = None) -> Wire:
        end = None if timeout is None else time.monotonic() + timeout
        node = await self._node(slot, timeout)
        gate = self._server(node).gate
        while True:
            wire = self._idle(node)
            if wire is not None:
                return wire
            if gate.enter():
                break
            await gate.wait(_left(end))
        try:
            wire = await self.open(node, _left(end))
        except OSError as error:
            gate.leave(error)
            raise
        except BaseException:
            gate.leave()
            raise
        gate.leave()
        return wire

    def checkin(self, wire: Wire) -> None:
        super().checkin(wire)
        self._server(wire.node).gate.wake()

    async def open(self, node: Node, timeout: float | None) -> Wire:
        if self._guard is None:
            self._guard = self._closing()
            await anext(self._guard)
        return await super().open(node, timeout)

    async def _node(self, slot: int, timeout: float | None) -> Node:
        node = self._route.known(slot)
        if node is None:
            await self._find(timeout, slot, timeout)
            node = self._route.known(slot) or await self._route.node(slot, timeout)
        return node

    def _server(self, node: Node) -> _Server:
        found = self._servers.get(node)
        if found is None:
            found = self._servers[node] = _Server(self, node)
        return found

    def lanes(self) -> list[bytes]:
        shared: list[Lane] = []
        for server in list(self._servers.values()):
            shared += (*server.lanes, *list(server.lanes_in_use))
        return super().lanes() + [lane.id for lane in shared]

    def after_fork(self) -> None:
        self.loop.after_fork()
        for wire in list(self._all):
            assert isinstance(wire, LoopWire)
            wire.after_fork()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def uninterrupted(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await to_its_end(coroutine)

    async def in_background(self, coroutine: Coroutine[Any, Any, None], seconds: float) -> None:
        """Run a coroutine that raises nothing for a cancelled caller, which waits for it for at
        most ``seconds``, and is not cancelled again meanwhile."""
        task = asyncio.ensure_future(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        end = time.monotonic() + seconds
        while not task.done() and (left := end - time.monotonic()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task}, timeout=left)

    async def _closing(self) -> AsyncGenerator[None, None]:
        """Close the connections at the end of the loop, which closes its unfinished generators
        last."""
        try:
            yield
        finally:
            for task in list(self._background):
                task.cancel()
            if self._background:
                await asyncio.wait(self._background)
            for server in self._servers.values():
                server.close()
            for wire in list(self._all):
                wire.lane.drop()
                wire.close()
            await asyncio.sleep(0)  # the transports end


def _left(end: float | None) -> float | None:
    """Return the seconds until ``end``."""
    return None if end is None else max(end - time.monotonic(), SHORTEST)
