"""A client of a FIFO queue that is nothing but operations, a driver and an engine's binding."""

from __future__ import annotations

import functools
from typing import Any

import engines
import inside
import redis
import waiting
from brokers.broker import Broker

from pressure_mp import drivers
from pressure_mp.engines import registry
from pressure_mp.engines.contract.queues import How
from pressure_mp.engines.contract.session import Options
from pressure_mp.operations.items import ItemOperations

#: Milliseconds.
LEASE, LONG_LEASE = 5000, int(1000 * waiting.HOURS)


class Client:
    """The operations of one queue, run by ``drive`` or, with an ``a`` before the name, ``adrive``.

    ``client.put(b"x")`` blocks its thread; ``await client.aput(b"x")`` suspends its task.
    """

    def __init__(self, url: str, name: str, lease: int = LEASE) -> None:
        self.engine = registry.engine(registry.parse(url).started())
        self.binding = self.engine.bind(name, "fifo", Options(lease=lease))
        self.operations = ItemOperations(name, "fifo")

    @functools.cached_property
    def observer(self) -> redis.Redis:
        """A client of redis-py, to look at the server's contents."""
        address = self.engine.address
        if address.path:
            return redis.Redis(unix_socket_path=address.path)
        return redis.Redis(host=address.host, port=address.port)

    def connections(self) -> int:
        """How many there are to the server, but for the one that asks."""
        return _broker(self.engine).connections(self.engine, self.binding)

    def waiters(self) -> int:
        """How many operations wait: on this queue in memory; or on the whole server, and behind one
        of them in their event loop."""
        return _broker(self.engine).waiters(self.engine, self.binding)

    def run(self, operation: Any) -> Any:
        return drivers.drive(operation, self.binding.session())

    async def arun(self, operation: Any) -> Any:
        return await drivers.adrive(operation, self.binding.asession())

    def open(self, maxsize: int = 0) -> int:
        return self.run(self.operations.open(How.OPEN, maxsize))

    def put(self, item: bytes, block: bool = True, timeout: float | None = None) -> None:
        self.run(self.operations.put(item, block, timeout))

    def get(self, block: bool = True, timeout: float | None = None) -> bytes:
        return self.run(self.operations.get(block, timeout))

    def length(self) -> int:
        return self.run(self.operations.length())

    def stats(self) -> Any:
        return self.run(self.operations.stats())

    async def aopen(self, maxsize: int = 0) -> int:
        return await self.arun(self.operations.open(How.OPEN, maxsize))

    async def aput(self, item: bytes, block: bool = True, timeout: float | None = None) -> None:
        await self.arun(self.operations.put(item, block, timeout))

    async def aget(self, block: bool = True, timeout: float | None = None) -> bytes:
        return await self.arun(self.operations.get(block, timeout))

    async def aclose(self, immediate: bool = False) -> None:
        await self.arun(self.operations.close(True, None, once=False, immediate=immediate))

    async def adelete(self) -> None:
        await self.arun(self.operations.delete(True, None))

    async def ajoin(self, timeout: float | None = None) -> bool:
        return await self.arun(self.operations.join(timeout))

    async def atask_done(self) -> None:
        await self.arun(self.operations.task_done())

    async def alength(self) -> int:
        return await self.arun(self.operations.length())

    async def astats(self) -> Any:
        return await self.arun(self.operations.stats())

    def roles(self) -> list[str]:
        """The waiters and roles that are left on an unused queue: there should be none."""
        return _broker(self.engine).held(self.engine, self.binding)


def waiters(handle: Any) -> int:
    """How many operations wait: on a handle's queue in memory, or on the whole server."""
    engine = inside.engine(handle)
    return _broker(engine).waiters(engine, inside.bind(handle))


def _broker(engine: Any) -> type[Broker]:
    return engines.of(engine.address.url).broker
