"""The life of an anonymous queue: it ends when the last process that uses it has ended.

Each process that uses a queue is noted with the queue, and the queue with the process's host. A
process that ends removes its own note, and the notes of killed processes of its host; so does the
first use of a broker by any program on that host. A process without any handle of a queue removes
its note at once: in ``close()``, or in a thread when the last handle is garbage.

Only a process of the same boot and the same pid namespace is ever judged dead, since no other can
be known to be.
"""

from __future__ import annotations

import _thread
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import lifecycle
from ..drivers import drive
from ..effects import On, Operation
from ..engines.contract.hosts import (
    Forget,
    GetRemembered,
    GetRememberedReply,
    Leave,
    QueueKey,
    Remember,
)
from ..engines.contract.session import DEFAULTS, Engine, Options
from ..exceptions import BrokerUnavailable, PressureError, QueueDoesNotExistError
from ..identity.processes import host, state, user
from ..operations.queues import QueueOperations
from . import at_exit

if TYPE_CHECKING:
    from ..engines.contract.requests import HostRequest

#: Seconds to collect dropped queues, so that one call handles many.
_GATHER = 0.05
#: How many queues of one broker are dismissed together, and the seconds for that: so few that the
#: time suffices where other threads keep Python's lock.
_LOT = 5
_PATIENCE = 2.0
#: How often the thread tries: a machine that stands still for so long is no broker that is away.
_TRIES = 2

#: A queue of an engine.
_Key = tuple[int, str]


class _Use:
    """This process's use of one anonymous queue."""

    def __init__(self, engine: Engine, operations: QueueOperations) -> None:
        self.engine = engine
        self.operations = operations
        #: The holds of handles, by id. To remove one twice changes nothing.
        self.holds: set[int] = set()
        #: A handle was pickled, or a child forked: this process cannot tell which process has it.
        self.escaped = False

    @property
    def is_over(self) -> bool:
        """Whether no handle is left anywhere that this process could know of."""
        return not self.holds and not self.escaped

    @property
    def key(self) -> _Key:
        return id(self.engine), self.operations.name

    @property
    def queue(self) -> QueueKey:
        return self.operations.name, self.operations.discipline

    def on(self, operation: Operation[Any], options: Options) -> On:
        """Make the effect that runs an operation on the queue."""
        return On(self.engine.bind(*self.queue, options), operation)


_lock = threading.RLock()
_uses: dict[_Key, _Use] = {}
_swept: weakref.WeakSet[Any] = weakref.WeakSet()
#: Queues of handles that became garbage.
_dropped: deque[_Key] = deque()
#: Queues that no handle refers to, and whose broker did not answer.
_overdue: set[_Key] = set()
#: Whether there is a thread that clears up.
_is_clearing = False
#: Locked while it does, and the queues that it has in hand.
_clearing = threading.Lock()
_in_hand: set[_Use] = set()


class Hold:
    """The hold of one handle on its queue; released by itself when the handle is garbage."""

    _use: _Use | None = None

    def __init__(self, use: _Use) -> None:
        self._use = use
        use.holds.add(id(self))

    def release(self) -> Operation[None]:
        """Release the hold of a closed handle: with the last one, the process is no longer a user
        of the queue."""
        use = self._use
        assert use is not None
        try:
            use.holds.discard(id(self))
            if use.is_over and _uses.get(use.key) is use:
                try:
                    yield from _dismiss(use.engine, [use], DEFAULTS)
                except PressureError:
                    pass  # left to the next sweep
                _uses.pop(use.key, None)
        except BaseException:
            self.__del__()
            raise

    def cancel(self) -> None:
        """Release the hold of a handle that does not use the queue, of which nothing was noted."""
        use = self._use
        assert use is not None
        use.holds.discard(id(self))
        if use.is_over:
            _uses.pop(use.key, None)

    def __del__(self) -> None:
        use = self._use
        if use is None or not _uses:  # all were left; at the interpreter's end there is no table
            return
        use.holds.discard(id(self))
        if use.is_over and _uses.get(use.key) is use:  # else it is the parent's, or was left
            _drop(use.key)


def adopt(engine: Engine, operations: QueueOperations) -> Hold:
    """Count one more handle that uses the queue, before anything of it is noted at the broker.

    When no handle is left, or at the process's end, the process is no longer a user of the queue.
    """
    lifecycle.begin_use()
    use = _Use(engine, operations)
    return Hold(_uses.setdefault(use.key, use))


def note(engine: Engine, operations: QueueOperations, options: Options) -> Operation[None]:
    """Note the queue with this host, before the queue is made."""
    yield tell(engine, Remember((operations.name, operations.discipline)), options)


def forget(engine: Engine, queues: Sequence[QueueKey], options: Options) -> Operation[None]:
    """Remove the notes on queues that are gone."""
    yield tell(engine, Forget(queues), options)


def leave(engine: Engine, queues: Sequence[QueueKey], options: Options) -> Operation[None]:
    """Note that this process no longer uses these queues: nothing is kept for it."""
    yield tell(engine, Leave(queues), options)


def tell(engine: Engine, request: HostRequest, options: Options) -> On:
    """Make the effect that does a request about this host."""
    return On(engine.host(host(), options), _ask(request))


def _ask(request: HostRequest) -> Operation[Any]:
    return (yield request)


def escape(name: str, engine: Engine) -> None:
    """Note that a handle leaves the process: the queue stays until the process ends."""
    use = _uses.get((id(engine), name))
    if use:
        use.escaped = True


def sweep(
    engine: Engine, make: Callable[[str, str], QueueOperations], options: Options
) -> Operation[None]:
    """Remove what killed processes of this host left behind, once for each engine and process.

    This may be the first call to a broker: ``options`` says for how long that is tried.
    """
    if engine in _swept:
        return
    try:
        _swept.add(engine)  # two threads may both do it: that changes nothing
        yield from _clear_after_the_killed(engine, make, options)
    except BaseException:
        _swept.discard(engine)
        raise


def _clear_after_the_killed(
    engine: Engine, make: Callable[[str, str], QueueOperations], options: Options
) -> Operation[None]:
    remembered: GetRememberedReply
    remembered = yield tell(engine, GetRemembered(), options)
    for name, discipline in remembered:
        use = _Use(engine, make(name, discipline))
        try:
            is_gone = yield from _is_gone_without(use, [], options)
        except PressureError:
            continue
        if is_gone:
            yield from forget(engine, [use.queue], options)


def _drop(key: _Key) -> None:
    """Note that no handle refers to the queue. A handle may become garbage anywhere, also inside a
    call to the broker and while its thread has any lock: so this waits for no lock, not even for
    the one in the start of a ``threading.Thread``."""
    global _is_clearing
    _dropped.append(key)
    if not _is_clearing:
        _is_clearing = True
        try:
            _thread.start_new_thread(_clear, ())
        except RuntimeError:  # the interpreter is ending, or there may be no more threads
            _is_clearing = False
        except BaseException:
            _is_clearing = False  # a second thread does no harm
            raise


def _clear() -> None:
    """Run as the thread: dismiss this process from the queues whose handles are garbage."""
    global _is_clearing
    while True:
        try:
            time.sleep(_GATHER)
            with _clearing:
                _dismiss_dropped()
        finally:
            _is_clearing = False
        # A later note starts another thread, an earlier one is seen here.
        if not _dropped or _is_clearing:
            return
        _is_clearing = True


def _dismiss_dropped() -> None:
    with _lock:
        _in_hand.update(_uses.pop(key) for key in _take_dropped())
    try:
        for _ in range(_TRIES):
            for engine, uses in _by_engine(_in_hand):
                with suppress(PressureError):
                    _dismiss_in_lots(engine, uses)
    finally:  # the process's end tries again, or the next thread
        with _lock:
            for use in _in_hand:
                _uses.setdefault(use.key, use)
                _overdue.add(use.key)
            _in_hand.clear()


def _dismiss_in_lots(engine: Engine, uses: list[_Use]) -> None:
    for first in range(0, len(uses), _LOT):
        lot = uses[first : first + _LOT]
        _dismiss_at_once(engine, lot, Options(until=time.monotonic() + _PATIENCE))
        _in_hand.difference_update(lot)


def _take_dropped() -> list[_Key]:
    """Return the queues that no handle refers to any more."""
    ended = set(_overdue)
    _overdue.clear()
    while _dropped:
        ended.add(_dropped.popleft())
    return [key for key in ended if key in _uses and _uses[key].is_over]


def _dismiss_at_once(engine: Engine, uses: list[_Use], options: Options) -> None:
    drive(_dismiss(engine, uses, options), engine.host(host(), options).session())


def _dismiss(engine: Engine, uses: list[_Use], options: Options) -> Operation[None]:
    """Remove this process from the users of queues of one broker, and the dead processes of this
    host.

    Raises BrokerUnavailable. Queues for which it fails otherwise are left to the next sweep.
    """
    gone = []
    for use in uses:
        try:
            if (yield from _is_gone_without(use, [user()], options)):
                gone.append(use.queue)
        except BrokerUnavailable:
            raise
        except PressureError:
            pass
    yield from leave(engine, [use.queue for use in uses], options)
    yield from forget(engine, gone, options)


def _is_gone_without(use: _Use, users: list[str], options: Options) -> Operation[bool]:
    """Remove ``users``, and, if there are others, the dead processes of this host; return whether
    no user was left, so that the queue is gone."""
    operations = use.operations
    try:
        if users and not (yield use.on(operations.dismiss(users), options)):
            return True
        others = yield use.on(operations.users(), options)
        dead = [other for other in others if state(other) == "dead"]
        return bool(dead) and not (yield use.on(operations.dismiss(dead), options))
    except QueueDoesNotExistError:
        return True


def _by_engine(uses: Iterable[_Use]) -> list[tuple[Engine, list[_Use]]]:
    found: dict[int, list[_Use]] = {}
    for use in uses:
        found.setdefault(id(use.engine), []).append(use)
    return [(each[0].engine, each) for each in found.values()]


def _leave() -> None:
    has_answer = at_exit.enter(_clearing, _PATIENCE)
    with _lock:  # the thread may be about to put back what it has in hand
        left = [*_uses.values(), *([] if has_answer else _in_hand)]
        _uses.clear()
    for engine, uses in _by_engine(left):
        why = "did not answer"
        try:
            if at_exit.say(engine, partial(_dismiss_at_once, engine, uses)):
                continue
        except PressureError as error:
            why = f"refused a word ({error})"
        at_exit.tell(
            f"the broker at {engine.address.url} {why} when this process ended: its note on "
            f"{len(uses)} anonymous queues stays there until the next program on this host uses "
            "that broker"
        )


def _before_fork() -> None:
    for use in list(_uses.values()):
        use.escaped = use.escaped or bool(use.holds)


def _after_fork_in_child() -> None:
    global _lock, _is_clearing, _clearing
    _lock, _is_clearing, _clearing = threading.RLock(), False, threading.Lock()
    _uses.clear()
    _dropped.clear()
    _overdue.clear()
    _in_hand.clear()


lifecycle.register("count the child", _before_fork)
lifecycle.register("forget users of anonymous queues", _after_fork_in_child)
lifecycle.register("leave anonymous queues", _leave)
