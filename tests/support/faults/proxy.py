"""A TCP proxy, in a process of its own, that breaks the connections that it carries.

What it breaks, and where, is drawn from a seed: the bytes of each direction of each connection
are carried up to a random position, and there a fault happens. Connections that are silent are
cut at random moments.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

#: The faults, in the order of their counters.
CUT = "cut"  #: both sides are closed, in the middle of whatever was on its way
SWALLOW = "swallow"  #: the request is delivered; instead of its reply both sides are closed
IDLE = "idle"  #: a connection is closed at a random moment, most likely while its client waits
HALF = "half-close"  #: one side is told that nothing more will come; the other way stays open
DELAY = "delay"  #: the bytes arrive later
KINDS = (CUT, SWALLOW, IDLE, HALF, DELAY)

#: How likely each fault is, where requests go and where replies come.
_OF_REQUESTS = {CUT: 4, SWALLOW: 4, HALF: 1, DELAY: 1}
_OF_REPLIES = {CUT: 7, HALF: 1, DELAY: 2}


@dataclass(frozen=True)
class Faults:
    """How often, and which. The means are bytes between two faults of one connection."""

    seed: int
    requests: float = 100_000
    replies: float = 5_000
    idle: float = 0.3  # seconds between two cuts of any connection, whatever it carries
    delay: float = 0.05  # seconds at most


class Pair:
    """A client's connection and the one to the server that belongs to it."""

    def __init__(self, proxy: _Proxy) -> None:
        self.proxy = proxy
        self.swallow = False
        self.client = Side(self, _OF_REQUESTS, proxy.faults.requests)
        self.server = Side(self, _OF_REPLIES, proxy.faults.replies)
        self.client.peer, self.server.peer = self.server, self.client

    def cut(self) -> None:
        self.proxy.pairs.pop(self, None)
        for side in (self.client, self.server):
            if side.transport is not None:
                side.transport.abort()


class Side(asyncio.Protocol):
    """One end: what arrives here is carried to the other end, up to the next fault."""

    peer: Side

    def __init__(self, pair: Pair, kinds: dict[str, int], mean: float) -> None:
        self._pair = pair
        self._kinds = kinds
        self._mean = mean
        self._held = bytearray()
        self._waits = True  # for the other end's connection, or for a delay to be over
        self._ended = False
        self._heard_all = False
        self._left = self._draw()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._pair.swallow and self is self._pair.server:
            self._pair.cut()
            return
        self._held += data
        if not self._waits:
            self._carry()

    def go_on(self) -> None:
        self._waits = False
        self._carry()

    def _carry(self) -> None:
        """Carry what arrived; where a fault is due, make it."""
        while self._held and not self._ended and not self._waits:
            data = bytes(self._held[: self._left])
            del self._held[: self._left]
            self._left -= len(data)
            self._write(data)
            if not self._left:
                self._left = self._draw()
                self._break()

    def _write(self, data: bytes) -> None:
        transport = self.peer.transport
        if transport is not None and not transport.is_closing() and not self._heard_all:
            transport.write(data)

    def _draw(self) -> int:
        """After how many bytes the next fault comes."""
        return 1 + int(self._pair.proxy.random.expovariate(1 / self._mean))

    def _break(self) -> None:
        pair, proxy = self._pair, self._pair.proxy
        (kind,) = proxy.random.choices(list(self._kinds), list(self._kinds.values()))
        proxy.count(kind)
        if kind == CUT:
            pair.cut()
        elif kind == SWALLOW:
            self._write(bytes(self._held))
            self._held.clear()
            pair.swallow = True
        elif kind == HALF:
            self._ended = True
            if self.peer.transport is not None and not self.peer.transport.is_closing():
                self.peer.transport.write_eof()
        else:
            self._waits = True
            proxy.later(proxy.random.uniform(0, proxy.faults.delay), self.go_on)

    def eof_received(self) -> bool:
        self._heard_all = True
        if self.peer._heard_all:
            self._pair.cut()
        elif self.peer.transport is not None and not self.peer.transport.is_closing():
            self.peer.transport.write_eof()
        return True  # the other way stays open

    def connection_lost(self, error: Exception | None) -> None:
        self._pair.cut()


class _Proxy:
    def __init__(self, port: int, faults: Faults, counters: Any) -> None:
        self.faults = faults
        self.random = random.Random(faults.seed)
        self.pairs: dict[Pair, None] = {}
        self._port = port
        self._counters = counters

    def count(self, kind: str) -> None:
        self._counters[KINDS.index(kind)] += 1

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, call)

    async def serve(self, control: Connection) -> None:
        """Until ``control`` is closed at its other end."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(control.fileno(), ended.set)
        server = await loop.create_server(self._accept, "127.0.0.1", 0)
        control.send(server.sockets[0].getsockname()[1])
        cutting = asyncio.ensure_future(self._cut_idle())
        await ended.wait()
        cutting.cancel()
        server.close()
        for pair in list(self.pairs):
            pair.cut()

    def _accept(self) -> Side:
        pair = Pair(self)
        self.pairs[pair] = None
        connecting = asyncio.ensure_future(self._connect(pair))
        connecting.add_done_callback(lambda done: done.exception() and pair.cut())
        return pair.client

    async def _connect(self, pair: Pair) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: pair.server, "127.0.0.1", self._port)
        pair.client.go_on()
        pair.server.go_on()

    async def _cut_idle(self) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(1 / self.faults.idle))
            if self.pairs:
                self.random.choice(list(self.pairs)).cut()
                self.count(IDLE)


def _main(port: int, faults: Faults, counters: Any, control: Connection) -> None:
    asyncio.run(_Proxy(port, faults, counters).serve(control))


class Behind(Protocol):
    """The server that a proxy leads to."""

    port: int

    def url_at(self, port: int) -> str:
        """Its URL, if it were at another port."""


class Proxy:
    """The proxy's process, as the test sees it; ``url`` is where clients connect."""

    def __init__(self, server: Behind, faults: Faults) -> None:
        context = multiprocessing.get_context("spawn")
        self._counters = context.Array("q", len(KINDS), lock=False)
        self._control, theirs = context.Pipe()
        self._process = context.Process(
            target=_main, args=(server.port, faults, self._counters, theirs), daemon=True
        )
        self._process.start()
        theirs.close()
        self.url = server.url_at(self._control.recv())

    @property
    def made(self) -> dict[str, int]:
        """How many faults of each kind there were so far."""
        return dict(zip(KINDS, self._counters, strict=True))

    @property
    def cuts(self) -> int:
        """How many connections were broken so far."""
        return sum(count for kind, count in self.made.items() if kind != DELAY)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._control.close()
        self._process.join(10)
        assert self._process.exitcode == 0, f"the proxy ended with {self._process.exitcode}"
