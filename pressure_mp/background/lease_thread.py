"""The background thread that looks after the leases of this process.

It runs while this process has something in flight, is a producer, or waits in an operation whose
outcome depends on other processes; it ends by itself.
"""

from __future__ import annotations

import threading
import time
from queue import Empty as NothingNew
from queue import SimpleQueue
from typing import Protocol

from .. import interrupts, lifecycle
from ..drivers import drive
from ..engines.contract.brokers import QueueRenewal
from ..engines.contract.items import Attendance
from ..engines.contract.session import Engine, Options
from ..exceptions import BrokerUnavailable, PressureError
from ..operations.brokers import renew_all
from . import at_exit

#: The most seconds between two looks at other processes: a dead process of this host is seen by
#: then.
LOOK = 0.5
#: The most seconds that a look waits for one reply: other brokers wait for their looks.
PATIENCE = 1.0
#: Seconds that an ending process waits for a look that is in progress.
LAST_LOOK = 1.0


class Leased(Protocol):
    """The lease of this process in one queue."""

    engine: Engine
    #: When the last look began, and the seconds that each of its calls may take.
    looked: float
    patience: float

    @property
    def interval(self) -> float:
        """Seconds from one look to the next."""

    @property
    def share(self) -> float:
        """The seconds that silent brokers may delay a look, so that the lease still lasts."""

    @property
    def is_needed(self) -> bool:
        """Tell whether there is anything to renew or to look for."""

    def renewal(self) -> QueueRenewal | None:
        """Return the renewal of the lease, if one call can renew leases of other queues with it."""

    def look(self, there: Attendance | None = None) -> bool:
        """Renew the lease of this process, and requeue the items of ended processes. With ``there``
        the lease was renewed already, and these are the other processes.

        Returns whether the broker answered.
        """

    def leave(self) -> bool:
        """End the lease at once, as the process ends. Returns whether the broker was told; if not,
        others see that this process has ended."""


#: Locked during a look, and by code that no look may run beside.
looking = threading.Lock()

_lock = threading.RLock()
_needed: set[Leased] = set()  # also without a handle, as long as something is in flight
_thread: threading.Thread | None = None
_is_looking = False  # the thread runs, or is about to
#: Has the thread ask the leases again; with True, have it look at once.
_sooner: SimpleQueue[bool] = SimpleQueue()
_pace = LOOK  # seconds from one look to the next, at present
_looks_at: Leased | None = None  # the lease of the look in progress


def keep_looking(leased: Leased) -> None:
    """Have the thread run, and look as often as this queue needs."""
    global _is_looking
    if _is_looking and leased in _needed and leased.interval >= _pace:
        return  # the thread asks the leases again that it finds are not needed
    with _lock:
        _needed.add(leased)
        if _is_looking:
            if leased.interval < _pace:
                _sooner.put(False)
            return
        lifecycle.begin_use()
        thread = threading.Thread(target=_look_around, name="pressure_mp", daemon=True)
        try:
            interrupts.start(thread)
        except RuntimeError:  # the interpreter is ending, and this process's leases with it
            return
        _is_looking = True


def look_now(leased: Leased) -> None:
    """Have the thread look at once; does not wait for that."""
    keep_looking(leased)
    _sooner.put(True)


def _look_around() -> None:
    global _thread, _is_looking, _pace
    me = threading.current_thread()
    while True:
        # They have locks of their own, so they are asked without this module's lock: a thread with
        # a lease's lock may want this one, such as a signal handler in the midst of code under that
        # lock.
        over = {leased for leased in tuple(_needed) if not leased.is_needed}
        with _lock:
            if _thread not in (None, me):
                return
            _needed.difference_update(over)
            needed = set(_needed)
            goes_on = bool(needed or interrupts.abandoned)
            _is_looking = goes_on
            _thread = me if goes_on else None
            _pace = min((leased.interval for leased in needed), default=LOOK)
        for leased in over:
            if leased.is_needed:  # it is again, since it was asked
                keep_looking(leased)
        if not goes_on:
            return
        try:
            if not _sooner.get(timeout=_pace):
                continue
        except NothingNew:
            pass
        interrupts.settle()
        _look_at(needed)


def _look_at(needed: set[Leased]) -> None:
    """Look at each queue, but at one only of a broker that does not answer.

    Where there are several brokers, the silent ones keep the others from their looks for a part of
    the shortest lease, all together.
    """
    global _looks_at
    silent: set[int] = set()
    brokers = len({id(leased.engine) for leased in needed})
    patience = PATIENCE
    if brokers > 1:
        patience = min(patience, min(leased.share for leased in needed) / brokers)
    in_turn = sorted(needed, key=lambda leased: leased.looked)
    there: dict[Leased, Attendance | None] = {}
    for engine in {id(leased.engine): leased.engine for leased in in_turn}.values():
        try:
            there |= _renew_together([one for one in in_turn if one.engine is engine], patience)
        except BrokerUnavailable:
            silent.add(id(engine))
        except PressureError:
            pass  # each renewal reports its own error
    for leased in in_turn:
        if id(leased.engine) in silent:
            continue
        leased.patience = patience
        with looking:
            _looks_at = leased
            if not leased.look(there.get(leased)):
                silent.add(id(leased.engine))
            _looks_at = None


def _renew_together(queues: list[Leased], patience: float) -> dict[Leased, Attendance | None]:
    """Renew the leases of several queues at one broker in one call. Returns, for each queue whose
    lease was renewed, the processes that use it."""
    global _looks_at
    if len(queues) == 1:
        return {}
    with looking:
        _looks_at = queues[0]
        try:
            renewals = {one: found for one in queues if (found := one.renewal()) is not None}
            options = Options(reconnect=0, until=time.monotonic() + patience)
            broker = queues[0].engine.broker(options)
            told = drive(renew_all([*renewals.values()]), broker.session())
        finally:
            _looks_at = None
    return dict(zip(renewals, told, strict=True))


def _leave() -> None:
    looks = _looks_at
    if not at_exit.enter(looking, LAST_LOOK) and looks is not None:
        # A look that is in progress would renew what ends here.
        at_exit.give_up(looks.engine)
    interrupts.settle()
    untold: dict[str, int] = {}
    for leased in list(_needed):
        if not leased.leave():
            url = leased.engine.address.url
            untold[url] = untold.get(url, 0) + 1
    for url, number in untold.items():
        at_exit.tell(
            f"the broker at {url} did not answer when this process ended: what it had in flight "
            f"goes back to {number} queues, and it is no producer of them any more, when others "
            "see that it has ended"
        )


def _after_fork_in_child() -> None:
    global _lock, looking, _sooner, _thread, _is_looking, _looks_at
    _lock, looking, _sooner = threading.RLock(), threading.Lock(), SimpleQueue()
    _thread, _is_looking, _looks_at = None, False, None
    _needed.clear()


lifecycle.register("forget the thread of leases", _after_fork_in_child)
lifecycle.register("end leases", _leave)
