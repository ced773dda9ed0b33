"""The presence of this process in a queue of items: what it has in flight, and whether it is a
producer.

Its items go back when it ends, and so do the items of other processes that have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from .. import interrupts
from ..effects import Operation, T
from ..engines.contract.items import Attendance, Renew, TakeBack
from ..engines.contract.levels import Level
from ..engines.contract.session import Engine
from ..exceptions import PressureError, QueueDoesNotExistError
from ..identity import hand_outs
from ..identity.processes import incarnation
from ..in_flight import Claim, InFlight
from ..operations.deliveries import DeliveryOperations
from . import lease_thread
from .lease import Lease, LeasedItems, find

#: Runs an operation on a handle's queue.
Run = Callable[[Operation[T]], T]


class Reader(Protocol):
    """Prefetches items through one handle."""

    @property
    def holds(self) -> bool:
        """Tell whether the broker keeps items for it."""

    def look(self, presence: Presence) -> None:
        """Tell the broker what was handed out; put back items that no get will ask for."""


class Presence(LeasedItems):
    """The items in flight, and the producers, of this process in one queue."""

    def __init__(self, engine: Engine, name: str, discipline: str) -> None:
        self.operations = DeliveryOperations(name, discipline)
        self.lease = Lease(engine, name, discipline, self)
        self.reset()

    def reset(self) -> None:
        self.in_flight = InFlight()
        self._readers: set[Reader] = set()
        self._has_prefetched = False
        self._producers: set[object] = set()  # handles
        self._producing = threading.RLock()
        self._retires = False  # was a producer, which the broker still believes
        self._undone: set[TakeBack] = set()  # calls whose items no caller has

    @property
    def is_holding(self) -> bool:
        """Tell whether the broker keeps items for this process."""
        return bool(self.in_flight) or any(reader.holds for reader in list(self._readers))

    @property
    def has_something(self) -> bool:
        return bool(self.is_holding or self._producers or self._retires or self._undone)

    # What was taken

    def keep(self) -> None:
        """Have the lease of the items in flight renewed."""
        self.lease.keep()

    def drop(self, claim: Claim) -> None:
        for seq in claim.seqs:
            self.in_flight.discard(seq)

    def requeue_of(self, call: int) -> Operation[Any]:
        return self.operations.requeue(incarnation(), call=call)

    def take_back_later(self, taken: TakeBack) -> None:
        """Have the next look undo what a session took."""
        self._undone.add(taken)
        self.lease.keep()

    def take_back(self, taken: TakeBack) -> None:
        """Undo what a session took: now, or by the next look."""
        self.take_back_later(taken)
        try:
            self.lease.try_now(self.operations.take_back(taken))
        except QueueDoesNotExistError:
            pass  # nothing goes back to it
        except PressureError:
            return  # the next look tries again
        self._undone.discard(taken)

    # Prefetching

    def watch(self, reader: Reader) -> None:
        """Have looks tell the broker what a reader hands out."""
        if reader not in self._readers:
            self._has_prefetched = True
            self._readers.add(reader)
            self.lease.keep()
            lease_thread.keep_looking(self.lease)  # also where the queue ends with this process

    # Producing

    def is_producer(self, handle: object) -> bool:
        """Tell whether the broker knows that this process puts through ``handle``."""
        return handle in self._producers

    def add_producer(self, handle: object) -> None:
        """Note that the broker knows that this process puts through ``handle``."""
        self._producers.add(handle)
        self.lease.keep()

    def stop_producing(self, handle: object) -> None:
        """Note that ``handle`` puts no more; with the last one this process is no producer any
        longer."""
        with self._producing:
            if handle not in self._producers:
                return
            self._producers.remove(handle)
            if self._producers:
                return
            self._retires = True
        self.lease.keep()
        # A look that is in progress would renew what ends here; then the next look ends it.
        looking = lease_thread.looking
        for held in interrupts.attempts(looking, lease_thread.LAST_LOOK):
            if not held:
                return
            try:
                self._retire()
            except PressureError:
                pass
            finally:
                looking.release()

    def _retire(self) -> None:
        if self._retires and not self._producers:
            self.lease.run_now(self.operations.retire(incarnation()))
        self._retires = False

    # Looking

    def renewal(self) -> Renew:
        return Renew(incarnation(), self.is_holding, bool(self._producers))

    def renew_and_return(self, there: Attendance | None) -> None:
        run = self.lease.run_now
        self.lease.requeue_doubtful()
        self._undo()
        self._retire()
        self._look_after_readers()
        if Level.DELIVERIES not in self.lease.engine.address.capabilities.levels:
            return  # no process has anything that could be requeued
        self.lease.requeue_in_memory()
        if there is None:
            there = run(self.operations.renew(*self.renewal()))
        for other, until in self.lease.find_lost(there.consumers, there.now):
            self._requeue_of_lost(other, until)
        for other, until in self.lease.find_lost(there.producers, there.now):
            run(self.operations.retire(other, seen=until))

    def _requeue_of_lost(self, other: str, until: int) -> None:
        """Requeue the items of a process that has ended, except those that it handed out."""
        try:
            handed = hand_outs.of_owner(other)
        except OSError:
            return  # the next look tries again
        self.lease.run_now(self.operations.requeue(other, seen=until, handed=handed))
        for reader, _ in handed:
            hand_outs.forget(reader)

    def _undo(self) -> None:
        for taken in list(self._undone):
            self.lease.run_now(self.operations.take_back(taken))
            self._undone.discard(taken)

    def _look_after_readers(self) -> None:
        for reader in list(self._readers):
            reader.look(self)
            self._readers.discard(reader)
            if reader.holds:  # also what it prefetched just now
                self._readers.add(reader)

    def say_farewell(self) -> None:
        held = self.is_holding or self._has_prefetched or self.lease.has_doubts
        producing = self._retires or bool(self._producers)
        left = self.in_flight.never_acknowledged
        self._undo()
        self.lease.reset()
        self.reset()
        if held:
            handed = hand_outs.of_owner(incarnation())
            self.lease.run_now(self.operations.requeue(incarnation(), handed=handed))
            if left:
                self._tell_of(left)
        if producing:
            self.lease.run_now(self.operations.retire(incarnation()))

    def _tell_of(self, left: int) -> None:
        import logging  # few programs need it from here

        _log = logging.getLogger("pressure_mp")
        _log.warning(
            "%d items of queue %r are delivered again to other consumers: this process got them, "
            "and ends without a call of task_done(). Call it after each item, or use Queue",
            left,
            self.operations.name,
        )


def of(engine: Engine, name: str, discipline: str, length: int) -> Presence:
    """Return this process in the queue of that name, with a lease of so many milliseconds or more;
    does no I/O."""
    return find(Presence, engine, name, discipline, length)
