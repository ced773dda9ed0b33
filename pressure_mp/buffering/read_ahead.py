"""Read ahead for the threads of one process: unasked, as long as no other process gets from the
queue, and no more items than it hands out in a moment."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, ClassVar

from .. import events, interrupts, lifecycle
from ..background import at_exit
from ..deadlines import deadline, seconds_left
from ..drivers import ending
from ..effects import Operation, T
from ..encoding.signing import Checked
from ..encoding.unsigned_items import Private
from ..engines.contract.items import Prefetch, PrefetchReply, Taken
from ..engines.contract.session import ONE_TRY, Session
from ..exceptions import BrokerUnavailable, PressureError
from ..identity.client import reader
from ..identity.hand_outs import HandOuts
from .direct import DirectGet, buffers
from .due_thread import DueThread
from .pace import Pace, StatedPace
from .window import RETRY, TakenOut, Window

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from ..handles.objects import ObjectAttachment
    from ..in_flight import InFlight

#: Seconds to wait for another thread's request to the broker, and then again.
MOMENT = 0.01
#: Seconds between two looks at whether another thread decodes an item.
_PAUSE = 0.002

NOTHING = object()


class _Unchecked(Exception):
    """The item was not checked: it is decoded with care."""


#: The number of an item that was decoded when it came, and of one that is done when it is handed
#: out; any other number is that of an item in flight.
DECODED, DONE = -1, 0

#: An item; what was checked of it, None when it could not be, or the decoded object; its number.
Item = tuple[bytes, Checked | Any | None, int]

#: An item that was set aside.
_REJECTED: TakenOut[Item] = ((b"", None, 0), -1, -1)


class ReadAhead(DirectGet):
    """Hands out the items of a :class:`~.window.Window`. The thread that gets an item decodes it.

    Nothing here waits for an item: when there is none, the handle gets one at the broker. Reserved
    items are in the way of every get at the broker, also of this handle's own: so the reservation
    ends before. To forget a reservation loses nothing but time.

    While the items of one request are handed out, the next request is already made.
    """

    #: Whether the items are reserved; else they are in flight.
    alone: ClassVar[bool] = True

    def __init__(self, queue: ObjectAttachment) -> None:
        self._eof = queue.eof
        self.reset()
        _all.add(self)
        buffers.add(self)

    def _make_pace(self) -> Pace | StatedPace:
        return Pace()

    def reset(self) -> None:
        self.window: Window[Item] = Window(self._make_pace(), self.alone, self._eof)
        self._in_hand = 0  # the number of items that are being decoded
        self._loads: Callable[[Any], Any] = _loads_nothing
        self._lock = threading.RLock()  # which tells who has it; no thread has it twice
        self._asked: Session | None = None  # has sent a request whose reply is still to be read
        self._hand_outs: HandOuts | None = None
        self._in_flight: InFlight | None = None  # of a queue whose items stay in flight
        self._presence: Presence | None = None
        self._due_thread = DueThread()

    def __len__(self) -> int:
        return len(self.window.left)

    # Getting

    def get(self, queue: ObjectAttachment, block: bool, timeout: float | None) -> Any:
        if interrupts.abandoned:
            interrupts.settle()
        window = self.window
        if window.ahead and not window.left:
            item = self._hand_out(queue)
            if item is not NOTHING:
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
        """Get without reading ahead: so does a program that gets several at a time, or looks with
        a descriptor."""
        if self.window.left:
            found = [self.get(queue, block, timeout)]
            if look is not None:
                look()
            return found
        self.before_look(queue)
        return super().get_many(queue, number, block, timeout, look)

    def _get_next(self, queue: ObjectAttachment, block: bool, end: float | None) -> Any:
        window = self.window
        while True:
            queue.check_open()
            queue.settle(end)
            if window.left:
                item = self._hand_out(queue, True)
                if item is not NOTHING:
                    return item
            if not self._make_ready(queue, end, block):
                return queue.get(block, seconds_left(end))
            if monotonic() < window.until and not window.left:
                item = self._hand_out(queue)
                if item is not NOTHING:
                    return item

    def _hand_out(self, queue: ObjectAttachment, is_left: bool = False) -> Any:
        """Take the next item out and decode it; with ``is_left`` the next one that an interrupted
        call left. Returns NOTHING if there is none. This does not call :meth:`Window.take`: behind
        a call the item could be lost to a signal handler."""
        window = self.window
        pops: Iterator[Any] = map(window.left.pop, repeat(0)) if is_left else window.pops
        taken, found = None, None
        told = window.told  # before anything is taken out
        try:
            for taken in pops:
                self._in_hand += 1
                if is_left:
                    item, place, told = taken
                else:
                    item, place = taken, window.place
                    window.place = window.cell[0] = place + 1
                is_late = place >= 0 and (is_left or monotonic() >= window.until)
                if is_late and not self._counts(queue, place):
                    self._in_hand -= 1
                    return NOTHING  # others have it
                try:
                    if item[2] == DECODED:
                        decoded = item[1]
                    elif item[1] is None:
                        raise _Unchecked
                    else:
                        decoded = self._loads(item[1])
                except Exception as error:
                    found = [(item, place, told)]
                    decoded = self._decode_with_care(queue, found, error)
                if self._in_flight is not None:
                    self._in_flight.add(item[2])
                if events.listeners and found is None and place >= 0:
                    self._tell(queue, item)
                self._in_hand -= 1
                return decoded
        except BaseException as error:
            if taken is None and isinstance(error, IndexError):
                return NOTHING
            if taken is not None:
                interrupts.abandoned += [(self, found or [(item, place, told)])]
                self._in_hand -= 1
                interrupts.settle()
            raise
        raise AssertionError("a deque is empty, or it is not")

    def _counts(self, queue: ObjectAttachment, place: int) -> bool:
        """End the prefetch; return whether the item at a place counts as handed out, though it was
        taken out too late."""
        for held in interrupts.attempts(self._lock, more=MOMENT):
            if held:
                try:
                    # The get fails when this does: so it is tried for as long as any get.
                    self._end(queue.run_at_once)
                    return self.window.counts(place)
                finally:
                    self._lock.release()
        raise AssertionError("attempts end only with the lock")

    def _decode_with_care(
        self, queue: ObjectAttachment, found: list[TakenOut[Item]], error: Exception
    ) -> Any:
        """Decode an item that was not decoded at once, or set it aside."""
        if interrupts.is_from_outside(error):
            raise error
        try:
            return self._accept(queue, found[0][0])
        except PressureError:
            found[0] = _REJECTED
            raise

    def _tell(self, queue: ObjectAttachment, item: Item) -> None:
        """Tell listeners of an item that is handed out."""
        queue.operations.tell_received([item[0]])

    def _accept(self, queue: ObjectAttachment, found: Item) -> Any:
        """Decode an item, and tell listeners of it; set it aside if that fails."""
        item, checked, _ = found
        if checked is item:  # nothing was to be checked
            item = Private(item)
        return queue.run_at_once(queue.operations.accept(item))

    def _give_up(self, found: list[TakenOut[Item]]) -> None:
        """Make the item of an interrupted call the next one again. If another one was handed out
        since, or the broker was told of it, it stays with this handle."""
        window = self.window
        while found:
            item, place, told = found[-1]
            if self._in_flight is not None and item[2] > 0:
                self._in_flight.discard(item[2])
            if found[-1] is _REJECTED:
                del found[-1]
            elif told == window.told and window.place == place + 1:
                window.place = window.cell[0] = place
                window.ahead += (item,)
                del found[-1]
                window.ahead.rotate(1)
            else:
                window.until = 0.0  # so that it comes first
                window.left += (found[-1],)
                del found[-1]

    # Reading

    def _make_ready(self, queue: ObjectAttachment, end: float | None, waits: bool) -> bool:
        """Have items here, if any are to be read ahead; nothing is prefetched if another thread
        still makes its request at ``end``. Returns whether there are items."""
        window = self.window
        number = 1 if lifecycle.is_ending() else window.pace.next_number(window.place)
        if number == 1 and not window.holds:
            return False  # nothing is here, nor asked for
        if interrupts.is_held(self._lock):
            # A signal handler, or a finalizer, in the midst of this.
            self._try_to_end(partial(_try_once, queue))
            return False
        if number > 1:
            self._prepare(queue)
        for held in interrupts.attempts(self._lock, more=MOMENT):
            if held:
                try:
                    return self._read_ahead(queue, number)
                finally:
                    self._lock.release()
            if end is not None and monotonic() >= end:
                return False
        raise AssertionError("attempts end only with the lock")

    def _prepare(self, queue: ObjectAttachment) -> None:
        """Name the reader. This takes locks, which another thread may have whose signal handler
        wants this handle's lock: so it comes before that."""
        if self._hand_outs is not None:
            return
        lifecycle.begin_use()
        name, self._presence = self._make_name(queue), queue.here
        hand_outs, window = HandOuts(name), self.window
        if self._hand_outs is None:  # else another thread was faster
            window.reader, window.cell, self._hand_outs = name, hand_outs.cell, hand_outs

    def _make_name(self, queue: ObjectAttachment) -> str:
        return reader()

    def _read_ahead(self, queue: ObjectAttachment, number: int) -> bool:
        window, run = self.window, partial(self._run, queue)
        if window.is_ready(monotonic()):
            return True  # another thread was faster
        if number == 1 and self._asked is None:
            self._try_to_end(run)
            return False
        try:
            if window.must_end(monotonic(), self._asked is not None):
                self._end(run)
            if self._asked is None:
                self._ask(queue, number)
            if self._feed(queue, self._hear(queue, run)):
                if more := window.next_ahead(number):
                    self._ask_ahead(queue, more)
                return True
            self._end(run)
        except BrokerUnavailable:
            if not self.alone:  # the broker may keep the next items for this reader
                raise
        return False  # to get one tries for longer

    def _run(self, queue: ObjectAttachment, operation: Operation[T]) -> T:
        """Run an operation of a get."""
        return _try_once(queue, operation)

    def _ask(self, queue: ObjectAttachment, number: int) -> Prefetch:
        request = self.window.next_request(number)
        self._see_to_end()
        return request

    def _see_to_end(self) -> None:
        """See to it that the prefetch ends, or is renewed, in time."""
        self._due_thread.see_to(self.window, self._come_due)

    def _ask_ahead(self, queue: ObjectAttachment, number: int) -> None:
        """Send the request for the items behind those that are here, which are handed out
        meanwhile."""
        session, request = queue.session(), self._ask(queue, number)
        self._asked = session
        session.send_ahead(request)

    def _hear(
        self, queue: ObjectAttachment, run: Run[Any], end: float | None = None
    ) -> PrefetchReply:
        """Make the last request, or read its reply if it was sent ahead, until ``end``."""
        asked, self._asked = self._asked, None
        asking = queue.operations.prefetch(self.window.last)
        if asked is None:
            reply: PrefetchReply = run(asking)
        else:
            limit = ONE_TRY if self.alone else end
            reply = queue.run_on(asked, asking if limit is None else ending(asking, limit))
        return reply

    def _feed(self, queue: ObjectAttachment, reply: PrefetchReply) -> bool:
        items, numbers = reply if isinstance(reply, Taken) else ([], ())
        ready = self._make_items(queue, items, numbers)
        self._loads = queue.codec.loads
        return self.window.feed(reply, ready, queue.options.lease)

    def _make_items(
        self, queue: ObjectAttachment, items: list[bytes], numbers: Sequence[int]
    ) -> list[Item]:
        return list(zip(items, _check(queue, items), numbers or repeat(DONE), strict=False))

    # Ending the prefetch

    def before_look(self, queue: ObjectAttachment) -> None:
        if self.window.holds:
            self.window.pace.share()
            self.give_back(queue, self.patience)

    def give_back(self, queue: ObjectAttachment, patience: float = 0.0) -> None:
        self.window.until = 0.0
        self._try_to_end(partial(_try_once, queue), patience)

    def leave(self) -> None:
        """End with the process. Unless something is reserved, no other process need see how many
        items were handed out."""
        presence = self._presence
        if presence is None or self._hand_outs is None:
            return
        lease = presence.lease
        if self.window.holds:
            at_exit.say(
                lease.engine,
                lambda options: self._try_to_end(partial(lease.run_within, options), MOMENT),
            )
        if not self.window.holds:
            self._hand_outs.end()

    def _try_to_end(self, run: Run[Any], patience: float = 0.0, renews: bool = False) -> None:
        """End the prefetch, ``patience`` seconds later if another thread decodes an item, which may
        yet come back; or with ``renews`` renew it, if it goes on. What fails now is tried again by
        a thread."""
        if interrupts.is_held(self._lock):  # as in _make_ready
            patience = -1.0
        for held in interrupts.attempts(self._lock, patience):
            if held:
                try:
                    end = monotonic() + patience
                    while self._others_decode and monotonic() < end:
                        sleep(_PAUSE)
                    if renews and self._goes_on:
                        run(self._renewing())
                    else:
                        self._end(run)
                except PressureError:
                    self.window.due = monotonic() + RETRY
                finally:
                    self._lock.release()

    def _end(self, run: Run[Any]) -> None:
        window = self.window
        if not window.holds:
            return
        window.stop()
        if self._asked is not None:  # whether it was done or not
            self._asked.interrupted()
            self._asked = None
        run(self._ending())

    def _ending(self) -> Operation[Any]:
        """Tell the broker that nothing here is handed out any more."""
        return self.window.end()

    def _renewing(self) -> Operation[Any]:
        """Have the broker keep the items."""
        return self.window.renew()

    @property
    def _goes_on(self) -> bool:
        """Whether a prefetch that is due does not end yet."""
        return self._others_decode

    @property
    def _others_decode(self) -> bool:
        """Whether another thread decodes an item."""
        return self._in_hand > interrupts.calls_of(self._hand_out)

    def _come_due(self) -> None:
        if self._presence is not None:
            self._try_to_end(self._presence.lease.run_now, renews=True)


def _try_once(queue: ObjectAttachment, operation: Operation[T]) -> T:
    """Run an operation that loses nothing if the broker cannot be asked."""
    return queue.run_at_once(ending(operation, ONE_TRY))


def _loads_nothing(checked: bytes) -> Any:
    raise AssertionError("nothing was read")


def _check(queue: ObjectAttachment, items: list[bytes]) -> Sequence[Checked | None]:
    """Return what can be decoded of each item; None for each if one of them is refused."""
    try:
        return queue.codec.check_many(items)
    except Exception as error:
        if interrupts.is_from_outside(error):
            raise
        return [None] * len(items)


_all: weakref.WeakSet[ReadAhead] = weakref.WeakSet()


def _end() -> None:
    for reading in list(_all):
        reading.leave()


lifecycle.register("give back what is read ahead", _end)
