"""What the only process that gets from an anonymous queue reads ahead of its need, unasked: as long
as it is that, and no more than it hands out in a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from time import monotonic
from typing import TYPE_CHECKING, Any

from .. import events, interrupts
from ..deadlines import deadline, seconds_left
from ..encoding.unsigned_items import Private
from ..exceptions import PressureError
from .reservation import MOMENT, Item, Reservation

if TYPE_CHECKING:
    from ..handles.objects import ObjectAttachment

_NOTHING = object()

#: One, its place among those that the reader ever handed out, and how often the broker had been
#: told how many those are.
HandedOut = tuple[Item, int, int]
#: One that was set aside.
_REJECTED: HandedOut = ((b"", None), -1, -1)


class Reserving(Reservation):
    """Hands out what is reserved. Who gets an item decodes it then."""

    def reset(self) -> None:
        """As of :class:`~.direct.DirectGet`."""
        super().reset()
        self._left: list[HandedOut] = []  # to calls that were interrupted, and is no longer queued

    def __len__(self) -> int:
        """How many items are here and no longer queued."""
        return len(self._left)

    def get(self, queue: ObjectAttachment, block: bool, timeout: float | None) -> Any:
        """The next item; reads ahead when there is none here, or gets one."""
        if interrupts.abandoned:
            interrupts.settle()
        if self._ahead and not self._left:  # which comes first
            item = self._hand_out(queue)
            if item is not _NOTHING:
                return item
        return self._get_next(queue, block, deadline(block, timeout))

    def get_many(
        self,
        queue: ObjectAttachment,
        number: int,
        block: bool,
        timeout: float | None,
        look: Callable[[], None] | None = None,
    ) -> list[Any]:
        """Who gets several at a time, or looks with a descriptor, does not read ahead."""
        if self._left:
            found = [self.get(queue, block, timeout)]
            if look is not None:
                look()
            return found
        self.before_look(queue)
        return super().get_many(queue, number, block, timeout, look)

    def _get_next(self, queue: ObjectAttachment, block: bool, end: float | None) -> Any:
        while True:
            queue.check_open()
            queue.settle(end)
            if self._left:
                item = self._hand_out(queue, True)
                if item is not _NOTHING:
                    return item
            if not self._make_ready(queue, end, block):
                return queue.get(block, seconds_left(end))
            if monotonic() < self._until:
                item = self._hand_out(queue)
                if item is not _NOTHING:
                    return item

    def _hand_out(self, queue: ObjectAttachment, is_left: bool = False) -> Any:
        """The next item; or of those that were left, if there are any. Else _NOTHING."""
        pops: Iterator[Any] = map(self._left.pop, repeat(0)) if is_left else self._pops
        taken, found = None, None
        told = self._told  # before anything is taken out
        try:
            for taken in pops:
                self._in_hand += 1
                if is_left:
                    item, place, told = taken
                else:
                    item, place = taken, self._place
                    self._place = self._cell[0] = place + 1
                if (is_left or monotonic() >= self._until) and not self._counts(queue, place):
                    self._in_hand -= 1
                    return _NOTHING  # others have it
                try:
                    decoded = self._loads(item[1])
                except Exception as error:
                    found = [(item, place, told)]
                    decoded = self._decode_with_care(queue, found, error)
                if events.listeners:
                    queue.operations.tell_received([item[0]])
                self._in_hand -= 1
                return decoded
        except BaseException as error:
            if taken is None and isinstance(error, IndexError):
                return _NOTHING
            if taken is not None:
                interrupts.abandoned += [(self, found or [(item, place, told)])]
                self._in_hand -= 1
                interrupts.settle()
            raise
        raise AssertionError("a deque is empty, or it is not")

    def _counts(self, queue: ObjectAttachment, place: int) -> bool:
        """Whether the item at a place, which was taken out here too late, counts as handed out.
        This process was stopped meanwhile: others may have ended the reservation."""
        for held in interrupts.attempts(self._lock, more=MOMENT):
            if held:
                try:
                    # The get fails when this does: so it is tried for as long as any get.
                    self._end(queue.run_at_once)
                    return not any(first <= place < end for first, end in self._lost)
                finally:
                    self._lock.release()
        raise AssertionError("attempts end only with the lock")

    @staticmethod
    def _decode_with_care(queue: ObjectAttachment, found: list[HandedOut], error: Exception) -> Any:
        """An item that was not decoded at once."""
        if interrupts.is_from_outside(error):
            raise error
        item, checked = found[0][0]
        if checked is item:  # nothing was to be checked
            item = Private(item)
        try:
            return queue.codec.decode(item)
        except PressureError:
            queue.run_at_once(queue.operations.reject(item))
            found[0] = _REJECTED
            raise

    def _give_up(self, found: list[HandedOut]) -> None:
        """What was handed out to a call that was interrupted is the next one again. If another one
        was handed out since, or the broker was told of it, it stays with this handle."""
        while found:
            item, place, told = found[-1]
            if found[-1] is _REJECTED:
                del found[-1]
            elif told == self._told and self._place == place + 1:
                self._place = self._cell[0] = place
                self._ahead += (item,)
                del found[-1]
                self._ahead.rotate(1)
            else:
                self._until = 0.0  # so that it comes first
                self._left += (found[-1],)
                del found[-1]
