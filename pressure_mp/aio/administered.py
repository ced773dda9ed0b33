"""What an administrator in asyncio does with a queue of objects."""

from __future__ import annotations

from typing import Generic

from ..handles.item import Item
from ..handles.objects import ObjectAttachment
from ..numeric import integer
from .handles import ItemHandle


class AdministeredQueue(ItemHandle, Generic[Item]):
    """The part of every queue of objects that is for administrators."""

    _at: ObjectAttachment

    async def peek(self, max_items: int = 1) -> list[Item]:
        """The items that are next, which stay in the queue; as :meth:`pressure_mp.Queue.peek`."""
        max_items = integer("max_items", max_items, 1)
        return await self._run(self._at.operations.peek_objects(max_items))

    async def purge(self, timeout: float | None = None) -> int:
        """Drop all items that are queued; as :meth:`pressure_mp.Queue.purge`."""
        return await self._run(self._at.operations.purge(True, self._at.seconds(timeout)))

    async def rejected(self, limit: int = 100) -> list[bytes]:
        """The items that were set aside; as :meth:`pressure_mp.Queue.rejected`."""
        return await self._run(
            self._at.operations.rejected_with_content(integer("limit", limit, 1))
        )

    async def requeue_rejected(self) -> int:
        """Put the items that are set aside into the queue again; as
        :meth:`pressure_mp.Queue.requeue_rejected`."""
        return await self._run(self._at.operations.requeue_all_rejected())

    async def drop_rejected(self) -> int:
        """Remove the items that are set aside; as :meth:`pressure_mp.Queue.drop_rejected`."""
        return await self._run(self._at.operations.drop_all_rejected())
