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
from typing import NamedTuple, Protocol

from ...exceptions import PressureError
from ..contract.items import TakeBack
from ..contract.session import ONE_TRY
from .blocking import BlockingSession

#: Seconds until a call that a loop never makes: it is let go of when the loop is closed.
_NEVER = 1e8


class Waiting(Protocol):
    """An operation that waits at the server."""

    def leave_behind(self) -> None:
        """Its loop runs no more: have what it holds given back."""


class Left(NamedTuple):
    """What one operation held; ``begin`` gives a session for a thread."""

    begin: Callable[[], BlockingSession]
    ticket: str | None
    taken: TakeBack | None


class _Call:
    """What a loop holds on to until it is closed."""

    def __call__(self) -> None:
        """It comes too late for anything."""


def watch(loop: asyncio.AbstractEventLoop, waiting: dict[Waiting, None]) -> None:
    """When the loop is closed, leave behind those who wait then."""
    call = _Call()
    weakref.finalize(call, _leave_all, waiting).atexit = False
    loop.call_later(_NEVER, call)


def _leave_all(waiting: dict[Waiting, None]) -> None:
    for one in list(waiting):
        one.leave_behind()


_left: deque[Left] = deque()


def give_back(left: Left) -> None:
    """Have a thread do it. This may be called anywhere, as garbage is collected: so the thread is
    none of ``threading``'s, whose start waits for a lock."""
    _left.append(left)
    try:
        _thread.start_new_thread(_give_back_all, ())
    except RuntimeError:  # the interpreter is ending: a lease ends it
        pass


def _give_back_all() -> None:
    while _left:
        try:
            left = _left.popleft()
        except IndexError:  # another thread was faster
            return
        session = left.begin()
        try:
            if left.taken is not None:
                session.call(left.taken, ONE_TRY)
            if left.ticket is not None:
                lease = session.binding.options.lease
                session.script("evict", (left.ticket, lease), ONE_TRY)
        except PressureError:  # no broker to give it back to; there its lease ends it
            pass
        finally:
            session.end()
