"""What one handle put into a queue with a bound, and is not yet at the broker."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

from .. import events, interrupts
from ..deadlines import deadline, seconds_left
from ..effects import Operation
from ..encoding.large import THRESHOLD, Large
from ..engines.contract.items import Added, put_for
from ..exceptions import ProducerInUseError
from ..identity.processes import is_pool_worker
from . import space, unsent
from .outgoing import Outgoing
from .pace import may_watch
from .sender import Begun

if TYPE_CHECKING:
    from .handle import BufferedHandle


#: Items that are put between two gets of the same process: of so many each one is put by itself.
_FEW = 8


class BoundedOutgoing(Outgoing):
    """Items that have their places in the queue already, as long as this process alone puts. Else
    each put goes to the broker, and so does one that finds no space reserved."""

    def __init__(self, size: int, handle: BufferedHandle) -> None:
        super().__init__(size, False, handle, None)
        self._space = space.of(self.engine, self.queue)
        self._space.add(self)

    def reset(self) -> None:
        super().reset()
        self._is_ready = False
        self._seen = 0  # of what was put, when this process got something

    # Putting

    def put(self, handle: BufferedHandle, item: Any, block: bool, timeout: float | None) -> None:
        if self._is_ready and not events.listeners:
            try:
                encoded = self._encode(item)
            except Exception as error:
                if interrupts.is_from_outside(error):
                    raise
                encoded = handle._codec.encode(item)  # says what is wrong
            if type(encoded) is bytes:
                if self._accept(handle, encoded) or self._puts_here(handle, encoded):
                    return
                if len(encoded) >= THRESHOLD:
                    del encoded  # not two copies at a time
                    encoded = handle._codec.encode(item)
        else:
            handle._check_open()
            encoded = handle._codec.encode(item, events.created(handle._operations.destination))
            if not self._is_ready:
                self._make_ready(handle)
        end = deadline(block, timeout)
        if isinstance(encoded, Large):
            self._put_large(handle, encoded, block, end)
        else:
            self._put_with_care(handle, encoded, block, end)

    def _make_ready(self, handle: BufferedHandle) -> None:
        self._encode = handle._codec.quick
        if is_pool_worker():
            handle._put_at_once()  # as in Outgoing
            self._is_off = True
        self._is_ready = True

    def _accept(self, handle: BufferedHandle, item: bytes) -> bool:
        """Add an item for which space is reserved, if any is."""
        place, items = self._space, self._items
        with self._lock:
            if (
                not place.permits
                or (now := monotonic()) >= place.until
                or self._is_off
                or len(items) >= self._size
                or len(item) >= THRESHOLD
                or not self._may_add(len(item))
            ):
                return False
            del place.permits[-1]
            items += (item,)  # nothing is interrupted in between
        place.last = now
        if self.sender.last is not self:
            self.sender.line_up(self, handle)
        if monotonic() >= place.until:
            # This process was stopped in the midst of that: others may have the place.
            self.settle(block=True)
        return True

    def _put_large(
        self, handle: BufferedHandle, item: Large, block: bool, end: float | None
    ) -> None:
        self.settle_in_time(block, end)
        self.release(handle)
        super()._put_large(handle, item, block, end)

    def _put_with_care(
        self, handle: BufferedHandle, item: bytes, block: bool, end: float | None
    ) -> None:
        while True:
            handle._check_open()
            self.raise_failure(handle)
            if self._accept(handle, item):
                return
            if self._home.is_inside and not self._is_off:
                self._items.append(item)
                self.sender.line_up(self, handle)
                return
            self.settle_in_time(block, end)
            if self._is_off or self._space.is_mine():
                self._put_past(handle, item, block, end)
                return
            if self._put_in_turn(handle, item, block, end):
                return

    def _put_past(
        self, handle: BufferedHandle, item: bytes, block: bool, end: float | None
    ) -> None:
        """Put an item at the broker, and reserve nothing."""
        handle._putting(handle._operations.put(item, block, seconds_left(end)))
        self._space.last = monotonic()

    def _put_in_turn(
        self, handle: BufferedHandle, item: bytes, block: bool, end: float | None
    ) -> bool:
        """Put an item at the broker, and reserve the space behind it, if that is worth it. One
        thread of this process does so at a time. False: it is to be tried again."""
        place, me = self._space, get_ident()
        place.line += (me,)
        try:
            if not place.wait_in_line(end if block else 0.0):
                return self._put_out_of_turn(handle, item)
            if self._accept(handle, item):  # another thread reserved it
                return True
            return self._put_and_reserve(handle, item, block, end)
        finally:
            place.line.remove(me)
            place.changed.give()

    def _put_and_reserve(
        self, handle: BufferedHandle, item: bytes, block: bool, end: float | None
    ) -> bool:
        place = self._space
        try:
            name = place.begin()
            if name is None:
                unsent.settle(self.engine, self.queue, end)
                return False
            expected = None
            if name and place.ran_out and block and may_watch(end):
                if place.expects_one:
                    expected = put_for(name, place.period, item)
                else:
                    handle._settle_reader()
                    if place.waiting(handle):
                        return False
                    name = place.begin()
            if name:
                putting = place.putting(handle, name, item, block, seconds_left(end))
                handle._putting(putting, place.was_full, expected=expected)
                place.last = monotonic()
            else:
                self._put_past(handle, item, block, end)
            return True
        finally:
            place.begins = False  # if it was interrupted before it did

    def _put_out_of_turn(self, handle: BufferedHandle, item: bytes) -> bool:
        """Another thread waits for space, or is being served, and this one may not wait."""
        try:
            self._put_past(handle, item, False, None)
        except ProducerInUseError:
            if not self._space.permits:
                raise
            return False
        return True

    # Sending

    def begin(self, handle: BufferedHandle) -> Begun | None:
        """As of :class:`~.sender.Buffer`."""
        return None if self._space.is_held else super().begin(handle)

    def _sending(
        self, handle: BufferedHandle, batch: Sequence[bytes], waits: bool
    ) -> Operation[Added]:
        return self._space.sending(handle, batch, waits)

    # Being asked

    def before_get(self) -> None:
        """Where one gets soon what it put, nothing is gained."""
        super().before_get()
        number, self._seen = self.number_put - self._seen, self.number_put
        if number < _FEW:
            self._space.share()

    def release(self, handle: BufferedHandle) -> None:
        """Keep nothing reserved."""
        self._space.end()
