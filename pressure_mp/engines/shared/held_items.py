"""Requests about items in shared memory that are taken, and not yet acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any

from ...encoding.unsigned_items import mark_each
from ...identity.client import client_id_bytes
from ...identity.processes import incarnation
from ...identity.processes import state as process_state
from ..contract.items import TAKE_ONE, Hold, Requeue, SetAside, Take, Taken
from ..contract.replies import InUse, NoItem, Outcome
from .deliveries import Entry, HoldingRing, State
from .items import CHECK, MOMENT, MOVE, Items
from .layout import HERE, SET_ASIDE
from .locks import BUSY
from .ring import Taker
from .waking import ALL

#: The most items that one call holds.
_MOST = 256


class HeldItems(Items):
    """The items of one queue, which can be held."""

    def __init__(self, ring: HoldingRing, lease: int, set_aside: Callable[[bytes], None]) -> None:
        """``set_aside`` has the broker set an item aside; the rest is as for :class:`Items`."""
        super().__init__(ring, lease)
        self.set_aside = set_aside

    def _taking(self, request: Take, limit: int, taker: Taker) -> Callable[[], Any]:
        if request.hold is None:
            return super()._taking(request, limit, taker)
        return partial(self._hold, min(limit, _MOST), request.hold)

    def _hold(self, limit: int, hold: Hold) -> Any:
        if not self.are_here or hold.reader:
            return MOVE
        if self._is_reserved(""):
            return InUse("consumer")
        ring = self.ring
        is_closed = ring.is_closed  # before: no item comes behind it
        self._requeue_lost()
        if not (ring.drops or (ring.first == ring.last and not ring.has_returned)):
            found = ring.hold(limit, hold)
            if found is None:
                return MOVE
            if found[0]:
                ring.note_taker(client_id_bytes())
                return Taken(mark_each(found[1]), found[0])
        return Outcome.CLOSED if is_closed else NoItem()

    def take_at_once(self, request: Take, taker: Taker, end: float | None) -> Any:
        """Do a :class:`Take` of one item, as :meth:`take_one`."""
        if request is not TAKE_ONE:
            limit, hold, until_ended, _ = request
            if until_ended or limit != 1 or (hold is not None and hold.reader):
                return MOVE
        return self.take_one(request.hold, taker)

    def take_one(self, hold: Hold | None, taker: Taker | None) -> Any:
        """Take the next item, in less time than :meth:`take`; MOVE when something else is to be
        done before, or others have the lock for long."""
        ring, now = self.ring, monotonic()
        if hold is not None and now >= ring.looked + CHECK:
            return MOVE
        if not ring.is_free:  # nor are the locks of a queue used that has moved
            return NoItem() if ring.is_empty else MOVE
        taken = ring.taking.run(partial(ring.take_at_once, hold, taker), now + MOMENT)
        if taken is BUSY or taken is None:
            return MOVE
        ring.tell_space(1)
        return taken

    def acknowledge(self, owner: str, number: int | None, end: float | None = None) -> Any:
        """Do an :class:`Acknowledge`."""
        ring = self.ring
        if ring.state != HERE:
            return MOVE
        reply = ring.taking.run(partial(ring.acknowledge, owner, number), end)
        if ring.is_join_awaited and reply is Outcome.DONE and ring.is_done:
            ring.tell_done()
        return MOVE if reply is None else reply

    def set_aside_held(self, request: SetAside) -> Any:
        """Do a :class:`SetAside` of a held item."""
        return self.ring.taking.run(partial(self._set_aside_held, request))

    def _set_aside_held(self, request: SetAside) -> Any:
        ring = self.ring
        if not self.are_here:
            return MOVE
        held = [entry for entry in ring.with_state(State.HELD) if entry.number == request.number]
        if not held or held[0].owner != request.owner:
            return Outcome.LATE
        self._set_aside(held[0])
        return Outcome.DONE

    def _set_aside(self, entry: Entry) -> None:
        ring = self.ring
        self.set_aside(self.signed([ring.item(entry)])[0])
        ring.set_aside(entry)
        ring.count_done(1, SET_ASIDE)
        if not ring.unfinished:
            ring.tell_done()

    def requeue(self, request: Requeue) -> bool:
        """Do a :class:`Requeue`, of items in shared memory; returns whether they are there."""
        owner, _, call, numbers, _ = request
        return self.ring.taking.run(partial(self._requeue, owner, call, numbers))

    def _requeue(self, owner: str, call: int | None = None, numbers: Sequence[int] = ()) -> bool:
        ring = self.ring
        if not self.are_here:
            return False
        if not ring.holds:
            return True
        for entry in ring.requeue(owner, call, numbers):
            self._set_aside(entry)
        ring.tell_items(len(numbers) or ALL)
        if not ring.unfinished:
            ring.tell_done()
        return True

    @property
    def is_to_look(self) -> bool:
        """Whether it is time to look for items of processes that have ended."""
        return self.ring.holds and monotonic() >= self.ring.looked + CHECK

    def requeue_lost(self) -> None:
        """Return the items of processes that have ended, or are stopped for longer than a lease; if
        no other process has the lock."""
        self.ring.taking.run(self._requeue_lost, 0.0)

    def _requeue_lost(self) -> None:
        if not self.is_to_look:
            return
        ring, now = self.ring, monotonic()
        ring.looked, seen, ring.stopped = now, ring.stopped, {}
        for owner in {entry.owner for entry in ring.with_state(State.HELD)} - {incarnation()}:
            found = process_state(owner)
            if found == "stopped":
                ring.stopped[owner] = seen.get(owner, now)
            if found == "dead" or now - ring.stopped.get(owner, now) > self._lease / 1e9:
                self._requeue(owner)
