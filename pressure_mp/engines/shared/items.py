"""Requests to the items of one queue while they are in shared memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ... import interrupts
from ...encoding.unsigned_items import mark_each
from ...exceptions import BrokerError
from ...identity import hand_outs
from ...identity.client import client_id_bytes, is_gone
from ..contract.items import (
    MOST_ITEMS,
    Added,
    EndPrefetch,
    HandedOut,
    Prefetch,
    Put,
    Take,
    Taken,
)
from ..contract.replies import InUse, NoItem, NoSpace, Outcome, Unfinished
from ..contract.session import SHORTEST_TRY, TICK
from . import ring_files
from .deliveries import HoldingRing
from .layout import HERE, MOVED
from .locks import BUSY
from .reading import Reading
from .ring import Taker
from .waking import FOR_ITEMS, FOR_JOIN, FOR_SPACE, Sign

T = TypeVar("T")

#: The reply to a request that can only be done when the items are at the broker.
MOVE: Any = object()
#: Seconds for which a call waits for the end of another reader's reservation before it checks
#: whether that reader is alive; and for which a call waits that may not wait for an item.
CHECK, GRACE = 0.05, 0.5
#: Seconds to wait for the lock for a put or a get, much longer than these take.
MOMENT = 0.002


class TakenHere:
    """The items that a session took out of shared memory, until they are put back."""

    __slots__ = ("items",)

    def __init__(self, items: list[bytes]) -> None:
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TakenHere) and other.items is self.items

    def __hash__(self) -> int:
        return id(self.items)


class Awaited(NamedTuple):
    """What a call waits for: a sign, whether the wait is over, and the most seconds until the call
    looks by itself."""

    sign: Sign
    is_over: Callable[[], bool]
    limit: float


class Items:
    """The items of one queue. A method returns :data:`MOVE` when it did nothing; and BUSY, if it
    has an ``end`` on the monotonic clock, when others have the lock until then."""

    def __init__(self, ring: HoldingRing, lease: int) -> None:
        """``lease``: the milliseconds for which a stopped process keeps what it has reserved or
        holds."""
        self.ring = ring
        self._lease = lease * 1_000_000

    @property
    def state(self) -> int:
        return self.ring.state

    @property
    def are_here(self) -> bool:
        """Whether the items are in shared memory, and neither at the broker nor on their way
        there."""
        return self.ring.state == HERE

    # Putting

    def put(self, request: Put, taker: Taker, end: float | None) -> Any:
        items, sort_keys, overfill, has_content, waits = request
        if sort_keys or overfill or has_content:
            return MOVE
        ring = self.ring
        if ring.refuses:
            added = -1
        elif ring.is_full and items:
            added = 0
        else:
            added = ring.putting.run(partial(ring.append, items), latest(waits, end))
        if added is BUSY:
            return InUse("producer")
        if added < 0:
            return Outcome.CLOSED if self.are_here and ring.is_closed else MOVE
        if added == 0 and items:
            return NoSpace(ring.length)
        ring.tell_items(added)
        return Added(added)

    def put_one(self, item: bytes) -> bool:
        """Add an item, if the items are in shared memory, no other thread puts, and there is
        space."""
        ring = self.ring
        added = ring.putting.run(partial(ring.append, (item,)), time.monotonic() + MOMENT)
        if added != 1:
            return False
        ring.tell_items(1)
        return True

    # Taking

    def take(self, request: Take, taker: Taker, end: float | None) -> Any:
        """Do a request :class:`Take`."""
        until = latest(request.waits, end)
        while True:
            reply = self.take_now(request, taker, until)
            is_late = until is not None and time.monotonic() > until
            if type(reply) is not InUse or request.waits or is_late:
                return reply
            self.wait(reply, CHECK)

    def take_now(self, request: Take, taker: Taker, until: float | None) -> Any:
        """Try a :class:`Take` once; wait ``until`` then for the lock."""
        if request.until_ended:
            return MOVE
        reply = self.ring.taking.run(
            self._taking(request, min(request.limit, MOST_ITEMS), taker), until
        )
        if type(reply) is Taken:
            self.ring.tell_space(len(reply.items))
        return InUse("consumer") if reply is BUSY else reply

    def _taking(self, request: Take, limit: int, taker: Taker) -> Callable[[], Any]:
        """Return the function that takes, with the lock."""
        return partial(self._take, limit, taker)

    def _take(self, limit: int, taker: Taker) -> Any:
        if not self.are_here:
            return MOVE
        if self._is_reserved(""):
            return InUse("consumer")
        is_closed = self.ring.is_closed  # before: no item comes behind it
        if not self.ring.drops and self.ring.take(limit, taker):
            self.ring.note_taker(client_id_bytes())
            return Taken(mark_each(taker.taken_here))
        return Outcome.CLOSED if is_closed else NoItem()

    def give_back(self, items: list[bytes], if_open: bool) -> Any:
        """Put taken items in front, and empty the list, so that a repeated call does nothing; see
        :class:`TakeBack`. MOVE: shared memory has no room for them."""
        return self._with_both(partial(self._give_back, items, if_open))

    def _give_back(self, items: list[bytes], if_open: bool) -> Any:
        ring = self.ring
        if not items:
            return Outcome.DONE
        if self.are_here and ring.drops:
            ring.count_done(len(items))
            del items[:]
            ring.tell_done()
            return Outcome.DONE
        if self.are_here and ring.is_closed and if_open:
            return Taken(mark_each(items))
        # Items that are held were taken behind them.
        if ring.holds or not (self.are_here and ring.give_back(items)):
            return MOVE
        self.ring.tell_items(1)
        return Outcome.DONE

    # Reading ahead

    def prefetch(self, request: Prefetch, end: float | None = None) -> Any:
        """Reserve items; none of a queue with a bound, for whose space other clients may wait.
        Items are taken ahead only at the broker."""
        return self.ring.taking.run(partial(self._reserve, request), end) if request.alone else MOVE

    def _reserve(self, request: Prefetch) -> Any:
        ring, (reader, call, handed, kept, limit, *_) = self.ring, request
        if not self.are_here:
            return MOVE if not kept else Outcome.SHARED
        ring.readers.add(reader)
        if self._is_reserved(reader) or ring.bound:
            return Outcome.SHARED
        reading = ring.reading
        if reading is None and (kept or not limit):
            return Outcome.LATE
        if reading is not None:
            ring.advance(reading.first + handed - reading.handed)
        if ring.change_taker() or (reading is not None and ring.is_wanted):
            if reading is not None and not kept:
                ring.end_reading(handed)
            return Outcome.SHARED
        items = [] if ring.drops else ring.read(kept, min(limit, MOST_ITEMS))
        if items or kept or (reading is not None and not limit):
            until = time.monotonic_ns() + self._lease
            ring.note_taker(client_id_bytes())
            if reading is None and not ring.begin_reading(reader, call, handed, until):
                return Outcome.SHARED
            ring.go_on_reading(until)
        elif reading is not None:
            ring.end_reading(handed)
        return Taken(items) if items or not limit else NoItem()

    def end_prefetch(self, request: EndPrefetch, end: float | None = None) -> Any:
        """End a reservation, also after the items were moved: reservations in shared memory are
        known only there."""
        if request.reader not in self.ring.readers:
            return MOVE
        return self.ring.taking.run(partial(self._end_reservation, request), end)

    def _end_reservation(self, request: EndPrefetch) -> HandedOut:
        reader, call, handed, _ = request
        self.ring.ended_calls[reader] = call
        reading = self.ring.reading
        if reading is not None and reading.reader == reader:
            self.ring.end_reading(handed)
            return HandedOut(handed)
        ended = self.ring.ended(reader)
        return HandedOut(handed if ended is None else ended)

    def _is_reserved(self, reader: str) -> bool:
        """Tell whether another reader has reserved the items. Ends the reservation of a reader that
        has ended, or whose lease has."""
        reading = self.ring.reading
        if reading is None or reading.reader == reader:
            return False
        is_dead = is_gone(reading.reader)
        if not is_dead and time.monotonic_ns() < reading.until:
            self.ring.want()
            return True
        try:
            handed = self._handed(reading)
        except OSError as error:
            if interrupts.is_from_outside(error):
                raise
            return True  # the next call tries again
        self.ring.end_reading(handed)
        if is_dead:
            hand_outs.forget(reading.reader)
        else:
            self.ring.note_ended(reading.reader, handed)
        return False

    @staticmethod
    def _handed(reading: Reading) -> int:
        """Return how many items a reader ever handed out, as far as this process sees. Raises
        OSError when it cannot see that now."""
        seen = hand_outs.read(reading.reader)
        return reading.handed if seen is None else max(seen, reading.handed)

    # Waiting

    def awaited(self, later: Any) -> Awaited | None:
        """Return what to wait for after this reply; None if others have the lock, which they are
        about to release."""
        ring = self.ring
        if type(later) is InUse and (later.role == "producer" or not ring.is_reserved):
            return None
        if type(later) is Unfinished:
            return Awaited(FOR_JOIN, self._is_done, TICK)
        if type(later) is NoSpace:
            return Awaited(FOR_SPACE, self._may_have_space, TICK)
        return Awaited(FOR_ITEMS, self._may_have_items, CHECK if ring.is_reserved else TICK)

    def wait(self, later: Any, timeout: float | None) -> bool:
        """Wait until a new call may succeed, for at most ``timeout`` seconds; return whether it
        may."""
        awaited = self.awaited(later)
        if awaited is None:
            time.sleep(shorter(timeout, MOMENT))
            return True
        return self.ring.wait(awaited.sign, awaited.is_over, shorter(timeout, awaited.limit))

    def _is_done(self) -> bool:
        return not (self.are_here and self.ring.unfinished)

    def _may_have_space(self) -> bool:
        ring = self.ring
        return not self.are_here or ring.is_closed or not 0 < ring.bound <= ring.length

    def _may_have_items(self) -> bool:
        ring = self.ring
        return not self.are_here or ring.is_closed or ring.is_free or ring.has_returned

    def _with_both(self, body: Callable[[], T], end: float | None = None) -> T:
        """Run ``body`` with both locks when no item is reserved, and return its result. With one
        lock this does not wait for the other: a process that has the second may run a signal
        handler that wants the first."""
        while True:
            found = self.ring.taking.run(partial(self._try_both, body), end)
            if found is not BUSY or (end is not None and time.monotonic() >= end):
                return found
            if self.ring.is_reserved:
                self.wait(InUse("consumer"), CHECK)
            else:
                time.sleep(MOMENT)

    def _try_both(self, body: Callable[[], T]) -> T:
        if self._is_reserved(""):
            busy: T = BUSY
            return busy
        return self.ring.putting.run(body, 0.0)

    def signed(self, items: Sequence[bytes]) -> list[bytes]:
        """Return the items as the broker is to have them."""
        return list(map(self.sign if self.ring.is_signed else bytes, items))

    def sign(self, item: bytes) -> bytes:
        """Sign an item for the broker, if the queue's items are signed. Raises BrokerError when
        this process has no key."""
        self._check_key()
        assert self.ring.sign is not None
        return self.ring.sign(item)

    def _check_key(self) -> None:
        if self.ring.is_signed and self.ring.sign is None:
            raise BrokerError(
                "the items of this queue are in memory that its processes on this host share, and "
                "this process has no key to sign them with, which other hosts need: shut the queue "
                f"down in its own program, or set {ring_files.VARIABLE}=0 there"
            )

    def end(self) -> None:
        """Note that the queue has ended: from now on the broker replies to all requests."""
        self.ring.set_state(MOVED)


def latest(waits: bool, end: float | None) -> float | None:
    """Return the time at which a call gives up waiting for a lock."""
    if waits or end is not None:
        return end
    return time.monotonic() + GRACE


def at_broker_until(end: float | None) -> float | None:
    """Return the time until which a call waits for other processes that move the items: at least a
    short one."""
    return None if end is None else max(end, time.monotonic() + SHORTEST_TRY)


def shorter(timeout: float | None, limit: float) -> float:
    return limit if timeout is None else min(timeout, limit)
