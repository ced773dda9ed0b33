"""Sessions of requests to the notes of a host, or to the broker, which never wait or take items."""

from __future__ import annotations

from typing import Any, Protocol

from .blocking_coroutines import finish
from .contract.replies import Later
from .contract.session import SessionDefaults


class Asked(Protocol):
    """The notes of a host, or the broker."""

    async def call(self, request: Any, over: Any, end: float | None) -> Any:
        """Do a request over the connections ``over``; ``end`` is as in ``Session.call``."""


class _Session(SessionDefaults):
    def __init__(self, asked: Asked, over: object) -> None:
        self._asked = asked
        self._over = over


class HostSession(_Session):
    """For a thread."""

    def call(self, request: Any, end: float | None = None) -> Any:
        return finish(self._asked.call(request, self._over, end))

    def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"{later} is no reply of a host or of a broker")

    def end(self) -> None:
        """Do nothing: nothing is held."""


class AsyncHostSession(_Session):
    """For an asyncio task."""

    async def call(self, request: Any, end: float | None = None) -> Any:
        return await self._asked.call(request, self._over, end)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"{later} is no reply of a host or of a broker")

    async def end(self) -> None:
        """Do nothing: nothing is held."""
