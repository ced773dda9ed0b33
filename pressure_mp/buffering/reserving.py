"""What the only process that gets from an anonymous queue reads ahead of its need, unasked: as long
as it is that, and no more than it hands out in a moment."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from queue import Empty as NothingNew
from queue import SimpleQueue
from threading import get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import events, interrupts
from ..background import at_exit
from ..deadlines import deadline, seconds_left
from ..drivers import ending
from ..effects import Operation, T
from ..engines.contract.items import MOST_BYTES, Reserve, Reserved
from ..engines.contract.replies import NoItem
from ..engines.contract.session import ONE_TRY, Session
from ..exceptions import BrokerUnavailable, PressureError
from ..identity.client import reader
from ..identity.hand_outs import HandOuts
from .pace import WATCH, Pace, may_watch

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from .handle import BufferedHandle

#: Seconds after which what was not handed out is for others again.
KEPT = 0.02
#: Seconds until a reservation that could not be ended is tried again, and for which its thread
#: waits for the next one before it ends.
RETRY, _LINGER = 0.5, 1.0
#: Seconds for which one waits for another thread's words with the broker, and then again.
_MOMENT = 0.01
#: Seconds until the lease of what is reserved is renewed, while an item is being decoded.
_RENEWED = 0.05
#: Seconds between two looks at what others here are at.
_PAUSE = 0.002

#: Seconds for half of what was read of such a queue, after which whoever puts is told of its space
#: before the other half is handed out: to tell takes time too.
_SLOW = 0.0003
#: With fewer items than this it is not worth while to ask for the next ones before they are needed.
_LEAST_AHEAD = 32

_NOTHING = object()

#: An item, and what was checked of it; None when it could not be.
Item = tuple[bytes, bytes | None]
#: One, its place among those that the reader ever handed out, and how often the broker had been
#: told how many those are.
HandedOut = tuple[Item, int, int]
#: How many items a call read, and their bytes; None when these are not known.
Batch = tuple[int, int | None]
#: One that was set aside.
_REJECTED: HandedOut = ((b"", None), -1, -1)


class Asked(NamedTuple):
    """A request that was sent, and whose reply nobody has waited for."""

    session: Session
    #: On the monotonic clock.
    when: float


class Reserving:
    """Items that are reserved for one handle: they are queued, and here too, as they are. Who gets
    one decodes it then.

    Nothing here waits for an item: when there is none, the handle gets one as any other does. What
    is reserved is in the way of all others, and so of this handle's own gets from the broker: those
    come when the reservation is over. To forget one loses nothing but time.

    While what one call read is handed out, the next one is already made.
    """

    patience = 1.0

    def __init__(self, handle: BufferedHandle) -> None:
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """One that never read anything: a new one, or that of a forked child."""
        self._ahead: deque[Item] = deque()
        self._rest: list[Item] = []  # the second half of what was read of a queue with a bound
        self._read_at = 0.0  # on the monotonic clock
        self._pops = interrupts.pops(self._ahead)
        self._left: list[HandedOut] = []  # to calls that were interrupted, and is no longer queued
        self._in_hand: dict[int, int] = {}  # how many are being decoded, by thread
        self._lost: list[tuple[int, int]] = []  # from one place to another, others have them
        self._told = 0  # how often the broker was told, or is being told, what was handed out
        self._back: list[Item] = []  # what was here, and is not handed out
        self._loads: Callable[[Any], Any] = _loads_nothing
        self._lock = threading.RLock()  # which tells who has it; none has it twice
        self._pace = Pace()
        self._reader = ""
        self._hand_outs: HandOuts | None = None
        self._cell = memoryview(bytearray(8)).cast("Q")
        self._last = Reserve("", 0, 0, 0, 0)
        self._asked: Asked | None = None  # the last one, if its reply is still to be read
        self._read = 0  # how many items were ever read, without those that went back
        #: Of what the broker was not told to be handed out.
        self._batches: list[Batch] = []
        self.holds = False  # whether the broker may have reserved anything
        #: On the monotonic clock: until when what is here may be handed out, and when it goes back.
        self._until = self._due = 0.0
        self._presence: Presence | None = None
        self._thread: threading.Thread | None = None  # which notes itself
        self._idle = False  # the thread waits for more
        self._more: SimpleQueue[None] = SimpleQueue()

    def __len__(self) -> int:
        """How many items are here and no longer queued."""
        return len(self._left)

    # Getting

    def get(self, handle: BufferedHandle, block: bool, timeout: float | None) -> Any:
        """The next item; reads ahead when there is none here, or gets one."""
        if interrupts.abandoned:
            interrupts.settle()
        if not self._left:  # which comes first
            item = self._hand_out(handle)
            if item is not _NOTHING:
                return item
        return self._get_next(handle, block, deadline(block, timeout))

    def get_many(
        self,
        handle: BufferedHandle,
        number: int,
        block: bool,
        timeout: float | None,
        look: Callable[[], None] | None = None,
    ) -> list[Any]:
        """Who gets several at a time, or looks with a descriptor, does not read ahead."""
        if self._left:
            found = [self.get(handle, block, timeout)]
            if look is not None:
                look()
            return found
        self.before_look(handle)
        return handle._get_many_at_once(number, block, timeout, look)

    def _get_next(self, handle: BufferedHandle, block: bool, end: float | None) -> Any:
        while True:
            handle._check_open()
            handle._settle(end)
            if self._left:
                item = self._hand_out(handle, True)
                if item is not _NOTHING:
                    return item
            if not self._make_ready(handle, end, block):
                return handle._get_at_once(block, seconds_left(end))
            if monotonic() < self._until:
                item = self._hand_out(handle)
                if item is not _NOTHING:
                    return item

    def _hand_out(self, handle: BufferedHandle, is_left: bool = False) -> Any:
        """The next item; or of those that were left, if there are any. Else _NOTHING."""
        pops: Iterator[Any] = map(self._left.pop, repeat(0)) if is_left else self._pops
        found: list[HandedOut] = []
        told, me = self._told, get_ident()  # before anything is taken out
        cell, in_hand = self._cell, self._in_hand
        if me not in in_hand:
            in_hand[me] = 0
        try:
            for item in pops:
                in_hand[me] += 1
                if is_left:
                    found += (item,)
                else:
                    found += ((item, cell[0], told),)
                    cell[0] += 1
                if (is_left or monotonic() >= self._until) and not self._counts(handle, found[0]):
                    in_hand[me] -= 1
                    return _NOTHING  # others have it
                try:
                    decoded = self._loads(found[0][0][1])
                except Exception as error:
                    decoded = self._decode_with_care(handle, found, error)
                if events.listeners:
                    handle._operations.tell_received([found[0][0][0]])
                in_hand[me] -= 1
                return decoded
        except BaseException as error:
            if not found and isinstance(error, IndexError):
                return _NOTHING
            interrupts.abandoned += [(self, (found, me))]
            interrupts.settle()
            raise
        raise AssertionError("a deque is empty, or it is not")

    def _counts(self, handle: BufferedHandle, found: HandedOut) -> bool:
        """Whether an item that was taken out here too late counts as handed out. This process was
        stopped meanwhile: others may have ended the reservation."""
        place = found[1]
        for held in interrupts.attempts(self._lock, more=_MOMENT):
            if held:
                try:
                    # The get fails when this does: so it is tried for as long as any get.
                    self._end(handle._run_at_once)
                    return not any(first <= place < end for first, end in self._lost)
                finally:
                    self._lock.release()
        raise AssertionError("attempts end only with the lock")

    @staticmethod
    def _decode_with_care(handle: BufferedHandle, found: list[HandedOut], error: Exception) -> Any:
        """An item that was not decoded at once."""
        if interrupts.is_from_outside(error):
            raise error
        item = found[0][0][0]
        try:
            return handle._codec.decode(item)
        except PressureError:
            handle._run_at_once(handle._operations.reject(item))
            found[0] = _REJECTED
            raise

    def _give_up(self, claim: tuple[list[HandedOut], int]) -> None:
        """What was handed out to a call that was interrupted is the next one again. If another one
        was handed out since, or the broker was told of it, it stays with this handle."""
        found, thread = claim
        while found:
            item, place, told = found[-1]
            if found[-1] is _REJECTED:
                self._in_hand[thread] -= 1
                del found[-1]
            elif told == self._told and self._cell[0] == place + 1:
                self._cell[0] = place
                self._ahead += (item,)
                self._in_hand[thread] -= 1
                del found[-1]
                self._ahead.rotate(1)
            else:
                self._until = 0.0  # so that it comes first
                self._left += (found[-1],)
                self._in_hand[thread] -= 1
                del found[-1]

    # Reading ahead

    def _make_ready(self, handle: BufferedHandle, end: float | None, waits: bool) -> bool:
        """Have items here, if they are to be read ahead; ``waits`` for a moment, when there is none
        in a queue with a bound. Else nothing is reserved, but by another thread that is at it when
        ``end`` comes."""

        run = partial(_try_once, handle)
        if interrupts.is_held(self._lock):
            # A signal handler, or a finalizer, in the midst of this.
            self._try_to_end(run)
            return False
        number = 1 if _ends else self._pace.next_number()
        if number > 1:
            self._prepare(handle)
        for held in interrupts.attempts(self._lock, more=_MOMENT):
            if held:
                try:
                    watches = waits and handle._had_bound and may_watch(end)
                    return self._read_ahead(handle, number, run, watches)
                finally:
                    self._lock.release()
            if end is not None and monotonic() >= end:
                return False
        raise AssertionError("attempts end only with the lock")

    def _read_ahead(
        self, handle: BufferedHandle, number: int, run: Run[Any], watches: bool
    ) -> bool:
        now = monotonic()
        if self._ahead and now < self._until:
            return True  # another thread was faster
        if self._rest and now < self._until:
            self._ahead += self._rest
            self._rest = []
            if now - self._read_at > _SLOW and self._asked is None and number > 1:
                self._ask_ahead(handle, number)
            return True
        if number > 1 or self._asked is not None:
            try:
                if monotonic() >= self._until:  # others may have ended it
                    self._end(run)
                return self._reserve(handle, number, run, watches)
            except BrokerUnavailable:  # to get one tries for longer
                return False
        self._try_to_end(run)
        return False

    def _reserve(self, handle: BufferedHandle, number: int, run: Run[Any], watches: bool) -> bool:
        """Have those that were asked for, or ask now."""
        asked, self._asked = self._asked, None
        if asked is None:
            when = monotonic()
            reply = run(handle._operations.reserve(*self._next_request(handle, number)))
        else:
            when = asked.when
            repeating = handle._operations.reserve(*self._last)
            reply = handle._run_on(asked.session, ending(repeating, ONE_TRY))
        items = reply.items if isinstance(reply, Reserved) else []
        if items:
            self._pace.note(len(items))
            if not self._add(handle, items, when):
                return False
            if number >= _LEAST_AHEAD and _are_many(items, self._last.limit):
                self._ask_ahead(handle, number)
            return True
        if isinstance(reply, Reserved) and watches and not self._last.kept:
            self._ask_ahead(handle, number, NoItem())
            return self._reserve(handle, number, run, False)
        if isinstance(reply, Reserved):
            self._pace.note(0)
        else:
            self._pace.share()
        if self._last.kept:
            self._end(run)
        else:
            self._forget()
        return False

    def _next_request(self, handle: BufferedHandle, number: int) -> Reserve:
        kept = len(self._ahead) + len(self._rest)
        self._told += 1
        self.holds = True
        call, handed = self._last.call + 1, self._read - kept
        out, batches = _told(self._batches, handed - self._last.handed)
        asked = Reserve(self._reader, call, handed, kept, number, handle._had_bound, *out)
        self._last, self._batches = asked, batches  # nothing is interrupted in between
        self._see_to()
        return asked

    def _add(self, handle: BufferedHandle, items: list[bytes], when: float) -> bool:
        """They may be handed out. False when a signal handler had the reservation ended."""
        self._loads = handle._codec.loads
        number, size = len(items), sum(map(len, items))
        ready = list(zip(items, _check(handle, items), strict=False))
        half = (number + 1) // 2 if handle._had_bound else number
        first, rest = ready[:half], ready[half:]
        # The broker keeps them for a lease from when it was asked.
        now, until = monotonic(), when + handle._options.lease / 3000
        due = now + KEPT
        # From here on there is no call.
        if not self.holds:
            return False
        self._read += number
        self._batches += ((number, size),)
        self._due, self._until, self._read_at = due, until, now
        self._ahead += first
        self._rest += rest
        return True

    def _ask_ahead(self, handle: BufferedHandle, number: int, later: NoItem | None = None) -> None:
        """Ask for those behind what is here, which is handed out meanwhile; or ``later``, when
        there may be one."""
        session, request = handle._session(), self._next_request(handle, number)
        self._asked = Asked(session, monotonic())
        session.send_ahead(request, later, WATCH)

    def _prepare(self, handle: BufferedHandle) -> None:
        """Have all that is needed. It takes locks, which another thread may have whose signal
        handler wants this one's: so it is done before."""
        # Nothing is taken out that this handle has no key for.
        if self._hand_outs is not None:
            return
        at_exit.call_at_end(_end, priority=12)  # before this process's presence leaves
        name, self._presence = reader(), handle._here
        hand_outs = HandOuts(name)
        if self._hand_outs is None:  # else another thread was faster
            self._reader, self._cell, self._hand_outs = name, hand_outs.cell, hand_outs

    def _drain(self) -> None:
        """Take all out, the last one first: what another thread takes meanwhile is the first."""
        self._back += self._rest[::-1]
        self._rest = []
        try:
            for item in map(deque.pop, repeat(self._ahead)):
                self._back += (item,)
        except IndexError:
            pass

    # Ending a reservation

    def before_look(self, handle: BufferedHandle) -> None:
        """This handle is about to look at all that are queued, or to drop them."""
        if self.holds:
            self._pace.share()
            self.give_back(handle, self.patience)

    def give_back(self, handle: BufferedHandle, patience: float = 0.0) -> None:
        """What is here is for anybody. Waits so long for a thread that is at it. What fails now is
        tried again by a thread."""
        self._until = 0.0
        self._try_to_end(partial(_try_once, handle), patience)

    def leave(self) -> None:
        """The process ends. Nobody need see what was handed out, unless something is reserved."""
        presence = self._presence
        if presence is None or self._hand_outs is None:
            return
        lease = presence.lease
        if self.holds:
            at_exit.say(
                lease.engine,
                lambda options: self._try_to_end(partial(lease.run_within, options), _MOMENT),
            )
        if not self.holds:
            self._hand_outs.end()

    def _try_to_end(self, run: Run[Any], patience: float = 0.0) -> None:
        if interrupts.is_held(self._lock):  # as in _make_ready
            patience = -1.0
        for held in interrupts.attempts(self._lock, patience):
            if held:
                try:
                    end = monotonic() + patience
                    while self._others_decode and monotonic() < end:
                        sleep(_PAUSE)
                    self._end(run)
                except PressureError:
                    self._due = monotonic() + RETRY
                finally:
                    self._lock.release()

    def _end(self, run: Run[Any]) -> None:
        presence = self._presence
        if presence is None or not self.holds:
            return
        self._until = 0.0
        self._drain()
        self._told += 1
        if self._asked is not None:  # whether it was done or not
            self._asked.session.interrupted()
            self._asked = None
        handed = self._read - len(self._back)
        settled = run(presence.operations.end_reservation(self._reader, self._last.call, handed))
        if settled < handed:
            self._lost += ((settled, handed),)
        self._forget()

    def _forget(self) -> None:
        """The broker keeps nothing for this reader."""
        self._read, self._back, self.holds = self._read - len(self._back), [], False
        self._batches = []

    @property
    def _others_decode(self) -> bool:
        """Whether another thread decodes an item, which may yet come back."""
        me = get_ident()
        return any(number for thread, number in self._in_hand.copy().items() if thread != me)

    def _renew(self, presence: Presence) -> None:
        """Keep what is reserved while an item is being decoded."""
        for held in interrupts.attempts(self._lock, 0.0):
            if held:
                try:
                    if self.holds:
                        again = self._last._replace(limit=0)
                        presence.lease.run_now(presence.operations.reserve(*again))
                except PressureError:
                    pass
                finally:
                    self._lock.release()
        self._due = monotonic() + _RENEWED

    def _see_to(self) -> None:
        """See to it that the reservation ends in time."""
        self._due = monotonic() + KEPT
        if self._idle:
            self._idle = False
            self._more.put(None)
        elif self._thread is None:
            thread = threading.Thread(target=self._wait, name="pressure_mp reader", daemon=True)
            try:
                interrupts.start(thread)
            except RuntimeError:  # the process ends, and so does the reservation
                pass

    def _wait(self) -> None:
        """End what lasts too long: a thread, as long as there is anything."""
        me = threading.current_thread()
        if self._thread is not None:
            return
        self._thread = me
        while self._thread is me:
            if self.holds:
                sleep(max(self._due - monotonic(), _PAUSE))
                presence = self._presence
                if presence is not None and monotonic() >= self._due:
                    if self._others_decode:
                        self._renew(presence)
                    else:
                        self._try_to_end(presence.lease.run_now)
                continue
            self._idle = True
            try:
                if not self.holds:
                    self._more.get(timeout=_LINGER)
            except NothingNew:
                self._thread = None
                if self.holds:
                    self._thread = me
            self._idle = False


def _try_once(handle: BufferedHandle, operation: Operation[T]) -> T:
    """Nothing is lost when the broker cannot be asked."""
    return handle._run_at_once(ending(operation, ONE_TRY))


def _loads_nothing(checked: bytes) -> Any:
    raise AssertionError("nothing was read")


def _check(handle: BufferedHandle, items: list[bytes]) -> Sequence[bytes | None]:
    """What can be decoded of each; None, if one of them is refused, which is not the others'
    fault."""
    try:
        return handle._codec.check_many(items)
    except Exception as error:
        if interrupts.is_from_outside(error):
            raise
        return [None] * len(items)


def _told(batches: list[Batch], number: int) -> tuple[tuple[int, int], list[Batch]]:
    """The broker is told that the next so many items were handed out: that number and their bytes,
    or zeros if these are not known; and the batches that are left."""
    left, sizes, rest = number, 0, batches
    while left > 0 and rest:
        (items, size), rest = rest[0], rest[1:]
        if items > left:
            return (0, 0), [(items - left, None), *rest]
        if size is None:
            return (0, 0), _told(rest, left - items)[1]
        left, sizes = left - items, sizes + size
    return ((number, sizes) if left == 0 else (0, 0)), rest


def _are_many(items: list[bytes], limit: int) -> bool:
    """Whether a call that read these may have left some."""
    return len(items) == limit or sum(map(len, items)) > MOST_BYTES / 2


_all: weakref.WeakSet[Reserving] = weakref.WeakSet()
#: Whether the process ends: from now on every item is got by itself.
_ends = False


def _end() -> None:
    global _ends
    _ends = True
    for reserving in list(_all):
        reserving.leave()


def _after_fork_in_child() -> None:
    global _ends
    _ends = False


os.register_at_fork(after_in_child=_after_fork_in_child)
