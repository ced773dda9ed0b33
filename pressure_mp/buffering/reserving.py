"""Reads ahead, unasked, for the threads of the only process that gets from an anonymous queue: as
long as it is the only one, and no more than it hands out in a moment."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from .. import events, interrupts, lifecycle
from ..background import at_exit
from ..deadlines import deadline, seconds_left
from ..drivers import ending
from ..effects import Operation, T
from ..encoding.signing import Checked
from ..encoding.unsigned_items import Private
from ..engines.contract.items import Reserve, Reserved, ReserveReply
from ..engines.contract.replies import NoItem
from ..engines.contract.session import ONE_TRY, Session
from ..exceptions import BrokerUnavailable, PressureError
from ..identity.client import reader
from ..identity.hand_outs import HandOuts
from .direct import DirectGet, buffers
from .due_thread import DueThread
from .pace import WATCH, may_watch
from .window import RETRY, Taken, Window

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from ..handles.objects import ObjectAttachment

#: Seconds to wait for another thread's request to the broker, and then again.
_MOMENT = 0.01
#: Seconds between two looks at whether another thread decodes an item.
_PAUSE = 0.002

_NOTHING = object()

#: An item, and what was checked of it; None when it could not be.
Item = tuple[bytes, Checked | None]

#: An item that was set aside.
_REJECTED: Taken[Item] = ((b"", None), -1, -1)


class Reserving(DirectGet):
    """Hands out the items of a :class:`~.window.Window`. The thread that gets an item decodes it.

    Nothing here waits for an item: when there is none, the handle gets one at the broker. Reserved
    items are in the way of every get at the broker, also of this handle's own: so the reservation
    ends before. To forget a reservation loses nothing but time.

    While the items of one request are handed out, the next request is already made.
    """

    def __init__(self) -> None:
        self.reset()
        _all.add(self)
        buffers.add(self)

    def reset(self) -> None:
        self.window: Window[Item] = Window()
        self._in_hand = 0  # the number of items that are being decoded
        self._loads: Callable[[Any], Any] = _loads_nothing
        self._lock = threading.RLock()  # which tells who has it; no thread has it twice
        self._asked: Session | None = None  # has sent a request whose reply is still to be read
        self._hand_outs: HandOuts | None = None
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
                if item is not _NOTHING:
                    return item
            if not self._make_ready(queue, end, block):
                return queue.get(block, seconds_left(end))
            if monotonic() < window.until:
                item = self._hand_out(queue)
                if item is not _NOTHING:
                    return item

    def _hand_out(self, queue: ObjectAttachment, is_left: bool = False) -> Any:
        """Take the next item out and decode it; with ``is_left`` the next one that an interrupted
        call left. Returns _NOTHING if there is none. This does not call :meth:`Window.take`: behind
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
                if (is_left or monotonic() >= window.until) and not self._counts(queue, place):
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
        """End the reservation; return whether the item at a place, which was taken out too late,
        counts as handed out."""
        for held in interrupts.attempts(self._lock, more=_MOMENT):
            if held:
                try:
                    # The get fails when this does: so it is tried for as long as any get.
                    self._end(queue.run_at_once)
                    return self.window.counts(place)
                finally:
                    self._lock.release()
        raise AssertionError("attempts end only with the lock")

    @staticmethod
    def _decode_with_care(
        queue: ObjectAttachment, found: list[Taken[Item]], error: Exception
    ) -> Any:
        """Decode an item that was not decoded at once, or set it aside."""
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

    def _give_up(self, found: list[Taken[Item]]) -> None:
        """Make the item of an interrupted call the next one again. If another one was handed out
        since, or the broker was told of it, it stays with this handle."""
        window = self.window
        while found:
            item, place, told = found[-1]
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
        """Have items here, if any are to be read ahead; with ``waits``, wait a moment when a queue
        with a bound has none. Else nothing is reserved, unless another thread still makes its
        request at ``end``. Returns whether there are items."""
        window = self.window
        number = 1 if lifecycle.is_ending() else window.pace.next_number(window.place)
        if number == 1 and not window.holds:
            return False  # nothing is here, nor asked for
        run = partial(_try_once, queue)
        if interrupts.is_held(self._lock):
            # A signal handler, or a finalizer, in the midst of this.
            self._try_to_end(run)
            return False
        if number > 1:
            self._prepare(queue)
        for held in interrupts.attempts(self._lock, more=_MOMENT):
            if held:
                try:
                    watches = waits and queue.had_bound and may_watch(end)
                    return self._read_ahead(queue, number, run, watches)
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
        name, self._presence = reader(), queue.here
        hand_outs, window = HandOuts(name), self.window
        if self._hand_outs is None:  # else another thread was faster
            window.reader, window.cell, self._hand_outs = name, hand_outs.cell, hand_outs

    def _read_ahead(
        self, queue: ObjectAttachment, number: int, run: Run[Any], watches: bool
    ) -> bool:
        window, now = self.window, monotonic()
        if window.is_ready(now):
            return True  # another thread was faster
        if window.begin_second_half(now):
            if number > 1 and self._asked is None and window.was_slow(now):
                self._ask_ahead(queue, number)
            return True
        if number == 1 and self._asked is None:
            self._try_to_end(run)
            return False
        try:
            if window.must_end(monotonic(), self._asked is not None):
                self._end(run)
            if self._asked is None:
                self._ask(queue, number)
            reply = self._hear(queue, run)
            if watches and not window.last.kept and reply == Reserved([]):
                self._ask_ahead(queue, number, NoItem())
                reply = self._hear(queue, run)
            if self._feed(queue, reply):
                if window.wants_more(number):
                    self._ask_ahead(queue, number)
                return True
            self._end(run)
        except BrokerUnavailable:  # to get one tries for longer
            pass
        return False

    def _ask(self, queue: ObjectAttachment, number: int) -> Reserve:
        request = self.window.next_request(number, queue.had_bound)
        self._due_thread.see_to(self.window, self._come_due)
        return request

    def _ask_ahead(self, queue: ObjectAttachment, number: int, later: NoItem | None = None) -> None:
        """Send the request for the items behind those that are here, which are handed out
        meanwhile; or ``later``, when there may be one."""
        session, request = queue.session(), self._ask(queue, number)
        self._asked = session
        session.send_ahead(request, later, WATCH)

    def _hear(self, queue: ObjectAttachment, run: Run[Any]) -> ReserveReply:
        """Make the last request, or read its reply if it was sent ahead."""
        asked, self._asked = self._asked, None
        asking = queue.operations.reserve(*self.window.last)
        if asked is None:
            reply: ReserveReply = run(asking)
        else:
            reply = queue.run_on(asked, ending(asking, ONE_TRY))
        return reply

    def _feed(self, queue: ObjectAttachment, reply: ReserveReply) -> bool:
        items = reply.items if isinstance(reply, Reserved) else []
        ready = list(zip(items, _check(queue, items), strict=False))
        self._loads = queue.codec.loads
        return self.window.feed(reply, ready, queue.options.lease)

    # Ending the reservation

    def before_look(self, queue: ObjectAttachment) -> None:
        if self.window.holds:
            self.window.pace.share()
            self.give_back(queue, self.patience)

    def before_put(self, queue: ObjectAttachment) -> None:
        if queue.had_bound:
            self.before_look(queue)

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
                lambda options: self._try_to_end(partial(lease.run_within, options), _MOMENT),
            )
        if not self.window.holds:
            self._hand_outs.end()

    def _try_to_end(self, run: Run[Any], patience: float = 0.0, renews: bool = False) -> None:
        """End the reservation, ``patience`` seconds later if another thread decodes an item, which
        may yet come back; or then renew it. What fails now is tried again by a thread."""
        if interrupts.is_held(self._lock):  # as in _make_ready
            patience = -1.0
        for held in interrupts.attempts(self._lock, patience):
            if held:
                try:
                    end = monotonic() + patience
                    while self._others_decode and monotonic() < end:
                        sleep(_PAUSE)
                    if renews and self._others_decode:
                        run(self.window.renew())
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
        run(window.end())

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


_all: weakref.WeakSet[Reserving] = weakref.WeakSet()


def _end() -> None:
    for reserving in list(_all):
        reserving.leave()


lifecycle.register("give back what is read ahead", _end)
