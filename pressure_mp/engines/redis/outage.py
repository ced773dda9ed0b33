"""Retries of one call after a broken connection: for how long, and with which pauses."""

from __future__ import annotations

import random
import time

from ...exceptions import WrongServerError
from ..contract.session import ONE_TRY, SHORTEST_TRY, Options
from .errors import Moved
from .pool import Pool

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
#: The most times that one call is sent on at once from one node of a cluster to another.
_MOST_MOVES = 16
#: Seconds without a broker after which it is logged.
_QUIET = 1.0
#: A program that seeds ``random`` has the same numbers whether a connection breaks or not.
_random = random.SystemRandom()
#: Seconds after the end of a call for the reply, if it was sent just before that.
GRACE = 1.0


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


class Outage:
    """The retries of a call after its first failure: with growing pauses, until the call's time is
    over.

    The call's time ends ``reconnect`` seconds after the failure began: after the last sign of life
    of a call that was sent, after the first try of a call that was not sent. Without
    ``must_finish`` it also ends at ``end``, on the monotonic clock, but not before ``SHORTEST_TRY``
    seconds are over; with ``must_finish`` an ``end`` shortens it only if it is ``ONE_TRY``.
    """

    def __init__(
        self, pool: Pool, options: Options, end: float | None = None, tried: float | None = None
    ) -> None:
        """``tried`` is the time of the first try, if that is not now."""
        self._pool = pool
        self._options = options
        self._end = end
        self._tried = time.monotonic() if tried is None else tried
        self._began: float | None = None
        self._pause = 0.0
        self._moves = 0
        #: Whether the call is tried for longer than the caller would wait: the server may have done
        #: it, and its reply did not come; or it acknowledges a task.
        self.must_finish = False

    @property
    def end(self) -> float | None:
        """The time until which to wait for a reply; None for no limit."""
        return None if self._end is None else self._until()

    def _until(self) -> float:
        """Return the time at which the call's time is over."""
        assert self._began is not None
        if self._end == ONE_TRY:
            return self._end
        ends = [self._began + self._options.reconnect]
        if self._end is not None and not self.must_finish:
            ends.append(max(self._end, self._began + SHORTEST_TRY))
        if self._options.until is not None:
            ends.append(self._options.until)
        return min(ends)

    async def ride_out(self, error: OSError) -> None:
        """Wait before the next try; raise BrokerUnavailable when there is no time for one."""
        if isinstance(error, Moved) and self._moves < _MOST_MOVES:
            self._moves += 1
            return
        now = time.monotonic()
        if self._began is None:
            self._began = now if self.must_finish else self._tried
        until = self._until()
        if now >= until or (isinstance(error, WrongServerError) and not self._pool.was_connected):
            raise self._pool.translate(error) from error
        if now - self._began >= _QUIET:
            self._pool.tell(error, until - now)
        await self._pool.sleep(min(self._pause * _random.uniform(0.5, 1.0), until - now))
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
