"""That this process is there: it answers for items in flight, or it is a producer of a queue.

The broker keeps a lease for each such process. One thread in the background renews those of this
process, and looks after the others: what a process had in flight goes back to the queue when it
is known to have ended, or when its lease has run out. As long as a process of this host can be
seen to live, and is not stopped, its lease does not matter: a call into C that holds Python's
lock keeps the thread from renewing it, and loses nothing.

The thread runs while this process has something in flight, is a producer, or waits in an operation
whose outcome depends on others; it ends by itself. Nothing here is needed on an engine whose
queues end with the process.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty as NothingNew
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from .. import interrupts
from ..drivers import drive, ending
from ..effects import Operation, T
from ..engines.contract.items import TakeBack
from ..engines.contract.session import Engine, Options
from ..exceptions import BrokerUnavailable, PressureError, QueueDoesNotExistError
from ..identity.processes import incarnation, is_there, state
from ..in_flight import Claim, Flights
from ..operations.flights import Flight, FlightOperations
from . import at_exit

#: Seconds between two looks at the others, at most: a dead process of this host is seen by then.
_LOOK = 0.5
#: How many others are looked at closely at a time.
_AT_ONE_LOOK = 32
#: Seconds for which a process that found nothing goes on to look: it may be polling.
_LINGER = 3.0
#: Seconds for which a look waits for one reply, at most: other brokers wait for their looks.
_PATIENCE = 1.0
#: Seconds that an ending process waits for a look that is in progress.
_LAST_LOOK = 1.0
#: Seconds for which one who was interrupted waits for the broker, to give back what it took.
_LAST_TRY = 1.0

#: Runs an operation on a handle's queue.
Run = Callable[[Operation[T]], T]


class Reader(Protocol):
    """What fetches items ahead through one handle."""

    @property
    def holds(self) -> bool:
        """Whether the broker keeps anything for it."""

    def look(self, presence: Presence) -> None:
        """Tell the broker what was handed out; put back what nobody will ask for."""

    def leave(self, presence: Presence) -> None:
        """The process ends: put everything back."""


class Presence:
    """This process in one queue. As a context manager: while it waits for what others have."""

    def __init__(self, engine: Engine, name: str, discipline: str) -> None:
        self.engine = engine
        self._lease = 0
        self._name = name
        self._discipline = discipline
        self.operations = FlightOperations(name, discipline)
        #: Of its farewell; in a look each call has its own.
        self._options: Options | None = None
        #: When the last look began, and the seconds that each of its calls may take.
        self.looked = 0.0
        self.patience = _PATIENCE
        self.reset()

    def reset(self) -> None:
        """A process that has not used the queue: a new one, or a forked child."""
        self.flights = Flights()
        self._readers: set[Reader] = set()
        self._producers: set[object] = set()  # handles
        self._retires = False  # was a producer, and has not yet said that it is none
        self._waiting: set[int] = set()  # threads, in an operation
        self._look_until = 0.0
        self._doubtful: dict[int, float] = {}
        self._returning: list[int] = []  # in flight, and not handed out
        self._undone: set[TakeBack] = set()  # calls that took items out for nobody
        self._is_gone = False  # no queue, no leases
        self._looked_at = 0

    def want_lease(self, lease: int) -> None:
        """A handle's lease in milliseconds; the longest of this process's handles counts."""
        self._lease = max(self._lease, lease)

    @property
    def interval(self) -> float:
        """Seconds from one look to the next."""
        return min(self._lease / 3000, _LOOK)

    @property
    def share(self) -> float:
        """Seconds for which brokers that are silent may keep it from a look: its lease lasts."""
        return self._lease / 3000

    @property
    def is_holding(self) -> bool:
        """Whether the broker keeps items for this process."""
        return bool(self.flights) or any(reader.holds for reader in list(self._readers))

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to renew or to look for."""
        return not self._is_gone and bool(
            self._waiting
            or self.is_holding
            or self._producers
            or self._retires
            or self._doubtful
            or self._returning
            or self._undone
            or time.monotonic() < self._look_until
        )

    def __enter__(self) -> None:
        """An operation begins that can go on when another process is found dead."""
        self._waiting.add(threading.get_ident())
        self.look_after()

    def __exit__(self, *error: object) -> None:
        self._look_until = time.monotonic() + _LINGER
        self._waiting.discard(threading.get_ident())

    def _give_up(self, claim: Claim) -> None:
        """What was taken under ``claim``, if anything, is not handed out: it goes back."""
        if not claim.call:
            return
        self.doubt(claim.call)
        self._drop(claim)
        try:
            self._try_now(self._requeue_of(claim.call))
        except PressureError:
            pass  # the next look tries again

    def doubt(self, call: int) -> None:
        """The broker may have given something in that call, and nobody has it."""
        # What is still on its way to the broker is done by then.
        self._doubtful[call] = time.monotonic() + self._lease / 1000
        _needed.add(self)
        self.look_after()

    def _drop(self, claim: Claim) -> None:
        """This process has nothing of that call any more."""
        for seq in claim.seqs:
            self.flights.discard(seq)

    def _requeue_of(self, call: int) -> Operation[Any]:
        return self.operations.requeue(incarnation(), call=call)

    def take_back(self, taken: TakeBack) -> None:
        """Undo what a session took."""
        self._undone.add(taken)
        _needed.add(self)
        self.look_after()
        try:
            self._try_now(self.operations.take_back(taken))
        except QueueDoesNotExistError:
            pass  # nothing goes back to it
        except PressureError:
            return  # the next look tries again
        self._undone.discard(taken)

    def take_ahead(
        self,
        run: Run[list[Flight]],
        number: int,
        block: bool,
        timeout: float | None,
        eof: bool,
        reader: str,
        claim: Claim,
    ) -> list[Flight]:
        """Take items for a reader, which hands them out later. Who asked gives up the ``claim``
        when they do not come to that."""
        taking = self.operations.take_many(
            incarnation(), claim.begin(), 0, number, block, timeout, eof, reader
        )
        with self:
            return run(taking)

    def watch(self, reader: Reader) -> None:
        """Look after what a reader fetches ahead."""
        if reader not in self._readers:
            with _lock:
                self._readers.add(reader)
                self._keep_looking()

    def give_back(self, seqs: list[int]) -> None:
        """What was fetched ahead is not handed out after all: it goes back to the queue, soon."""
        for seq in seqs:
            self.flights.discard(seq)
        self._returning += seqs
        self.look_after()

    def is_producer(self, handle: object) -> bool:
        """Whether the broker knows that this process puts through ``handle``."""
        return handle in self._producers

    def add_producer(self, handle: object) -> None:
        """The broker knows it now."""
        with _lock:
            self._producers.add(handle)
            self._keep_looking()

    def stop_producing(self, handle: object) -> None:
        """``handle`` puts no more; with the last one this process is no producer any longer."""
        with _lock:
            if handle not in self._producers:
                return
            self._producers.remove(handle)
            if self._producers:
                return
            self._retires = True
            self._keep_looking()
        # A look that is in progress would renew what ends here; then the next look ends it.
        for held in interrupts.attempts(_looking, _LAST_LOOK):
            if not held:
                return
            try:
                self._retire()
            except PressureError:
                pass
            finally:
                _looking.release()

    def _retire(self) -> None:
        if self._retires and not self._producers:
            self.run_now(self.operations.retire(incarnation()))
        self._retires = False

    def look(self) -> bool:
        """Renew what this process holds, and take from the others what they can no longer hold.

        Returns whether the broker answered.
        """
        self.looked = time.monotonic()
        try:
            self._renew_and_return()
        except QueueDoesNotExistError:
            self._is_gone = True
        except BrokerUnavailable:
            return False  # the next look tries again
        except PressureError:
            pass
        return True

    def _renew_and_return(self) -> None:
        me = incarnation()
        self._requeue_doubtful()
        if seqs := list(self._returning):
            self.run_now(self.operations.requeue(me, seqs=seqs))
            del self._returning[: len(seqs)]
        self._undo()
        self._retire()
        self._look_after_readers()
        there = self.run_now(self.operations.renew(me, self.is_holding, bool(self._producers)))
        for other, until in self._in_turn(there.consumers):
            if is_over(other, until, there.now):
                self.run_now(self.operations.requeue(other, seen=until))
        for other, until in self._in_turn(there.producers):
            if is_over(other, until, there.now):
                self.run_now(self.operations.retire(other, seen=until))

    def _requeue_doubtful(self) -> None:
        for call, until in list(self._doubtful.items()):
            self.run_now(self._requeue_of(call))
            if until < time.monotonic():  # by now also what was still on its way was done
                del self._doubtful[call]

    def _undo(self) -> None:
        for taken in list(self._undone):
            self.run_now(self.operations.take_back(taken))
            self._undone.discard(taken)

    def _in_turn(self, others: dict[str, int]) -> list[tuple[str, int]]:
        """Those to look at: of many on this host, some at each look, and all of which there is not
        even a process any more. Else many processes would do nothing but look at each other."""
        everybody = list(others.items())
        if len(everybody) <= _AT_ONE_LOOK:
            return everybody
        first = self._looked_at % len(everybody)
        self._looked_at = first + _AT_ONE_LOOK
        turned = everybody[first:] + everybody[:first]
        rest = [one for one in turned[_AT_ONE_LOOK:] if not is_there(one[0])]
        return turned[:_AT_ONE_LOOK] + rest

    def _look_after_readers(self) -> None:
        for reader in list(self._readers):
            reader.look(self)
            if not reader.holds:
                with _lock:
                    self._readers.discard(reader)

    def leave(self) -> bool:
        """The process ends: at once, instead of after a lease. Returns whether the broker was told;
        if not, others see that this process has ended."""
        if not self._has_something:
            return True
        try:
            return at_exit.say(self.engine, self._say_farewell)
        except PressureError:
            return True  # there is no such queue any more, or not for this process
        finally:
            self._options = None

    @property
    def _has_something(self) -> bool:
        """Whether the broker has noted anything of this process that its end is to take back."""
        return bool(
            self.is_holding
            or self._producers
            or self._retires
            or self._doubtful
            or self._returning
            or self._undone
        )

    def _say_farewell(self, options: Options) -> None:
        self._options = options
        for reader in list(self._readers):
            reader.leave(self)
        held = bool(self.is_holding or self._doubtful or self._returning)
        producing = self._retires or bool(self._producers)
        self._undo()
        self.reset()
        if held:
            self.run_now(self.operations.requeue(incarnation()))
        if producing:
            self.run_now(self.operations.retire(incarnation()))

    def look_after(self) -> None:
        """This process has something of the queue."""
        with _lock:
            self._keep_looking()

    def _keep_looking(self) -> None:
        """See to it that the thread runs, and looks as often as this queue needs."""
        self._is_gone = False
        if self.engine.address.capabilities.persistent or self._readers:
            _needed.add(self)
            _start_looking(self.interval)

    def run_now(self, operation: Operation[T]) -> T:
        """Run an operation of a look: without waiting for a broker that is away or silent. The next
        look tries again; this one must not keep other queues waiting."""
        options = self._options
        if options is None:
            options = Options(reconnect=0, until=time.monotonic() + self.patience)
        options = options._replace(lease=self._lease)
        binding = self.engine.bind(self._name, self._discipline, options)
        return drive(operation, binding.session())

    def _try_now(self, operation: Operation[T]) -> T:
        """Run an operation of one call, at once, and not for long."""
        binding = self.engine.bind(self._name, self._discipline, Options(lease=self._lease))
        return drive(ending(operation, time.monotonic() + _LAST_TRY), binding.session())


Kind = TypeVar("Kind", bound=Presence)


def is_over(other: str, until: int, now: int) -> bool:
    """Whether a process is no longer there: it has ended, or it let its lease run out.

    A lease does not count while the process is seen to run.
    """
    seen = state(other)
    return seen == "dead" or (seen != "alive" and until < now)


_lock = threading.RLock()
_looking = threading.Lock()
_all: weakref.WeakValueDictionary[tuple[int, str, str], Presence] = weakref.WeakValueDictionary()
_needed: set[Presence] = set()  # also without a handle, as long as something is in flight
_thread: threading.Thread | None = None
_is_looking = False  # the thread runs, or is about to
_sooner: SimpleQueue[None] = SimpleQueue()
_pace = _LOOK  # seconds from one look to the next, at present
_looks_at: Presence | None = None  # the one that the thread looks at just now


def of(engine: Engine, name: str, discipline: str, lease: int) -> Presence:
    """This process in the queue of that name; does no I/O."""
    return find(Presence, engine, name, discipline, lease)


def find(kind: type[Kind], engine: Engine, name: str, discipline: str, lease: int) -> Kind:
    """The same, of a queue whose kind of presence is another."""
    with _lock:
        key = id(engine), name, discipline
        found = _all.get(key)
        if found is None:
            found = _all[key] = kind(engine, name, discipline)
    assert isinstance(found, kind)
    found.want_lease(lease)
    return found


def _start_looking(interval: float) -> None:
    global _is_looking
    if not _is_looking:
        # Not a negative priority: before this process's own children are waited for, because they
        # may be waiting for what it holds.
        at_exit.call_at_end(_leave, priority=10)
        thread = threading.Thread(target=_look_around, name="pressure_mp", daemon=True)
        try:
            interrupts.start(thread)
        except RuntimeError:  # the interpreter is ending, and this process's leases with it
            return
        _is_looking = True
    elif interval < _pace:
        _sooner.put(None)


def _look_around() -> None:
    global _thread, _is_looking, _pace
    me = threading.current_thread()
    while True:
        with _lock:
            if _thread not in (None, me):
                return
            needed = {presence for presence in _needed if presence.is_needed}
            _needed.intersection_update(needed)
            goes_on = bool(needed or interrupts.abandoned)
            _is_looking = goes_on
            _thread = me if goes_on else None
            if not goes_on:
                return
            _pace = min((presence.interval for presence in needed), default=_LOOK)
        try:
            _sooner.get(timeout=_pace)
            continue
        except NothingNew:
            pass
        interrupts.settle()
        _look_at(needed)


def _look_at(needed: set[Presence]) -> None:
    """Look at each queue, but at one only of a broker that does not answer.

    Where there are several brokers, the silent ones keep the others from their looks for a part of
    the shortest lease, all together.
    """
    global _looks_at
    silent: set[int] = set()
    brokers = len({id(presence.engine) for presence in needed})
    patience = _PATIENCE
    if brokers > 1:
        patience = min(patience, min(presence.share for presence in needed) / brokers)
    for presence in sorted(needed, key=lambda presence: presence.looked):
        if id(presence.engine) in silent:
            continue
        presence.patience = patience
        with _looking:
            _looks_at = presence
            if not presence.look():
                silent.add(id(presence.engine))
            _looks_at = None


def _leave() -> None:
    looks = _looks_at
    if not at_exit.enter(_looking, _LAST_LOOK) and looks is not None:
        # A look that is in progress would renew what ends here.
        at_exit.give_up(looks.engine)
    interrupts.settle()
    untold: dict[str, int] = {}
    for presence in list(_needed):
        if not presence.leave():
            url = presence.engine.address.url
            untold[url] = untold.get(url, 0) + 1
    for url, number in untold.items():
        at_exit.tell(
            f"the broker at {url} did not answer when this process ended: what it had in flight "
            f"goes back to {number} queues, and it is no producer of them any more, when others "
            "see that it has ended"
        )


def _after_fork_in_child() -> None:
    global _lock, _looking, _sooner, _thread, _is_looking, _looks_at
    _lock, _looking, _sooner = threading.RLock(), threading.Lock(), SimpleQueue()
    _thread, _is_looking, _looks_at = None, False, None
    interrupts.abandoned.clear()
    _needed.clear()
    for presence in list(_all.values()):
        presence.reset()


os.register_at_fork(after_in_child=_after_fork_in_child)
