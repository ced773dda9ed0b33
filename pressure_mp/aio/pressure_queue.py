"""The pressure protocol itself, in bytes, for asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..engines.contract.queues import How
from ..exceptions import PressureError
from ..handles.options import ConnectionOptions, SignatureOf
from ..hidden import hide_in
from ..numeric import integer
from ..sync import pressure_queue as sync
from ..sync.pressure_queue import check_item, check_role, creating
from .handles import ItemHandle

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class PressureQueue(ItemHandle):
    """:class:`pressure_mp.PressureQueue` for asyncio: what each method does is said there."""

    _kind = sync.PressureQueue
    __signature__ = SignatureOf(ConnectionOptions)

    def __init__(self, name: str, **options: Unpack[ConnectionOptions]) -> None:
        """As for :class:`pressure_mp.PressureQueue`."""
        self._prepare(How.ATTACH, name, **hide_in(options))

    @classmethod
    def of(cls, handle: sync.PressureQueue) -> Self:
        """Make a handle for asyncio to the queue of a handle for threads; see :meth:`Handle.of`."""
        return super().of(handle)

    async def create(self, bound: int = 0) -> None:
        """Create the queue (specification: Create)."""
        await self._meet_with(creating(self._at, bound))

    async def length(self) -> int:
        """How many items are queued (specification: Length)."""
        return await self._run(self._at.operations.length())

    async def closed(self) -> bool:
        """Whether the queue was closed (specification: Closed)."""
        return await self._run(self._at.operations.closed())

    async def put(
        self, item: bytes, timeout: float | None = None, *, overfill: bool = False
    ) -> None:
        """Append ``item`` (specification: Put)."""
        seconds = self._at.seconds(timeout)
        await self._run(self._at.operations.put(check_item(item), True, seconds, overfill))

    async def put_nowait(self, item: bytes, *, overfill: bool = False) -> None:
        """Append ``item`` at once (specification: Put (Non-Blocking))."""
        await self._run(self._at.operations.put(check_item(item), False, None, overfill))

    async def put_many(
        self, items: Iterable[bytes], block: bool = True, timeout: float | None = None
    ) -> None:
        """Append all ``items``, in order."""
        given = [check_item(item) for item in items]
        seconds = self._at.seconds(timeout)
        try:
            await self._run(self._at.operations.put_many(given, bool(block), seconds))
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise

    async def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[bytes]:
        """Take the oldest items, 1 to ``max_items``."""
        max_items = integer("max_items", max_items, 1)
        seconds = self._at.seconds(timeout)
        return await self._run(self._at.operations.get_many(max_items, bool(block), seconds))

    async def get(self, timeout: float | None = None) -> bytes:
        """Take the oldest item (specification: Get)."""
        return await self._run(self._at.operations.get(True, self._at.seconds(timeout)))

    async def get_nowait(self) -> bytes:
        """Take the oldest item at once (specification: Get (Non-Blocking))."""
        return await self._run(self._at.operations.get(False, None))

    async def close(self, timeout: float | None = None) -> None:
        """Close the queue for everyone, for good (specification: Close)."""
        seconds = self._at.seconds(timeout)
        await self._run(self._at.operations.close(True, seconds, once=True))

    async def close_nowait(self) -> None:
        """Close the queue at once."""
        await self._run(self._at.operations.close(False, None, once=True))

    async def unlock(self, role: str) -> str | None:
        """Take a role from the client that has it."""
        return await self._run(self._at.operations.unlock(check_role(role)))

    async def delete(self, timeout: float | None = None) -> None:
        """Remove the queue and every key of it (specification: Delete)."""
        await self._delete(True, timeout)

    async def delete_nowait(self) -> None:
        """Remove the queue at once, or not at all."""
        await self._delete(False, None)
