"""What an administrator does with a queue of objects: look into it, clear it, mend it."""

from __future__ import annotations

from typing import Generic

from ..numeric import integer
from .buffered import BufferedItemHandle
from .item import Item


class AdministeredQueue(BufferedItemHandle, Generic[Item]):
    """The part of every queue of objects that is for administrators."""

    def peek(self, max_items: int = 1) -> list[Item]:
        """The next items, up to ``max_items``, in the order in which they would be got.

        The items stay in the queue, and other clients may get them meanwhile. Waits for no other
        client. Raises AuthenticationError or DecodingError for an item that cannot be decoded; it
        stays in the queue too. Raises QueueDoesNotExistError, and ArgumentError for ``max_items``
        below 1.
        """
        max_items = integer("max_items", max_items, 1)
        if self._incoming is not None:
            self._incoming.before_look(self)
        return self._run(self._operations.peek_objects(max_items))

    def purge(self, timeout: float | None = None) -> int:
        """Drop all items that are queued, for all clients; returns how many.

        The items count as got and as done. Items in flight stay in flight, and the queue can be
        used as before. Blocks while a client of another implementation of the protocol is getting:
        without limit, or at most ``timeout`` seconds. Raises QueueInUseError when the time is up,
        QueueDoesNotExistError.
        """
        if self._incoming is not None:
            self._incoming.before_look(self)
        return self._run(self._operations.purge(True, self._seconds(timeout)))

    def rejected(self, limit: int = 100) -> list[bytes]:
        """Up to ``limit`` of the items that were set aside, oldest first, as bytes.

        An item is set aside when it could not be decoded, was not signed with a key of the handle
        that got it, or was delivered too often (``max_deliveries``). The bytes are those that were
        queued; for a large item they are followed by its content. Waits for no other client. Raises
        QueueDoesNotExistError.
        """
        return self._run(self._operations.rejected_with_content(integer("limit", limit, 1)))

    def requeue_rejected(self) -> int:
        """Put the items that were set aside back into the queue; returns how many.

        They go behind the items that are queued, even if the queue is full. Waits for no other
        client. Raises ArgumentError for a PriorityQueue or FairQueue, because the bytes of an item
        do not tell its priority or key; ShutDown, QueueDoesNotExistError.
        """
        return self._run(self._operations.requeue_all_rejected())

    def drop_rejected(self) -> int:
        """Remove the items that were set aside, for good; returns how many.

        Waits for no other client. Raises QueueDoesNotExistError.
        """
        return self._run(self._operations.drop_all_rejected())
