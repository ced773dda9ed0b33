"""The lease of this process in one queue.

The broker keeps a lease for each process that is responsible for items in flight, or is a producer.
One thread in the background renews the leases of this process, and looks at the other processes:
the items that a process had in flight go back to the queue when it is known to have ended, or when
its lease has run out (:func:`~pressure_mp.identity.processes.is_lost`).

Nothing here is needed on an engine whose queues end with the process.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .. import lifecycle
from ..drivers import drive, ending
from ..effects import Operation, T
from ..engines.contract.brokers import QueueRenewal
from ..engines.contract.items import Attendance, Renew
from ..engines.contract.queues import ANONYMOUS
from ..engines.contract.session import ONE_TRY, Engine, Options, is_local
from ..exceptions import BrokerUnavailable, PressureError, QueueDoesNotExistError
from ..identity.processes import is_lost, is_there, state
from ..in_flight import Claim
from . import at_exit, lease_thread

#: Whether the process that started this one renews its leases, too.
is_renewed_by_starter = False

#: How many other processes are looked at closely at a time.
_AT_ONE_LOOK = 32
#: Seconds for which a process that found no item still looks: it may be polling.
_LINGER = 3.0


class LeasedItems(Protocol):
    """The items or tasks of a queue that this process has under the lease. As a context: this
    process waits for items or tasks of other processes."""

    lease: Lease

    def __enter__(self) -> None:
        self.lease.__enter__()

    def __exit__(self, *error: object) -> None:
        self.lease.__exit__(*error)

    @property
    def has_something(self) -> bool:
        """Tell whether the broker has noted anything of this process that has to be undone when the
        process ends."""

    @property
    def has_deliveries(self) -> bool:
        """Tell whether this process has anything that others get when its lease has run out."""
        return self.has_something

    def renewal(self) -> Renew | None:
        """Return the renewal of the lease, if one call can renew leases of other queues with it."""

    def renew_and_return(self, there: Attendance | None) -> None:
        """Renew the lease, and requeue the items of ended processes. With ``there`` the lease was
        renewed already, and these are the other processes."""

    def requeue_of(self, call: int) -> Operation[Any]:
        """Give back the items that this process took in one call."""

    def drop(self, claim: Claim) -> None:
        """Forget all items of a call."""

    def say_farewell(self) -> None:
        """Give everything back, as the process ends."""

    def reset(self) -> None:
        """Begin as a process that has not used the queue: a new process, or a forked child."""


class Lease:
    """The lease, and when it is to be renewed. As a context: this process waits for items of other
    processes."""

    def __init__(self, engine: Engine, name: str, discipline: str, leased: LeasedItems) -> None:
        self.engine = engine
        self._leased = leased
        self._queue = name, discipline
        self._matters = engine.address.capabilities.persistent
        #: Milliseconds.
        self._length = 0
        #: Seconds from one look to the next.
        self.interval = 0.0
        #: The options of the calls at the process's end; in a look each call has its own.
        self._options: Options | None = None
        self.looked = 0.0
        #: When the lease was renewed, or an item or task taken.
        self._renewed = 0.0
        self.patience = lease_thread.PATIENCE
        self.reset()

    def reset(self) -> None:
        # Threads and asyncio tasks in an operation; and processes that this one looks after.
        self._waiting: set[object] = set()
        self._look_until = 0.0
        self._doubtful: dict[int, float] = {}
        self._is_gone = False  # no queue, no leases
        self._looked_at = 0

    def want(self, length: int) -> None:
        """Note the lease of a handle, in milliseconds. The longest of this process's handles
        counts."""
        self._length = max(self._length, length)
        self.interval = min(self._length / 3000, lease_thread.LOOK)

    @property
    def share(self) -> float:
        """The seconds that silent brokers may delay a look, so that the lease still lasts."""
        return self._length / 3000

    @property
    def is_needed(self) -> bool:
        """Tell whether there is anything to renew or to look for."""
        return not self._is_gone and bool(
            self._waiting
            or self._doubtful
            or time.monotonic() < self._look_until
            or self._leased.has_something
        )

    def __enter__(self) -> None:
        """Begin an operation that can go on when another process is found dead."""
        self.look_for(_caller())

    def __exit__(self, *error: object) -> None:
        self._look_until = time.monotonic() + _LINGER
        self.leave_off(_caller())

    def look_for(self, reason: object) -> None:
        """Look at the other processes, for that reason."""
        self._waiting.add(reason)
        self.keep()

    def leave_off(self, reason: object) -> None:
        """End that reason to look."""
        self._waiting.discard(reason)

    def is_late(self, until: int, now: int) -> bool:
        """Tell whether a lease of this length should have been renewed by now, as it ends at
        ``until``, both in milliseconds."""
        return until - now < self._length / 2

    def keep(self) -> None:
        """Have the lease renewed: this process has items of the queue, or waits for some."""
        self._is_gone = False
        self._renewed = time.monotonic()
        if self._matters:
            lease_thread.keep_looking(self)

    # What an interrupted call took

    def _give_up(self, claim: Claim) -> None:
        """Give back what was taken under ``claim``, if anything; see
        :class:`~pressure_mp.interrupts.Claimant`."""
        if not claim.call:
            return
        try:
            self.try_now(self.disown(claim))
        except PressureError:
            pass  # the next look tries again

    def disown(self, claim: Claim) -> Operation[Any]:
        """Note that no caller has what was taken under ``claim``, if anything; return the operation
        that gives it back at once. If it fails, the next look tries again."""
        self.doubt(claim.call)
        self._leased.drop(claim)
        return self._leased.requeue_of(claim.call)

    def doubt(self, call: int) -> None:
        """Note that the broker may have given items in that call which no caller has."""
        # A request that is still on its way to the broker is done by then.
        self._doubtful[call] = time.monotonic() + self._length / 1000
        self.keep()

    def trust(self, claim: Claim) -> None:
        """Note that the broker has answered that call, and its items went back."""
        self._doubtful.pop(claim.call, None)

    @property
    def has_doubts(self) -> bool:
        """Whether there is such a call."""
        return bool(self._doubtful)

    def requeue_doubtful(self) -> None:
        """Give back the items of such calls."""
        # A list of pairs would be no copy at one moment: garbage is collected in the midst of it.
        for call, until in self._doubtful.copy().items():
            self.run_now(self._leased.requeue_of(call))
            if until < time.monotonic():  # by now a request that was on its way is done
                del self._doubtful[call]

    # Looking

    def renewal(self) -> QueueRenewal | None:
        renew = self._leased.renewal()
        return renew and QueueRenewal(*self._queue, self._length, renew)

    def look(self, there: Attendance | None = None) -> bool:
        self.looked = time.monotonic()
        try:
            self._leased.renew_and_return(there)
            self._note_renewal()
        except QueueDoesNotExistError:
            self._is_gone = True
        except BrokerUnavailable:
            return False  # the next look tries again
        except PressureError:
            pass
        return True

    def _note_renewal(self) -> None:
        """Tell the log when the lease had run out before it was renewed."""
        late = self.looked - self._renewed - self._length / 1000
        self._renewed = self.looked
        if late > 0 and self._leased.has_deliveries and not is_renewed_by_starter:
            import logging  # few programs need it from here

            _log = logging.getLogger("pressure_mp")
            _log.warning(
                "the lease of this process in queue %r had run out for %.1f s when it was renewed: "
                "processes that cannot see that this one lives may have what it had taken. A call "
                "kept Python's lock, or the process was stopped, or the broker did not answer. "
                "State a longer lease=, or have worker processes make such calls",
                self._queue[0],
                late,
            )

    def find_lost(self, others: dict[str, int], now: int) -> list[tuple[str, int]]:
        """Return the other processes that are no longer there, and the end of each one's lease."""
        return [
            (one, until) for one, until in self._in_turn(others) if is_lost(state(one), until, now)
        ]

    def _in_turn(self, others: dict[str, int]) -> list[tuple[str, int]]:
        """Return the processes to look at. Of many on this host these are some at each look, and
        all whose pid does not exist. Else many processes would do nothing but look at each
        other."""
        owners = list(others.items())
        if len(owners) <= _AT_ONE_LOOK:
            return owners
        first = self._looked_at % len(owners)
        self._looked_at = first + _AT_ONE_LOOK
        turned = owners[first:] + owners[:first]
        rest = [one for one in turned[_AT_ONE_LOOK:] if not is_there(one[0])]
        return turned[:_AT_ONE_LOOK] + rest

    def run_now(self, operation: Operation[T]) -> T:
        """Run an operation of a look: without waiting for a broker that is away or silent. The next
        look tries again; this one must not keep other queues waiting."""
        options = self._options
        if options is None:
            options = Options(reconnect=0, until=time.monotonic() + self.patience)
        return self.run_within(options, operation)

    def run_within(self, options: Options, operation: Operation[T]) -> T:
        options = options._replace(lease=self._length)
        return drive(operation, self.engine.bind(*self._queue, options).session())

    def requeue_in_memory(self) -> None:
        """Requeue what ended processes of this host have in flight in shared memory."""
        if not self._queue[0].startswith(ANONYMOUS):
            return
        binding = self.engine.bind(*self._queue, Options(lease=self._length))
        if is_local(binding):
            binding.requeue_lost()

    def try_now(self, operation: Operation[T]) -> T:
        """Run an operation of one call, at once; for the shortest time if the broker is away."""
        binding = self.engine.bind(*self._queue, Options(lease=self._length))
        return drive(ending(operation, ONE_TRY), binding.session())

    # The end

    def leave(self) -> bool:
        if not (self._doubtful or self._leased.has_something):
            return True
        try:
            return at_exit.say(self.engine, self._say_farewell)
        except PressureError:
            return True  # the queue no longer exists, or not for this process
        finally:
            self._options = None

    def _say_farewell(self, options: Options) -> None:
        self._options = options
        self._leased.say_farewell()


def _caller() -> object:
    """Return the asyncio task that calls, else the thread."""
    asyncio = sys.modules.get("asyncio")  # it is not loaded only for this
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return asyncio.current_task() or threading.get_ident()
    return threading.get_ident()


Kind = TypeVar("Kind", bound=LeasedItems)

_lock = threading.RLock()
_all: weakref.WeakValueDictionary[tuple[int, str, str], Any] = weakref.WeakValueDictionary()


def find(
    make: Callable[[Engine, str, str], Kind],
    engine: Engine,
    name: str,
    discipline: str,
    length: int,
) -> Kind:
    """Return the object for what this process has in the queue of that name, with a lease of so
    many milliseconds or more; does no I/O."""
    with _lock:  # a signal handler may find it in the midst of this
        key = id(engine), name, discipline
        found: Kind | None = _all.get(key)
        if found is None:
            found = _all.setdefault(key, make(engine, name, discipline))
    found.lease.want(length)
    return found


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for leased in list(_all.values()):
        leased.lease.reset()
        leased.reset()


lifecycle.register("forget leases", _after_fork_in_child)
