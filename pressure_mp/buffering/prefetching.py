"""Read ahead as many items as the program said, with ``prefetch=N``. They are in flight until they
are handed out, or until ``task_done()``."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from .. import events, interrupts, lifecycle
from ..caller_warnings import warn_caller
from ..deadlines import seconds_left
from ..drivers import noting
from ..effects import Operation, T
from ..engines.contract.items import PrefetchReply, Taken
from ..exceptions import (
    Empty,
    PressureError,
    QueueDoesNotExistError,
    RejectedItemWarning,
    ShutDown,
)
from ..handles.attachment import inheritable
from ..identity.processes import incarnation
from ..in_flight import Claim
from .pace import StatedPace
from .read_ahead import DECODED, MOMENT, NOTHING, Item, ReadAhead
from .window import OPEN

if TYPE_CHECKING:
    from ..background.presence import Presence
    from ..handles.objects import ObjectAttachment

_readers = itertools.count(1)
#: Larger items, in bytes, are decoded one by one: that takes half the time, as their memory is used
#: again.
_SMALL = 1000


class Prefetching(ReadAhead):
    """Prefetches up to ``prefetch=N`` items, when none is left.

    When there is none to prefetch, one thread waits for an item at the broker, and has the lock
    meanwhile: so no other thread prefetches items that would be older than this item, or that no
    thread gets while this thread waits. A get that cannot wait takes one item meanwhile.
    """

    alone: ClassVar[bool] = False

    def __init__(self, queue: ObjectAttachment) -> None:
        self._size = queue.buffering.gets
        self._queue = weakref.ref(queue)
        super().__init__(queue)

    def reset(self) -> None:
        super().reset()
        self._are_decoded = False  # all items that are here
        self._waits = False  # the thread that has the lock waits for an item
        self._passing = threading.Lock()  # it does not go on while another thread takes an item

    def _make_pace(self) -> StatedPace:
        return StatedPace(self._size)

    def _make_name(self, queue: ObjectAttachment) -> str:
        return f"{incarnation()}#{next(_readers)}"

    def __len__(self) -> int:
        return len(self.window.ahead) + len(self.window.left)

    # Getting

    def get(self, queue: ObjectAttachment, block: bool, timeout: float | None) -> Any:
        """Hand out a decoded item in less time than :meth:`ReadAhead.get`, which does the rest."""
        window, item = self.window, None
        if self._are_decoded and not (window.left or interrupts.abandoned or events.listeners):
            told = window.told
            try:
                for item in window.pops:
                    place = window.place
                    window.place = window.cell[0] = place + 1
                    if item[2] == DECODED and monotonic() < window.until:
                        return item[1]
                    window.left += ((item, place, told),)  # too late, or another thread's reply
                    break
            except BaseException as error:
                if item is not None:
                    interrupts.abandoned += [(self, [(item, place, told)])]
                    interrupts.settle()
                    raise
                if not isinstance(error, IndexError):
                    raise
        return super().get(queue, block, timeout)

    def get_many(
        self,
        queue: ObjectAttachment,
        number: int,
        block: bool,
        timeout: float | None,
        look: Callable[[], None] | None = None,
    ) -> list[Any]:
        """Get the next item, and then the items that are here, up to ``number`` in all; then call
        ``look``."""
        found: list[Any] = []
        try:
            found += (self.get(queue, block, timeout),)
            self._add_more(queue, found, number)
            if look is not None:
                look()
            return found
        except BaseException:
            queue.kept += found  # no call: they are this handle's next items
            inheritable.add(queue)  # a child has others
            raise

    def _add_more(self, queue: ObjectAttachment, found: list[Any], number: int) -> None:
        """Add items that are here, up to ``number`` in all."""
        try:
            while len(found) < number and not self.window.left:
                item = self._hand_out(queue)
                if item is NOTHING:
                    return
                found += (item,)
        except PressureError as error:
            warn_caller(str(error), RejectedItemWarning)

    def forward(self, queue: ObjectAttachment, write: Callable[[list[bytes]], int]) -> bool:
        """Give all items that are here to ``write``, which returns how many of the first ones are
        done: these are handed out, the others stay. Prefetches when there is none. For one thread.
        Returns False if there is no item, or the next one cannot be prefetched."""
        window = self.window
        queue.check_open()
        if not (window.is_ready(monotonic()) or super()._make_ready(queue, None, False)):
            return False
        window.hand_out(write([item for item, _, _ in window.ahead]))
        return True

    # Reading

    def _make_ready(self, queue: ObjectAttachment, end: float | None, waits: bool) -> bool:
        """Prefetch; or receive an item, which may take until ``end``, and raises what a get
        raises."""
        if lifecycle.is_ending() or interrupts.is_held(self._lock):
            return super()._make_ready(queue, end, waits)
        self._prepare(queue)
        first = () if not waits else (-1.0 if end is None else max(end - monotonic(), 0.0),)
        for held in interrupts.attempts(self._lock, *first, more=MOMENT):
            if held:
                try:
                    queue.check_open()
                    if self.window.left or self._read_ahead(queue, self._next_number()):
                        return True
                    return self._receive(queue, end, waits)
                finally:
                    self._waits = False
                    self._lock.release()
            if self._waits and self._pass(queue):
                return True
        raise AssertionError("attempts end only with the lock")

    def _pass(self, queue: ObjectAttachment) -> bool:
        """Take an item while another thread waits for one, if it still does. Raises Empty."""
        with self._passing:
            if self._waits:
                self._take_one(queue)
                return True
        return False

    def _note(self, waits: bool) -> None:
        # What another thread takes meanwhile is older than what is prefetched after the wait.
        with self._passing:
            self._waits = waits

    def _next_number(self) -> int:
        return self.window.pace.next_number(self.window.place)

    def _receive(self, queue: ObjectAttachment, end: float | None, waits: bool) -> bool:
        """Take one item at the broker; waits for it, and raises, as a get. It comes first."""
        found = queue.get_noted(waits, seconds_left(end), self._note)
        self.window.left += (((b"", found, DECODED), -1, -1),)  # no call: this handle has it
        return True

    def _take_one(self, queue: ObjectAttachment) -> None:
        """Take one item at the broker, if there is one. It comes first."""
        found = queue.get(False, None)
        self.window.left += (((b"", found, DECODED), -1, -1),)

    def _make_items(
        self, queue: ObjectAttachment, items: list[bytes], numbers: Sequence[int]
    ) -> list[Item]:
        """Decode small items together, unless one of them cannot be decoded."""
        try:
            if sum(map(len, items)) <= _SMALL * len(items):
                decoded = queue.codec.decode_many(items)
                self._are_decoded |= not self.window.ahead
                return list(zip(items, decoded, repeat(DECODED), strict=False))
        except Exception as error:
            if interrupts.is_from_outside(error):
                raise
        self._are_decoded = False
        return super()._make_items(queue, items, numbers)

    def _prepare(self, queue: ObjectAttachment) -> None:
        queue.codec.prepare()  # nothing is taken out that this handle has no key for
        super()._prepare(queue)

    def _run(self, queue: ObjectAttachment, operation: Operation[T]) -> T:
        return queue.run_at_once(operation)

    def _see_to_end(self) -> None:
        if self._presence is not None:
            self._presence.watch(self)

    def before_look(self, queue: ObjectAttachment) -> None:
        """Hear the reply to what was asked for: its items are counted beside the broker's."""
        self._listen(queue, self.patience)

    def _listen(self, queue: ObjectAttachment, patience: float, end: float | None = None) -> None:
        """Read the reply to a request that was sent ahead, if there is one; until ``end`` on the
        monotonic clock. Waits ``patience`` seconds for another thread."""
        if self._asked is None or interrupts.is_held(self._lock):
            return  # or a signal handler came in the midst of this
        for held in interrupts.attempts(self._lock, patience):
            if held:
                try:
                    if self._asked is not None:
                        self._feed(queue, self._hear(queue, queue.run_at_once, end))
                finally:
                    self._lock.release()

    # What the presence of this process asks

    @property
    def holds(self) -> bool:
        """Whether the broker keeps any items for this reader."""
        return self.window.holds

    def look(self, presence: Presence) -> None:
        """Tell the broker what was handed out; or put back what is here, if no get will ask for it.
        Called now and then."""
        if self._others_decode or interrupts.abandoned:
            return  # their items may yet come back: the next look tells of them
        queue = self._queue()
        if queue is not None:
            try:
                self._listen(queue, 0.0, monotonic() + presence.lease.patience)
            except PressureError:
                pass  # below, the prefetch ends
        self._try_to_end(presence.lease.run_now, renews=True)

    @property
    def _goes_on(self) -> bool:
        queue, window = self._queue(), self.window
        is_used = queue is not None and not queue.is_closed
        return is_used and window.state is OPEN and window.until > 0 and bool(window.ahead)


class HoldingPrefetch(Prefetching):
    """Prefetches from a JoinableQueue, whose items stay in flight until ``task_done()``. The thread
    that gets an item decodes it."""

    def reset(self) -> None:
        super().reset()
        self._pending: Claim | None = None  # of a take whose items are not yet in the window

    def _prepare(self, queue: ObjectAttachment) -> None:
        super()._prepare(queue)
        assert self._presence is not None
        self._in_flight = self._presence.in_flight

    def _read_ahead(self, queue: ObjectAttachment, number: int) -> bool:
        """Prefetch nothing before a get waits for it: it would be in flight for this process."""
        return self.window.is_ready(monotonic())

    def _receive(self, queue: ObjectAttachment, end: float | None, waits: bool) -> bool:
        """Take items at the broker; waits for the first of them, and raises, as a get."""
        self._end(partial(self._run, queue))
        window, presence, request = self.window, self._presence, self._ask(queue, self._size)
        assert presence is not None
        self._pending = claim = Claim()
        taking = presence.operations.take_many(
            *(incarnation(), claim.begin(), 0, self._size, waits, seconds_left(end), queue.eof),
            reader=request.reader,
        )
        try:
            with presence:
                deliveries = queue.run_at_once(noting(taking, self._note), queue.while_open)
        except (Empty, ShutDown, QueueDoesNotExistError):
            self._pending = None
            window.forget()
            raise
        numbers = [delivery.seq for delivery in deliveries]
        presence.in_flight.came(numbers)
        return self._feed(queue, Taken([delivery.item for delivery in deliveries], numbers))

    def _take_one(self, queue: ObjectAttachment) -> None:
        presence, claim = self._presence, Claim()
        assert presence is not None
        taking = presence.operations.take_many(
            incarnation(), claim.begin(), 0, 1, False, None, queue.eof
        )
        try:
            (one,) = queue.run_at_once(taking)
            presence.in_flight.came((one.seq,))
            self.window.left += (((one.item, None, one.seq), -1, -1),)
        except (Empty, ShutDown, QueueDoesNotExistError):
            raise
        except BaseException:
            interrupts.abandoned += [(presence.lease, claim)]
            interrupts.settle()
            raise

    def _feed(self, queue: ObjectAttachment, reply: PrefetchReply) -> bool:
        is_fed = super()._feed(queue, reply)
        if is_fed:  # no call: from here on the window has the items
            self._pending = None
        return is_fed

    def _make_items(
        self, queue: ObjectAttachment, items: list[bytes], numbers: Sequence[int]
    ) -> list[Item]:
        return ReadAhead._make_items(self, queue, items, numbers)

    def _tell(self, queue: ObjectAttachment, item: Item) -> None:
        queue.operations.tell_received([item[0]], 0, [item[2]], self._presence)

    def _accept(self, queue: ObjectAttachment, found: Item) -> Any:
        item, _, number = found
        presence = self._presence
        assert presence is not None
        presence.in_flight.add(number)
        try:
            return queue.run_at_once(queue.operations.accept(item, number, presence))
        finally:
            presence.in_flight.discard(number)

    def _ending(self) -> Operation[None]:
        presence = self._presence
        assert presence is not None
        window = self.window
        window.stop()
        if self._pending is not None and self._pending.call:
            yield from presence.lease.disown(self._pending)
        self._pending = None
        left, window.left = window.left, []
        window.back += [item for item, _, _ in reversed(left)]
        numbers = [number for _, _, number in reversed(window.back)]
        if numbers:
            yield from presence.operations.requeue(incarnation(), seqs=numbers)
        window.forget()

    def _renewing(self) -> Operation[None]:
        """Have the broker keep the items; or, when others may have them, put back what they do not
        have."""
        window, presence, began = self.window, self._presence, monotonic()
        assert presence is not None
        if began >= window.until:
            yield from self._ending()
            return
        yield from presence.operations.renew(*presence.renewal())
        window.until = began + window.lasting
