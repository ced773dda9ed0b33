"""Detect a silent connection: the server answers over other connections, but something on the way
drops the bytes of this one, and the client sees no end of it.

A call that waits for a reply, and receives nothing for some time, asks the server over a new
connection. If the server answers there, the silent connection is lost, and the call is made again.
If the server does not answer, it is busy or stopped, and the call goes on to wait for the reply.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ...exceptions import PressureError
from ..silence import GRACE, SILENCE
from .address import RedisAddress
from .errors import not_done

#: Seconds until the server is asked again, if it did not answer, or another waiter asks.
PAUSE = 2.0
#: Seconds to connect, and for the answer.
_LIMIT = 5.0
#: A call of a script that no server has. Like a script of this package it waits for a script that
#: runs, and until writing is no longer paused.
_QUESTION = ("EVALSHA", "0" * 40, "0")


class Asked(Protocol):
    """A new connection."""

    async def request(self, *command: Any, timeout: float | None = None) -> Any: ...

    def close(self) -> None: ...


#: Opens a connection to an address; blocks for at most so many seconds.
Open = Callable[[RedisAddress, float], Awaitable[Asked]]


class Health:
    """Keeps, for one server, whether a call of this process is asking it, and when a call sent the
    last question that it answered."""

    def __init__(self) -> None:
        self._is_asking = False
        self._answered = 0.0

    def after_fork(self) -> None:
        """Forget in the child that a call is asking: that call is the parent's."""
        self._is_asking = False

    async def has_answered(self, open: Open, address: RedisAddress, since: float) -> bool:
        """Tell whether the server answered a question sent after ``since``, on the monotonic clock.
        Asks if no other call does: blocks for 5 s to connect and 5 s for the answer."""
        if self._answered <= since and not self._is_asking:
            self._is_asking = True
            try:
                begun = time.monotonic()
                if await _answers(open, address):
                    self._answered = begun
            finally:
                self._is_asking = False
        return self._answered > since


async def _answers(open: Open, address: RedisAddress) -> bool:
    try:
        wire = await open(address, _LIMIT)
    except (OSError, PressureError):
        return False
    try:
        reply = str(await wire.request(*_QUESTION, timeout=_LIMIT))
    except OSError:
        return False
    finally:
        wire.close()
    return reply.startswith("NOSCRIPT") or not not_done(reply, address)


class Timed(Protocol):
    """A connection; see :class:`~.wire.Wire`."""

    async def is_lost(self, since: float) -> bool: ...

    def unsent(self) -> int: ...


class SilenceTimer:
    """Aborts the connection of an event loop that falls silent. It costs a timer in ``SILENCE``
    seconds, however many replies come."""

    def __init__(self, wire: Timed, abort: Callable[[], None], waits: Callable[[], bool]) -> None:
        """``waits`` tells whether a call waits for a reply."""
        self._wire = wire
        self._abort = abort
        self._waits = waits
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Note that bytes came, or that a call waits for a reply from now on."""
        self._since = time.monotonic()
        if self._timer is None and self._asking is None:
            self._check_in(SILENCE)

    def end(self) -> None:
        """Note that no call waits for a reply."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def _check(self) -> None:
        self._timer = None
        if not self._waits():
            return
        left = self._since + SILENCE - time.monotonic()
        if left > 0:
            self._check_in(left)
        else:
            self._asking = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        since, before = self._since, self._wire.unsent()
        try:
            is_lost = await self._wire.is_lost(since)
            if is_lost:
                await asyncio.sleep(GRACE)
                is_lost = self._wire.unsent() >= before
        finally:
            self._asking = None
        if self._since != since or not self._waits():
            if self._waits():
                self._check_in(SILENCE)
        elif is_lost:
            self._abort()
        else:
            self._check_in(PAUSE)
