"""The sessions of puts that settle a delivery of another queue."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..drivers import adrive, drive_on
from ..effects import Operation
from ..engines.contract.items import Put
from ..engines.contract.replies import Later
from ..engines.contract.session import AsyncSession, Binding, Session, SessionDefaults
from ..engines.contract.tasks import PutTasks
from ..operations.forwarding import forward
from ..operations.settling import Settling

#: The requests that put.
_PUTS = (Put, PutTasks)


class Delivery(NamedTuple):
    """A delivery, and the binding of its queue."""

    source: Binding
    settling: Settling

    def forward(self, put: Put | PutTasks, end: float | None) -> Operation[Any]:
        """Return the operation that does a put, and settles the delivery."""
        return forward(self.source, self.settling, put, end)


class ForwardSession(SessionDefaults):
    """The session of a put that settles a delivery too, in a thread."""

    transaction = None

    def __init__(self, delivery: Delivery, inner: Session) -> None:
        self._delivery, self._inner = delivery, inner

    def call(self, request: Any, end: float | None = None) -> Any:
        if isinstance(request, _PUTS):
            return drive_on(self._delivery.forward(request, end), self._inner)
        return self._inner.call(request, end)

    def wait(self, later: Later, timeout: float | None) -> bool:
        return self._inner.wait(later, timeout)

    def interrupted(self) -> None:
        self._inner.interrupted()

    def end(self) -> None:
        self._inner.end()


class AsyncForwardSession:
    """The session of a put that settles a delivery too, in an asyncio task."""

    found: list[Any] | None = None
    transaction = None

    def __init__(self, delivery: Delivery, inner: AsyncSession) -> None:
        self._delivery, self._inner = delivery, inner

    async def call(self, request: Any, end: float | None = None) -> Any:
        if isinstance(request, _PUTS):
            return await adrive(self._delivery.forward(request, end), _Unended(self._inner))
        return await self._inner.call(request, end)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        return await self._inner.wait(later, timeout)

    async def end(self) -> None:
        await self._inner.end()


class _Unended:
    """A session that goes on after an operation."""

    found: list[Any] | None = None

    def __init__(self, session: AsyncSession) -> None:
        self.call, self.wait = session.call, session.wait

    async def end(self) -> None:
        """Do nothing."""
