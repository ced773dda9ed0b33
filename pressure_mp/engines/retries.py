"""Retries of one call after a broken connection: for how long, and with which pauses."""

from __future__ import annotations

import logging
import random
import time
from typing import Protocol

from ..exceptions import WrongServerError
from .contract.session import ONE_TRY, SHORTEST_TRY, Options

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
#: Seconds without a broker after which it is logged.
_QUIET = 1.0
#: A program that seeds ``random`` has the same numbers whether a connection breaks or not.
_random = random.SystemRandom()
#: Seconds after the end of a call for the reply, if it was sent just before that.
GRACE = 1.0

_log = logging.getLogger("pressure_mp")


def patience(end: float | None, silence: float | None, until: float | None = None) -> float | None:
    """Return for how many seconds to wait for a reply, in a call that ends at ``end``, from a
    server that is given up after ``silence`` seconds, and never after ``until``; None for no
    limit."""
    limits = [] if silence is None else [silence]
    now = time.monotonic()
    if end is not None:
        limits.append(max(end - now, 0.0) + GRACE)
    if until is not None:
        limits.append(max(until - now, 0.0))
    return min(limits, default=None)


class Connections(Protocol):
    """The connections over which a call is made."""

    @property
    def was_connected(self) -> bool:
        """Whether there ever was a connection."""

    async def sleep(self, seconds: float) -> None: ...


class Retries:
    """The retries of a call after its first failure: with growing pauses, until the call's time is
    over.

    The call's time ends ``reconnect`` seconds after the failure began: after the last sign of life
    of a call that was sent, after the first try of a call that was not sent. Without
    ``must_finish`` it also ends at ``end``, on the monotonic clock, but not before ``SHORTEST_TRY``
    seconds are over; with ``must_finish`` an ``end`` shortens it only if it is ``ONE_TRY``.
    """

    def __init__(
        self, pool: Connections, options: Options, end: float | None, tried: float | None
    ) -> None:
        """``tried`` is the time of the first try, if that is not now."""
        self._pool = pool
        self._options = options
        self._end = end
        self._tried = time.monotonic() if tried is None else tried
        self._began: float | None = None
        self._pause = 0.0
        self._was_told = False
        #: Whether the call is tried for longer than the caller would wait: the server may have done
        #: it, and its reply did not come; or it acknowledges a task.
        self.must_finish = False

    @property
    def until(self) -> float | None:
        """The time at which the call's time is over; None for never, before the first failure."""
        return self._end if self._began is None else self._until(self._began)

    def _until(self, began: float) -> float:
        if self._end == ONE_TRY:
            return self._end
        ends = [began + self._options.reconnect]
        if self._end is not None and not self.must_finish:
            ends.append(max(self._end, began + SHORTEST_TRY))
        if self._options.until is not None:
            ends.append(self._options.until)
        return min(ends)

    async def pause(self, error: OSError) -> bool:
        """Wait before the next try; False if there is no time for one."""
        now = time.monotonic()
        if self._began is None:
            self._began = now if self.must_finish else self._tried
        left = self._until(self._began) - now
        if left <= 0 or (isinstance(error, WrongServerError) and not self._pool.was_connected):
            return False
        if now - self._began >= _QUIET:
            self.tell(error, left)
        await self._pool.sleep(min(self._pause * _random.uniform(0.5, 1.0), left))
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        return True

    def tell(self, error: OSError, left: float) -> None:
        """Log, once, why it takes so long, and how long it may take."""
        if not self._was_told:
            self._was_told = True
            _log.warning("trying for another %.0f s to reach the broker: %s", left, error)
