"""Sessions of requests to the notes of a host, or to the broker, which never wait or take items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from .blocking_coroutines import finish
from .contract.replies import Later
from .contract.session import Options, SessionDefaults


class Pools(Protocol):
    """An engine, with its connections."""

    @property
    def thread_pool(self) -> Any:
        """The connections that threads use."""

    @property
    def loop_pool(self) -> Any:
        """The connections of the running event loop."""


class Asked(ABC):
    """The broker, with the notes of a host there."""

    def __init__(self, pools: Pools, options: Options) -> None:
        self._pools = pools
        self._options = options

    def session(self) -> HostSession:
        return HostSession(self, self._pools.thread_pool)

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, self._pools.loop_pool)

    @abstractmethod
    async def call(self, request: Any, pool: Any, end: float | None) -> Any:
        """Do a request over the connections of a pool; ``end`` is as in ``Session.call``."""


class _Session(SessionDefaults):
    def __init__(self, asked: Asked, pool: object) -> None:
        self._asked = asked
        self._pool = pool


class HostSession(_Session):
    """For a thread."""

    def call(self, request: Any, end: float | None = None) -> Any:
        return finish(self._asked.call(request, self._pool, end))

    def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"{later} is no reply of a host or of a broker")

    def end(self) -> None:
        """Do nothing: nothing is held."""


class AsyncHostSession(_Session):
    """For an asyncio task."""

    async def call(self, request: Any, end: float | None = None) -> Any:
        return await self._asked.call(request, self._pool, end)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"{later} is no reply of a host or of a broker")

    async def end(self) -> None:
        """Do nothing: nothing is held."""
