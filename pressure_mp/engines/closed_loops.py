"""Give back what operations hold whose event loop is closed while they wait: a thread does this.

``asyncio.run`` cancels the remaining tasks at its end, and the cancelled operations give it back. A
loop that is only closed leaves tasks that never run again, and that are collected as garbage later.
"""

from __future__ import annotations

import _thread
import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

#: Seconds until a call that a loop never makes: the loop drops it when it is closed.
_NEVER = 1e8


class LoopOperation(Protocol):
    """An operation that waits in an event loop."""

    def leave_behind(self) -> None:
        """Have what the operation holds given back: its loop runs no more."""


class _Call:
    """An object that a loop references until it is closed."""

    def __call__(self) -> None:
        """Do nothing: the call comes too late."""


class OwnLoop:
    """The event loop that runs, and the operations that wait in it: ``leave_behind`` is called for
    each when the loop is closed."""

    def __init__(self) -> None:
        loop, call = asyncio.get_running_loop(), _Call()
        self._loop = weakref.ref(loop)
        self._waiting: dict[LoopOperation, None] = {}
        #: Whether this is a forked child: the waiting operations are the parent's.
        self.is_parents = False
        weakref.finalize(call, _leave_all, self._waiting).atexit = False
        loop.call_later(_NEVER, call)

    @property
    def is_running(self) -> bool:
        """Whether the caller runs in this loop; the garbage collector may run it elsewhere."""
        try:
            return asyncio.get_running_loop() is self._loop()
        except RuntimeError:
            return False

    def note(self, operation: LoopOperation) -> None:
        """Note that an operation waits, or is about to."""
        self._waiting[operation] = None

    def forget(self, operation: LoopOperation) -> None:
        self._waiting.pop(operation, None)

    def after_fork(self) -> None:
        """Forget the parent's operations in a forked child."""
        self.is_parents = True
        self._waiting.clear()


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, OwnLoop] = weakref.WeakKeyDictionary()


def own_loop() -> OwnLoop:
    """Return the object of the running event loop, which many operations share."""
    loop = asyncio.get_running_loop()
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = OwnLoop()
    return found


def _leave_all(waiting: dict[LoopOperation, None]) -> None:
    for operation in list(waiting):
        operation.leave_behind()


_left: deque[Callable[[], None]] = deque()


def give_back(by: Callable[[], None]) -> None:
    """Call ``by`` in a thread. The caller may be the garbage collector, at any point: so the thread
    is none of ``threading``'s, whose start waits for a lock."""
    _left.append(by)
    try:
        _thread.start_new_thread(_give_back_all, ())
    except RuntimeError:  # the interpreter is ending: the end of a lease gives it back
        pass


def _give_back_all() -> None:
    while _left:
        try:
            by = _left.popleft()
        except IndexError:  # another thread was faster
            return
        by()
