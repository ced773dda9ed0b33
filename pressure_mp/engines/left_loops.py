"""Event loops that are closed while operations wait: what these hold is given back by a thread.

``asyncio.run`` cancels what is left at its end, which gives it back. Who only closes a loop leaves
tasks that never run again; they are garbage some time later.
"""

from __future__ import annotations

import _thread
import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

#: Seconds until a call that a loop never makes: it is let go of when the loop is closed.
_NEVER = 1e8


class Waiting(Protocol):
    """An operation that waits."""

    def leave_behind(self) -> None:
        """Its loop runs no more: have what it holds given back."""


class _Call:
    """What a loop holds on to until it is closed."""

    def __call__(self) -> None:
        """It comes too late for anything."""


class OwnLoop:
    """The event loop that runs, and who waits in it: when it is closed, they are left behind."""

    def __init__(self) -> None:
        loop, call = asyncio.get_running_loop(), _Call()
        self._loop = weakref.ref(loop)
        self._waiting: dict[Waiting, None] = {}
        #: Whether this is a forked child: what waits there is the parent's.
        self.is_parents = False
        weakref.finalize(call, _leave_all, self._waiting).atexit = False
        loop.call_later(_NEVER, call)

    @property
    def is_running(self) -> bool:
        """Whether the caller runs in this loop; not so is what is cleared away as garbage."""
        try:
            return asyncio.get_running_loop() is self._loop()
        except RuntimeError:
            return False

    def note(self, one: Waiting) -> None:
        """It waits, or is about to."""
        self._waiting[one] = None

    def forget(self, one: Waiting) -> None:
        """It is over."""
        self._waiting.pop(one, None)

    def after_fork(self) -> None:
        """In the child."""
        self.is_parents = True
        self._waiting.clear()


def _leave_all(waiting: dict[Waiting, None]) -> None:
    for one in list(waiting):
        one.leave_behind()


_left: deque[Callable[[], None]] = deque()


def give_back(by: Callable[[], None]) -> None:
    """Have a thread do it. This may be called anywhere, as garbage is collected: so the thread is
    none of ``threading``'s, whose start waits for a lock."""
    _left.append(by)
    try:
        _thread.start_new_thread(_give_back_all, ())
    except RuntimeError:  # the interpreter is ending: a lease ends it
        pass


def _give_back_all() -> None:
    while _left:
        try:
            by = _left.popleft()
        except IndexError:  # another thread was faster
            return
        by()
