"""How long an anonymous queue lives: until the last process that uses it has ended.

Each process that uses one is noted with the queue, and the queue with the process's host. A
process that ends takes its own note away, and those of processes of its host that were killed;
so does the first use of a broker by any program on that host. Only a process of the same boot
and the same pid namespace is ever judged dead, since only of these can one know.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .drivers import drive
from .effects import Operation, T
from .endings import call_at_end
from .engines.base import Engine
from .exceptions import PressureError, QueueDoesNotExistError
from .processes import host, state, user


class Membership(Protocol):
    """What the operations of every discipline have for anonymous queues."""

    name: str
    discipline: str

    def enlist(self, user: str) -> Operation[None]: ...

    def users(self) -> Operation[list[str]]: ...

    def dismiss(self, users: list[str]) -> Operation[int]: ...


@dataclass
class _Use:
    """This process's use of one anonymous queue."""

    engine: Engine
    operations: Membership
    handles: int = 0
    escaped: bool = (
        False  # a handle was pickled, or a child forked: this process cannot tell who has it
    )

    def run(self, operation: Operation[T]) -> T:
        binding = self.engine.bind(self.operations.name, self.operations.discipline)
        return drive(operation, binding.session())


_lock = threading.RLock()
_uses: dict[tuple[int, str], _Use] = {}
_swept: weakref.WeakSet[Any] = weakref.WeakSet()
_dropped: deque[tuple[int, str]] = deque()


def adopt(handle: object, engine: Engine, operations: Membership) -> Callable[[], None]:
    """Count ``handle`` as one that uses the queue; the process was noted as a user.

    The answer is called to count it no longer; that happens by itself when the handle is
    garbage. Then, or at the process's end, the process is taken off the queue's users.
    """
    _settle_dropped()
    key = (id(engine), operations.name)
    with _lock:
        use = _uses.setdefault(key, _Use(engine, operations))
        use.handles += 1
    # A negative priority: after this process's own children were waited for.
    call_at_end(_leave, priority=-100)
    # A finalizer may run anywhere, also inside a call to the broker: it only takes a note.
    finalizer = weakref.finalize(handle, _dropped.append, key)
    finalizer.atexit = False

    def release() -> None:
        if finalizer.detach():
            _release(key)

    return release


def note(engine: Engine, operations: Membership) -> str:
    """Note the queue with this host, before the queue is made; answers this process's user id."""
    engine.remember(host(), operations.name, operations.discipline)
    return user()


def escape(name: str, engine: Engine) -> None:
    """A handle leaves the process: the queue stays until the process ends."""
    use = _uses.get((id(engine), name))
    if use:
        use.escaped = True


def sweep(engine: Engine, make: Callable[[str, str], Membership]) -> None:
    """Once for each engine and process: clear what killed processes of this host left behind."""
    with _lock:
        if engine in _swept:
            return
        _swept.add(engine)
    for name, discipline in engine.remembered(host()):
        _dismiss(_Use(engine, make(name, discipline)), [])


def _settle_dropped() -> None:
    while _dropped:
        _release(_dropped.popleft())


def _release(key: tuple[int, str]) -> None:
    with _lock:
        use = _uses.get(key)
        if use is None:
            return  # noted by the parent of this process
        use.handles -= 1
        if use.handles or use.escaped:
            return
        del _uses[key]
    _dismiss(use, [user()])


def _dismiss(use: _Use, users: list[str]) -> None:
    """Take off ``users`` and the dead ones of this host. What fails is left to the next sweep."""
    try:
        others = use.run(use.operations.users())
        gone = users + [other for other in others if state(other) == "dead"]
        left = use.run(use.operations.dismiss(gone)) if gone else 1
        if user() in users:
            use.engine.leave(use.operations.name, use.operations.discipline)
    except QueueDoesNotExistError:
        left = 0
    except PressureError:
        return
    if not left:
        use.engine.forget(host(), use.operations.name, use.operations.discipline)


def _leave() -> None:
    while _uses:
        _, use = _uses.popitem()
        _dismiss(use, [user()])


def _before_fork() -> None:
    for use in list(_uses.values()):
        use.escaped = True


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _uses.clear()
    _dropped.clear()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
