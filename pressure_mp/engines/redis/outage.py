"""A broken connection: how long one call goes on trying, and how often."""

from __future__ import annotations

import random
import time

from ...exceptions import WrongServerError
from ..contract.session import ONE_TRY, SHORTEST_TRY, Options
from .errors import Moved
from .pool import Pool

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
#: How often a call is sent on at once from one node of a cluster to another.
_MOST_MOVES = 16
#: Seconds without a broker after which the log is told.
_QUIET = 1.0
#: A program that seeds ``random`` has the same numbers whether a connection breaks or not.
_random = random.SystemRandom()
#: Seconds after a call's end for the reply to a call that was made just before it.
GRACE = 1.0


def patience(end: float | None, silence: float | None, until: float | None = None) -> float | None:
    """For how many seconds a reply is waited for, in a call that ends at ``end``, from a server
    that is given up after ``silence`` seconds; None for no limit. No reply is waited for after
    ``until``."""
    limits = [] if silence is None else [silence]
    now = time.monotonic()
    if end is not None:
        limits.append(max(end - now, 0.0) + GRACE)
    if until is not None:
        limits.append(max(until - now, 0.0))
    return min(limits, default=None)


class Outage:
    """From the first failure of a call on: pauses that grow, until the call's time is up.

    The call's time ends ``reconnect`` seconds after the failure began: after the last sign of life
    of a call that was sent, after the first try of one that was not. One that need not be settled
    ends at ``end`` too, which is on the monotonic clock, but not before ``SHORTEST_TRY`` seconds
    are over; what must be is tried whatever ``end`` is, but for ``ONE_TRY``.
    """

    def __init__(
        self, pool: Pool, options: Options, end: float | None = None, tried: float | None = None
    ) -> None:
        """``tried`` is when the call was first tried, if that is not now."""
        self._pool = pool
        self._options = options
        self._end = end
        self._tried = time.monotonic() if tried is None else tried
        self._began: float | None = None
        self._pause = 0.0
        self._moves = 0
        #: Whether the call is tried longer than the caller would wait: the server may have it, and
        #: its reply was not heard; or it acknowledges a task.
        self.must_finish = False

    @property
    def end(self) -> float | None:
        """Until when a reply is waited for; None for no limit."""
        return None if self._end is None else self._until()

    def _until(self) -> float:
        """When the call's time is up."""
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
