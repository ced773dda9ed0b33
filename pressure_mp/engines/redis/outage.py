"""A broken connection: how long one call goes on trying, and how often."""

from __future__ import annotations

import random
import secrets
import time
from typing import TYPE_CHECKING

from .errors import Moved

if TYPE_CHECKING:
    from .pool import Pool

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
#: How often a call is sent on at once from one node of a cluster to another.
_MOST_MOVES = 16
#: Seconds after a call's end for the reply to a call that was made just before it.
_GRACE = 1.0


class Lane:
    """Calls that the server sees one after the other, numbered for each queue.

    A connection has a lane, and passes it on to the connection that takes its place: so a call
    that is sent again has the same number in the same lane, and the server knows it.
    """

    __slots__ = ("_calls", "id")

    ID_SIZE = 16

    def __init__(self) -> None:
        self.id = secrets.token_hex(self.ID_SIZE // 2).encode()
        self._calls: dict[bytes, list[float]] = {}

    def number(self, queue: bytes, half: float) -> str:
        """The number of the next call on a queue.

        When the last number that said so is ``half`` seconds old, it says too for how many
        milliseconds the call's reply is kept: so each is kept for at least ``half`` seconds.
        """
        now = time.monotonic()
        calls = self._calls.get(queue)
        if calls is None:
            calls = self._calls[queue] = [0, now - half]
        calls[0] += 1
        if now - calls[1] < half:
            return str(calls[0])
        calls[1] = now
        return f"{calls[0]} {half * 2000:.0f}"


def patience(end: float | None, silence: float | None, until: float | None = None) -> float | None:
    """For how many seconds a reply is waited for, in a call that ends at ``end``, from a server
    that is given up after ``silence`` seconds; None for no limit. No reply is waited for after
    ``until``."""
    limits = [] if silence is None else [silence]
    now = time.monotonic()
    if end is not None:
        limits.append(max(end - now, 0.0) + _GRACE)
    if until is not None:
        limits.append(max(until - now, 0.0))
    return min(limits, default=None)


def earlier(end: float | None, until: float | None) -> float | None:
    """The first of two moments, each of which may be None for never."""
    return min((moment for moment in (end, until) if moment is not None), default=None)


class Outage:
    """From the first failure of a call on: pauses that grow, until the call's time is up.

    The call's time ends ``reconnect`` seconds after the first failure, and at ``end``, which is
    on the monotonic clock. A broker that was never reached is not waited for.
    """

    def __init__(self, pool: Pool, reconnect: float, end: float | None) -> None:
        self._pool = pool
        self._reconnect = reconnect
        self._end = end
        self._until: float | None = None
        self._pause = 0.0
        self._moves = 0

    async def ride_out(self, error: OSError) -> None:
        """Wait before the next try; raise BrokerUnavailable when there is no time for one."""
        if isinstance(error, Moved) and self._moves < _MOST_MOVES:
            self._moves += 1
            return
        now = time.monotonic()
        if self._until is None:
            limit = self._reconnect if self._pool.was_connected else 0.0
            self._until = now + limit if self._end is None else min(now + limit, self._end)
        if now >= self._until:
            raise self._pool.translate(error) from error
        await self._pool.sleep(min(self._pause * random.uniform(0.5, 1.0), self._until - now))
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
