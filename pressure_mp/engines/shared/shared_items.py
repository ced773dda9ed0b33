"""Requests about the whole queue while its items are in shared memory, and the end of that."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ... import interrupts
from ...encoding.unsigned_items import mark_each
from ...identity.client import client_id_bytes
from ..contract.items import MOST_ITEMS, PeekItems, Placed, Requeue
from ..contract.queues import Close, GetStatsReply, Inspection, InspectReply, SetBound, Stats
from ..contract.replies import InUse, Outcome, Unfinished
from .deliveries import Entry, State
from .held_items import HeldItems
from .items import GRACE, MOVE, latest
from .layout import DONE, HERE, MOVED, MOVING
from .locks import BUSY


class Moved(NamedTuple):
    """Items that are moved to the broker. ``first`` is how many items came before them, and were
    taken or moved; ``size`` is the size in bytes of all items that were taken before the move, and
    ``done`` how many items are done."""

    first: int
    size: int
    done: int
    items: list[bytes]


class Held(NamedTuple):
    """A held item that is moved to the broker; ``deliveries`` is 0 when another process
    acknowledged it."""

    number: int
    deliveries: int
    limit: int
    call: int
    owner: str
    item: bytes


#: Gives the held items to the broker, and has it do requests.
Finish = Callable[[list[Held], list[Any]], None]
#: The owner of returned items, for the broker.
_BACK = "returned"


class SharedItems(HeldItems):
    """The items of one queue. A method returns :data:`MOVE` when it did nothing."""

    def length(self, seconds: float = GRACE) -> Any:
        """Count the items, without items that a reader handed out. If another process has the lock
        for so many seconds, these are counted too."""
        if not self.are_here:
            return MOVE
        found = self.ring.taking.run(self._length, time.monotonic() + seconds)
        return self.ring.length if found is BUSY else found

    def _length(self) -> Any:
        if not self.are_here:
            return MOVE
        queued = 0 if self.ring.drops else self.ring.last - self._first()
        return queued + self.ring.returned

    def _first(self) -> int:
        """Return how many items were ever taken, or handed out by a reader that did not say so
        yet."""
        reading = self.ring.reading
        if reading is None:
            return self.ring.first
        try:
            return reading.first + self._handed(reading) - reading.handed
        except OSError as error:
            if interrupts.is_from_outside(error):
                raise
            return self.ring.first  # what was handed out since then is not known now

    def peek(self, request: PeekItems) -> Any:
        """Do a request :class:`PeekItems`."""
        return self.ring.taking.run(partial(self._peek, request))

    def _peek(self, request: PeekItems) -> Any:
        if not self.are_here:
            return MOVE
        ring, limit = self.ring, min(request.limit, MOST_ITEMS)
        if ring.drops:
            return []
        returned = ring.with_state(State.RETURNED)
        first = [ring.item(entry) for entry in returned[request.start :][:limit]]
        start = self._first() - ring.first + max(request.start - len(returned), 0)
        found = ring.read(start, limit - len(first)) if len(first) < limit else []
        found[:0] = first
        return [Placed(item, b"") for item in mark_each(found)]

    def add_to_stats(self, reply: GetStatsReply) -> Any:
        """Add the counts of shared memory to the broker's. MOVE: the items are no longer
        here."""
        counting = partial(self._add_to_stats, reply)
        found = self.ring.taking.run(counting, time.monotonic() + GRACE)
        return counting() if found is BUSY else found

    def _add_to_stats(self, reply: GetStatsReply) -> Any:
        length, ring = self._length(), self.ring
        if length is MOVE or not isinstance(reply, Stats):
            return MOVE if length is MOVE else reply
        returned = sum(len(ring.item(entry)) for entry in ring.with_state(State.RETURNED))
        return reply._replace(
            length=length,
            maxsize=ring.bound,
            closed=ring.is_closed,
            produced_messages=ring.last,
            produced_bytes=ring.bytes_in,
            consumed_messages=ring.first if ring.drops else ring.last - length,
            consumed_bytes=ring.bytes_out - returned,
            in_flight=ring.held,
            producer=ring.putter or None,
            consumer=ring.last_taker or None,
            unfinished=ring.unfinished,
        )

    def add_to_inspection(self, reply: InspectReply) -> Any:
        """Add the items in shared memory to the inspection by the broker. MOVE: they are no longer
        here."""
        length = self.length()
        if length is MOVE or not isinstance(reply, Inspection):
            return MOVE if length is MOVE else reply
        return reply._replace(
            length=length,
            bound=self.ring.bound,
            closed=self.ring.is_closed,
            has_space=not 0 < self.ring.bound <= length,
            producer=reply.producer._replace(last=self.ring.putter),
            consumer=reply.consumer._replace(last=self.ring.last_taker),
        )

    # Counting items as done

    def count_done(self, which: int = DONE, end: float | None = None) -> Any:
        """Do a :class:`CountDone`, or note an item that the broker set aside."""
        ring = self.ring
        counted = ring.taking.run(partial(self._count_done, which), end)
        if counted is True and not ring.unfinished:
            ring.tell_done()
        if counted is MOVE or counted is BUSY:
            return counted
        return Outcome.DONE if counted else Outcome.EXCESS

    def _count_done(self, which: int) -> Any:
        return self.ring.count_done(1, which) if self.are_here else MOVE

    def join(self) -> Any:
        """Do a :class:`Join`."""
        if not self.are_here:
            return MOVE
        self.requeue_lost()
        return Unfinished() if self.ring.unfinished else Outcome.DONE

    # Changing the queue

    def set_bound(self, request: SetBound) -> Any:
        """Do a :class:`SetBound`."""
        return self.ring.putting.run(partial(self._set_bound, request.bound))

    def _set_bound(self, bound: int) -> Any:
        if not self.are_here:
            return MOVE
        self.ring.set_bound(bound)
        return Outcome.DONE

    def close(self, request: Close, end: float | None) -> Any:
        """Do a :class:`Close`."""
        closing = partial(self._close, request)
        until = latest(request.waits, end)
        if not request.immediate:
            reply = self.ring.putting.run(closing, until)
            return InUse("producer") if reply is BUSY else reply
        reply = self._with_both(closing, until)
        return InUse("consumer") if reply is BUSY else reply

    def _close(self, request: Close) -> Any:
        ring = self.ring
        if not self.are_here:
            return MOVE
        if request.once and ring.is_closed:
            return Outcome.CLOSED
        ring.note_putter(client_id_bytes())
        if request.immediate:
            ring.drop()
        else:
            ring.close()
        return Outcome.DONE

    # Moving to the broker

    def move(
        self,
        add: Callable[[Moved], None],
        finish: Finish,
        end: float | None = None,
    ) -> bool:
        """Move all items to the broker by calls of ``add``, in batches: between two of them, other
        calls may have the locks, and go on with the move. Then have the broker ``finish`` what was
        done to the queue in shared memory. Returns whether all items are there;
        False when ``end`` on the monotonic clock came before. Tries once at least. Raises the
        errors of ``add``; then the next call that needs the items at the broker goes on."""
        while True:
            is_over = self._with_both(partial(self._move_batch, add, finish), end)
            if is_over is BUSY:
                return False
            if is_over or (end is not None and time.monotonic() >= end):
                return is_over

    def _move_batch(self, add: Callable[[Moved], None], finish: Finish) -> bool:
        ring = self.ring
        if ring.state == MOVED:
            return True
        self._check_key()
        if ring.state == HERE:
            ring.set_state(MOVING)
        first, items = ring.first, ring.read(0, MOST_ITEMS)
        add(Moved(first, ring.bytes_out, ring.done, self.signed(items)))
        ring.advance(first + len(items))
        if ring.first != ring.last:
            return False
        held = [self._held(entry) for _, entry in ring.entries()]
        done: list[Any] = [Requeue(_BACK)] * bool(held)
        done += [SetBound(ring.bound)] * ring.has_new_bound
        done += [Close(immediate=ring.drops, waits=False)] * ring.is_closed
        finish(held, done)
        ring.set_state(MOVED)
        return True

    def _held(self, entry: Entry) -> Held:
        number, _, state, call, limit, deliveries, owner = entry
        (item,) = self.signed([self.ring.item(entry)])
        passed, returned = state == State.PASSED, state == State.RETURNED
        return Held(
            number, 0 if passed else deliveries, limit, call, _BACK if returned else owner, item
        )
