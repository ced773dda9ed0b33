"""How long an anonymous queue lives: until the last process that uses it has ended.

Each process that uses one is noted with the queue, and the queue with the process's host. A
process that ends takes its own note away, and those of processes of its host that were killed;
so does the first use of a broker by any program on that host. A process none of whose handles is
left takes its note away at once: by ``close()``, or in a thread when the last one is garbage.

Only a process of the same boot and the same pid namespace is ever judged dead, since only of these
can one know.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from . import endings
from .drivers import drive
from .effects import Operation, T
from .engines.base import DEFAULTS, Engine, Options, QueueKey
from .exceptions import BrokerUnavailable, PressureError, QueueDoesNotExistError
from .processes import host, state, user

#: Seconds for which dropped queues are collected, to be dealt with together.
_GATHER = 0.05
#: How many of them of one broker at a time, and the seconds that the broker has for these.
_LOT = 100
_PATIENCE = 2.0

#: A queue of an engine.
_Key = tuple[int, str]


class Membership(Protocol):
    """What the operations of every discipline have for anonymous queues."""

    name: str
    discipline: str

    def enlist(self, user: str) -> Operation[None]: ...

    def users(self) -> Operation[list[str]]: ...

    def dismiss(self, users: list[str]) -> Operation[int]: ...


class _Use:
    """This process's use of one anonymous queue."""

    def __init__(self, engine: Engine, operations: Membership) -> None:
        self.engine = engine
        self.operations = operations
        self.handles = 0
        #: A handle was pickled, or a child forked: this process cannot tell who has it.
        self.escaped = False

    @property
    def is_over(self) -> bool:
        """Whether no handle is left anywhere that this process could know of."""
        return not self.handles and not self.escaped

    @property
    def queue(self) -> QueueKey:
        return self.operations.name, self.operations.discipline

    def run(self, operation: Operation[T], options: Options) -> T:
        return drive(operation, self.engine.bind(*self.queue, options).session())


_lock = threading.RLock()
_uses: dict[_Key, _Use] = {}
_swept: weakref.WeakSet[Any] = weakref.WeakSet()
#: One entry for each handle that became garbage.
_dropped: deque[_Key] = deque()
#: Queues that no handle refers to, and whose broker did not answer.
_overdue: set[_Key] = set()
#: Locked by the thread that clears up, as long as there is one.
_is_clearing = threading.Lock()
#: Locked while it does, and what it has in hand.
_clearing = threading.Lock()
_in_hand: list[_Use] = []


def adopt(handle: object, engine: Engine, operations: Membership) -> Callable[[], None]:
    """Count ``handle`` as one that uses the queue; the process was noted as a user.

    The answer is called to count it no longer; that happens by itself when the handle is
    garbage. Then, or at the process's end, the process is taken off the queue's users.
    """
    key = (id(engine), operations.name)
    with _lock:
        use = _uses.setdefault(key, _Use(engine, operations))
        use.handles += 1
    # A negative priority: after this process's own children were waited for.
    endings.call_at_end(_leave, priority=-100)
    finalizer = weakref.finalize(handle, _drop, key)
    finalizer.atexit = False

    def release() -> None:
        if finalizer.detach():
            _release(key)

    return release


def note(engine: Engine, operations: Membership, options: Options) -> str:
    """Note the queue with this host, before the queue is made; answers this process's user id."""
    engine.remember(host(), operations.name, operations.discipline, options)
    return user()


def escape(name: str, engine: Engine) -> None:
    """A handle leaves the process: the queue stays until the process ends."""
    use = _uses.get((id(engine), name))
    if use:
        use.escaped = True


def sweep(engine: Engine, make: Callable[[str, str], Membership], options: Options) -> None:
    """Once for each engine and process: clear what killed processes of this host left behind.

    It may be the first word with a broker: ``options`` says how long that is tried to reach.
    """
    with _lock:
        if engine in _swept:
            return
        _swept.add(engine)
    try:
        noted = engine.remembered(host(), options)
    except BaseException:
        _swept.discard(engine)
        raise
    for name, discipline in noted:
        use = _Use(engine, make(name, discipline))
        try:
            is_gone = _is_gone_without(use, [], options)
        except PressureError:
            continue
        if is_gone:
            engine.forget(host(), [use.queue], options)


def _release(key: _Key) -> None:
    """A handle was closed."""
    with _lock:
        use = _uses.get(key)
        if use is None:
            return  # noted by the parent of this process
        use.handles -= 1
        if not use.is_over:
            return
        del _uses[key]
    try:
        _dismiss(use.engine, [use], DEFAULTS)
    except PressureError:
        pass  # left to the next sweep


def _drop(key: _Key) -> None:
    """A handle is garbage. A finalizer may run anywhere, also inside a call to the broker and while
    the thread it runs in has any lock: it takes a note, and asks for no lock but in passing.

    So the thread is none of ``threading``'s, whose start waits for a lock.
    """
    _dropped.append(key)
    if _is_clearing.acquire(blocking=False):
        try:
            _thread.start_new_thread(_clear, ())
        except RuntimeError:  # the interpreter is ending, or there may be no more threads
            _is_clearing.release()


def _clear() -> None:
    """What the thread does: dismiss this process from the queues whose handles are garbage."""
    while True:
        try:
            time.sleep(_GATHER)
            with _clearing:
                _dismiss_dropped()
        finally:
            _is_clearing.release()
        # What is noted from here on starts another thread, what was noted before it is seen.
        if not _dropped or not _is_clearing.acquire(blocking=False):
            return


def _dismiss_dropped() -> None:
    with _lock:
        _in_hand[:] = [_uses.pop(key) for key in _settle_dropped()]
    for engine, uses in _by_engine(_in_hand):
        try:
            for first in range(0, len(uses), _LOT):
                options = Options(until=time.monotonic() + _PATIENCE)
                _dismiss(engine, uses[first : first + _LOT], options)
        except PressureError:  # the process's end tries again, or the next thread
            with _lock:
                for use in uses:
                    key = id(engine), use.operations.name
                    _uses.setdefault(key, use)
                    _overdue.add(key)
    _in_hand.clear()


def _settle_dropped() -> list[_Key]:
    """Count the handles that are garbage; the queues that no handle refers to any more."""
    ended = set(_overdue)
    _overdue.clear()
    while _dropped:
        key = _dropped.popleft()
        if key in _uses:  # else it was noted by the parent of this process
            _uses[key].handles -= 1
            ended.add(key)
    return [key for key in ended if key in _uses and _uses[key].is_over]


def _dismiss(engine: Engine, uses: list[_Use], options: Options) -> None:
    """Take this process off the users of queues of one broker, and the dead ones of this host.

    Raises BrokerUnavailable. What else fails is left to the next sweep.
    """
    gone = []
    for use in uses:
        try:
            if _is_gone_without(use, [user()], options):
                gone.append(use.queue)
        except BrokerUnavailable:
            raise
        except PressureError:
            pass
    engine.leave([use.queue for use in uses], options)
    engine.forget(host(), gone, options)


def _is_gone_without(use: _Use, users: list[str], options: Options) -> bool:
    """Take off ``users`` and, if there are others, the dead ones of this host; whether that were
    all, and the queue is gone."""
    operations = use.operations
    try:
        if users and not use.run(operations.dismiss(users), options):
            return True
        others = use.run(operations.users(), options)
        dead = [other for other in others if state(other) == "dead"]
        return bool(dead) and not use.run(operations.dismiss(dead), options)
    except QueueDoesNotExistError:
        return True


def _by_engine(uses: Iterable[_Use]) -> list[tuple[Engine, list[_Use]]]:
    found: dict[int, list[_Use]] = {}
    for use in uses:
        found.setdefault(id(use.engine), []).append(use)
    return [(each[0].engine, each) for each in found.values()]


def _leave() -> None:
    has_answer = endings.enter(_clearing, _PATIENCE)
    left = [*_uses.values(), *([] if has_answer else _in_hand)]
    _uses.clear()
    for engine, uses in _by_engine(left):
        why = "did not answer"
        try:
            if endings.say(engine, partial(_dismiss, engine, uses)):
                continue
        except PressureError as error:
            why = f"refused a word ({error})"
        endings.tell(
            f"the broker at {engine.address.url} {why} when this process ended: its note on "
            f"{len(uses)} anonymous queues stays there until the next program on this host uses "
            "that broker"
        )


def _before_fork() -> None:
    with _lock:
        _overdue.update(_settle_dropped())
        for use in _uses.values():
            use.escaped = use.escaped or use.handles > 0


def _after_fork_in_child() -> None:
    global _lock, _is_clearing, _clearing
    _lock, _is_clearing, _clearing = threading.RLock(), threading.Lock(), threading.Lock()
    _uses.clear()
    _dropped.clear()
    _overdue.clear()
    _in_hand.clear()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
