"""The connections of one event loop: for each server one that all quick calls share, and the
connections of operations that wait. Many tasks that need one at once do not open one each."""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ..cancelled_calls import to_its_end
from ..closed_loops import OwnLoop
from ..lines import Lines
from .channels import Channel, SharedConnection
from .lanes import Lane
from .loop_wire import LoopWire
from .pool import SHORTEST, Pool
from .routes import Route
from .wire import Carrier, Node, Wire

T = TypeVar("T")

#: The most connections to one server that are opened at a time, for single operations.
_AT_ONCE = 4


class Together(Generic[T]):
    """A call that is made once for all tasks that make it at the same time. A task that is
    cancelled, or has no more time, does not end it for the others."""

    def __init__(self, do: Callable[..., Coroutine[Any, Any, T]]) -> None:
        self._do = do
        self._task: asyncio.Task[T] | None = None

    async def __call__(self, timeout: float | None, *args: Any) -> T:
        """Return the result, or raise the error. The first task makes the call with its arguments,
        which have a time limit; the others wait ``timeout`` seconds for it."""
        task, limit = self._task, timeout
        if task is None:
            task, limit = asyncio.ensure_future(self._do(*args)), None
            self._task = task
            task.add_done_callback(self._end)
        done, _ = await asyncio.wait({task}, timeout=limit)
        if not done:
            raise TimeoutError("no connection in time")
        if task.cancelled():
            raise ConnectionAbortedError("the event loop ends")
        error = task.exception()
        if error is not None:
            raise error.with_traceback(None)
        return task.result()

    def _end(self, task: asyncio.Task[T]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # perhaps no task waits for it any more


class Gate:
    """Limits how many tasks open a connection at a time. A waiting task tries again when another
    has opened one, or when a connection became idle."""

    def __init__(self) -> None:
        self._free = _AT_ONCE
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()

    def enter(self) -> bool:
        """Return whether the caller may open a connection now; it must call :meth:`leave` then."""
        if self._free == 0:
            return False
        self._free -= 1
        return True

    def leave(self, error: OSError | None = None) -> None:
        """Note that a connection was opened; with an ``error`` it was not, and the waiting tasks
        raise that too."""
        self._free += 1
        if error is None:
            self.wake()
            return
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    def wake(self) -> None:
        """Let the first waiting task try again."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    async def wait(self, timeout: float | None) -> None:
        """Wait until another try may succeed."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            done, _ = await asyncio.wait({waiting}, timeout=timeout)
        except asyncio.CancelledError:
            if waiting.done() and waiting.exception() is None:
                self.wake()
            waiting.cancel()
            raise
        if not done:
            waiting.cancel()
            raise TimeoutError("no connection in time")
        error = waiting.exception()
        if error is not None:
            raise error.with_traceback(None)


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
