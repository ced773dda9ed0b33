"""The items that are reserved for the only process that gets from an anonymous queue: the calls
that read them, and that end the reservation."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import interrupts, lifecycle
from ..background import at_exit
from ..drivers import ending
from ..effects import Operation, T
from ..encoding.signing import Checked
from ..engines.contract.items import MOST_BYTES, Reserve, Reserved
from ..engines.contract.replies import NoItem
from ..engines.contract.session import ONE_TRY, Session
from ..exceptions import BrokerUnavailable, PressureError
from ..identity.client import reader
from ..identity.hand_outs import HandOuts
from .batches import Batch, tell
from .direct import DirectGet, buffers
from .keeper import Keeper
from .pace import WATCH, Pace, may_watch

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from ..handles.objects import ObjectAttachment

#: Seconds after which what was not handed out is for others again.
KEPT = 0.02
#: Seconds until a reservation that could not be ended is tried again.
RETRY = 0.5
#: Seconds for which one waits for another thread's words with the broker, and then again.
MOMENT = 0.01
#: Seconds until the lease of what is reserved is renewed, while an item is being decoded.
_RENEWED = 0.05
#: Seconds between two looks at what others here are at.
_PAUSE = 0.002

#: Seconds for half of what was read of such a queue, after which whoever puts is told of its space
#: before the other half is handed out: to tell takes time too.
_SLOW = 0.0003
#: With fewer items than this, which are handed out in less than so many seconds, it is not worth
#: while to ask for the next ones before they are needed. Of a queue with a bound the first half is
#: handed out before: whoever puts is to be told of that.
_LEAST_AHEAD, _LONG = 32, 0.005

#: An item, and what was checked of it; None when it could not be.
Item = tuple[bytes, Checked | None]


class Asked(NamedTuple):
    """A request that was sent, and whose reply nobody has waited for."""

    session: Session
    #: On the monotonic clock.
    when: float


class Reservation(DirectGet, ABC):
    """Items that are reserved for one handle: they are queued, and here too, as they are.

    Nothing here waits for an item: when there is none, the handle gets one as any other does. What
    is reserved is in the way of all others, and so of this handle's own gets from the broker: those
    come when the reservation is over. To forget one loses nothing but time.

    While what one call read is handed out, the next one is already made.
    """

    def __init__(self) -> None:
        self.reset()
        _all.add(self)
        buffers.add(self)

    def reset(self) -> None:
        """One that never read anything: a new one, or that of a forked child."""
        self._ahead: deque[Item] = deque()
        self._rest: list[Item] = []  # the second half of what was read of a queue with a bound
        self._read_at = 0.0  # on the monotonic clock
        self._pops = interrupts.pops(self._ahead)
        self._in_hand = 0  # how many are being decoded
        self._lost: list[tuple[int, int]] = []  # from one place to another, others have them
        self._told = 0  # how often the broker was told, or is being told, what was handed out
        self._back: list[Item] = []  # what was here, and is not handed out
        self._loads: Callable[[Any], Any] = _loads_nothing
        self._lock = threading.RLock()  # which tells who has it; none has it twice
        self._pace = Pace()
        self._reader = ""
        self._hand_outs: HandOuts | None = None
        self._place = 0  # how many items were ever handed out
        self._cell = memoryview(bytearray(8)).cast("Q")  # the same, for others to see
        self._last = Reserve("", 0, 0, 0, 0)
        self._asked: Asked | None = None  # the last one, if its reply is still to be read
        self._read = 0  # how many items were ever read, without those that went back
        #: Of what the broker was not told to be handed out.
        self._batches: list[Batch] = []
        self.holds = False  # whether the broker may have reserved anything
        #: On the monotonic clock: until when what is here may be handed out.
        self._until = 0.0
        self._presence: Presence | None = None
        self._keeper = Keeper()  # which knows when it goes back

    def _make_ready(self, queue: ObjectAttachment, end: float | None, waits: bool) -> bool:
        """Have items here, if they are to be read ahead; ``waits`` for a moment, when there is none
        in a queue with a bound. Else nothing is reserved, but by another thread that is at it when
        ``end`` comes."""

        number = 1 if lifecycle.is_ending() else self._pace.next_number(self._place)
        if number == 1 and not self.holds:
            return False  # nothing is here, nor asked for
        run = partial(_try_once, queue)
        if interrupts.is_held(self._lock):
            # A signal handler, or a finalizer, in the midst of this.
            self._try_to_end(run)
            return False
        if number > 1:
            self._prepare(queue)
        for held in interrupts.attempts(self._lock, more=MOMENT):
            if held:
                try:
                    watches = waits and queue.had_bound and may_watch(end)
                    return self._read_ahead(queue, number, run, watches)
                finally:
                    self._lock.release()
            if end is not None and monotonic() >= end:
                return False
        raise AssertionError("attempts end only with the lock")

    def _read_ahead(
        self, queue: ObjectAttachment, number: int, run: Run[Any], watches: bool
    ) -> bool:
        now = monotonic()
        if self._ahead and now < self._until:
            return True  # another thread was faster
        if self._rest and now < self._until:
            self._ahead += self._rest
            self._rest = []
            if now - self._read_at > _SLOW and self._asked is None and number > 1:
                self._ask_ahead(queue, number)
            return True
        if number > 1 or self._asked is not None:
            try:
                if monotonic() >= self._until:  # others may have ended it
                    self._end(run)
                return self._reserve(queue, number, run, watches)
            except BrokerUnavailable:  # to get one tries for longer
                return False
        if self.holds:
            self._try_to_end(run)
        return False

    def _reserve(self, queue: ObjectAttachment, number: int, run: Run[Any], watches: bool) -> bool:
        """Have those that were asked for, or ask now."""
        asked, self._asked = self._asked, None
        if asked is None:
            when = monotonic()
            reply = run(queue.operations.reserve(*self._next_request(queue, number)))
        else:
            when = asked.when
            repeating = queue.operations.reserve(*self._last)
            reply = queue.run_on(asked.session, ending(repeating, ONE_TRY))
        items = reply.items if isinstance(reply, Reserved) else []
        if items:
            self._pace.note(len(items))
            size = sum(map(len, items))
            if not self._add(queue, items, size, when):
                # It was ended before the broker made this one.
                again = queue.operations.end_reservation
                run(again(self._reader, self._last.call, self._read))
                return False
            may_be_more = len(items) == self._last.limit or size > MOST_BYTES / 2
            is_long = number > 1 and not queue.had_bound and self._pace.takes(number) > _LONG
            if may_be_more and (number >= _LEAST_AHEAD or is_long):
                self._ask_ahead(queue, number)
            return True
        if isinstance(reply, Reserved) and watches and not self._last.kept:
            self._ask_ahead(queue, number, NoItem())
            return self._reserve(queue, number, run, False)
        if isinstance(reply, Reserved):
            self._pace.note(0)
        else:
            self._pace.share()
        if self._last.kept:
            self._end(run)
        else:
            self._forget()
        return False

    def _next_request(self, queue: ObjectAttachment, number: int) -> Reserve:
        kept = len(self._ahead) + len(self._rest)
        self._told += 1
        self.holds = True
        call, handed = self._last.call + 1, self._read - kept
        out, batches = tell(self._batches, handed - self._last.handed)
        asked = Reserve(self._reader, call, handed, kept, number, queue.had_bound, *out)
        self._last, self._batches = asked, batches  # nothing is interrupted in between
        self._keeper.see_to(self, monotonic() + KEPT)
        return asked

    def _add(self, queue: ObjectAttachment, items: list[bytes], size: int, when: float) -> bool:
        """They, ``size`` bytes, may be handed out. False when a signal handler had the reservation
        ended."""
        self._loads = queue.codec.loads
        number = len(items)
        ready = list(zip(items, _check(queue, items), strict=False))
        half = (number + 1) // 2 if queue.had_bound else number
        first, rest = ready[:half], ready[half:]
        # The broker keeps them for a lease from when it was asked.
        keeper, now, until = self._keeper, monotonic(), when + queue.options.lease / 3000
        due = now + KEPT
        # From here on there is no call.
        if not self.holds:
            return False
        self._read += number
        self._batches += ((number, size),)
        keeper.due, self._until, self._read_at = due, until, now
        self._ahead += first
        self._rest += rest
        return True

    def _ask_ahead(self, queue: ObjectAttachment, number: int, later: NoItem | None = None) -> None:
        """Ask for those behind what is here, which is handed out meanwhile; or ``later``, when
        there may be one."""
        session, request = queue.session(), self._next_request(queue, number)
        self._asked = Asked(session, monotonic())
        session.send_ahead(request, later, WATCH)

    def _prepare(self, queue: ObjectAttachment) -> None:
        """Have all that is needed. It takes locks, which another thread may have whose signal
        handler wants this one's: so it is done before."""
        # Nothing is taken out that this handle has no key for.
        if self._hand_outs is not None:
            return
        lifecycle.begin_use()
        name, self._presence = reader(), queue.here
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

    @abstractmethod
    def _hand_out(self, queue: ObjectAttachment, is_left: bool = False) -> Any:
        """The next item that is here, decoded meanwhile."""

    # Ending it

    def before_look(self, queue: ObjectAttachment) -> None:
        if self.holds:
            self._pace.share()
            self.give_back(queue, self.patience)

    def before_put(self, queue: ObjectAttachment) -> None:
        if queue.had_bound:
            self.before_look(queue)

    def give_back(self, queue: ObjectAttachment, patience: float = 0.0) -> None:
        self._until = 0.0
        self._try_to_end(partial(_try_once, queue), patience)

    def leave(self) -> None:
        """The process ends. Nobody need see what was handed out, unless something is reserved."""
        presence = self._presence
        if presence is None or self._hand_outs is None:
            return
        lease = presence.lease
        if self.holds:
            at_exit.say(
                lease.engine,
                lambda options: self._try_to_end(partial(lease.run_within, options), MOMENT),
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
                    self._keeper.due = monotonic() + RETRY
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
        return self._in_hand > interrupts.calls_of(self._hand_out)

    def come_due(self) -> None:
        """As of :class:`~.keeper.Kept`."""
        presence = self._presence
        if presence is None:
            return
        if self._others_decode:
            self._renew(presence)
        else:
            self._try_to_end(presence.lease.run_now)

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
        self._keeper.due = monotonic() + _RENEWED


def _try_once(queue: ObjectAttachment, operation: Operation[T]) -> T:
    """Nothing is lost when the broker cannot be asked."""
    return queue.run_at_once(ending(operation, ONE_TRY))


def _loads_nothing(checked: bytes) -> Any:
    raise AssertionError("nothing was read")


def _check(queue: ObjectAttachment, items: list[bytes]) -> Sequence[Checked | None]:
    """What can be decoded of each; None, if one of them is refused, which is not the others'
    fault."""
    try:
        return queue.codec.check_many(items)
    except Exception as error:
        if interrupts.is_from_outside(error):
            raise
        return [None] * len(items)


_all: weakref.WeakSet[Reservation] = weakref.WeakSet()


def _end() -> None:
    for reservation in list(_all):
        reservation.leave()


lifecycle.register("give back what is read ahead", _end)
