"""What an administrator does with a queue of objects: look into it, clear it, mend it."""

from __future__ import annotations

from typing import Generic, TypeVar

from .buffered import BufferedItemHandle
from .handles import check_max_items

Item = TypeVar("Item")


class AdministeredQueue(BufferedItemHandle, Generic[Item]):
    """The part of every queue of objects that is for administrators."""

    def peek(self, max_items: int = 1) -> list[Item]:
        """The items that are next, up to ``max_items``, in the order in which they would be got.
        They stay in the queue, and others may get them meanwhile. Never waits.

        Raises AuthenticationError and DecodingError for one that cannot be used; it stays too.
        Raises QueueDoesNotExistError, ArgumentError.
        """
        check_max_items(max_items)
        if self._incoming is not None:
            self._incoming.before_look(self)
        return self._run(self._operations.peek_objects(max_items))

    def purge(self, timeout: float | None = None) -> int:
        """Drop all items that are queued, for everyone; returns how many. They count as got, and as
        dealt with.

        What was got and is in flight stays so, and the queue goes on. Blocks while another
        implementation is at work as a consumer, at most ``timeout`` seconds. Raises
        QueueInUseError when the time is up, QueueDoesNotExistError.
        """
        if self._incoming is not None:
            self._incoming.before_look(self)
        return self._run(self._operations.purge(True, self._seconds(timeout)))

    def rejected(self, limit: int = 100) -> list[bytes]:
        """Up to ``limit`` of the items that were set aside, oldest first, as they were queued.

        They could not be decoded, were forged, or were delivered too often (``max_deliveries``).
        Of a large item it is what was queued, and behind that its content.
        """
        return self._run(self._operations.rejected_with_content(limit))

    def requeue_rejected(self) -> int:
        """Put the items that are set aside now into the queue again, behind the others and over the
        bound if need be; returns how many. Never waits.

        Raises ArgumentError for a PriorityQueue or FairQueue, which would have to know where they
        belong; ShutDown, QueueDoesNotExistError.
        """
        return self._run(self._operations.requeue_all_rejected())

    def drop_rejected(self) -> int:
        """Remove the items that are set aside now, for good; returns how many. Never waits. Raises
        QueueDoesNotExistError."""
        return self._run(self._operations.drop_all_rejected())
