"""Retries of one call after a broken connection: for how long, and with which pauses."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ...exceptions import BrokerUnavailable, WrongServerError
from ..contract.session import ONE_TRY, SHORTEST_TRY, Options
from .errors import ConnectionLost, MadeBefore
from .statements import Statement
from .wire import Row

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
#: A statement, and its parameters.
Call = tuple[Statement, Sequence["bytes | None"]]

#: Seconds without a broker after which it is logged.
_QUIET = 1.0
#: Seconds after the end of a call for the reply, if it was sent just before that.
_GRACE = 1.0
#: A program that seeds ``random`` has the same numbers whether a connection breaks or not.
_random = random.SystemRandom()

_log = logging.getLogger("pressure_mp")


class Failed(NamedTuple):
    """A call that its caller tried once: its exception, and the time of the try."""

    error: BrokerUnavailable | MadeBefore
    tried: float


class Calls(Protocol):
    """Makes calls, see :class:`~.pool.Pool`."""

    @property
    def was_connected(self) -> bool:
        """Whether there ever was a connection."""

    async def execute(
        self, statement: Statement, params: Sequence[bytes | None], timeout: float | None
    ) -> list[Row]: ...

    async def sleep(self, seconds: float) -> None: ...


async def persist(
    pool: Calls,
    options: Options,
    end: float | None,
    call: Callable[[bool], Call],
    settles: bool = False,
    failed: Failed | None = None,
) -> list[Row]:
    """Make a call until there is a reply: over new connections, when the one in use is lost.

    The argument of ``call`` is whether the same call may have been made before. A call that was
    never sent is tried until ``end`` or for ``SHORTEST_TRY`` seconds; a call that was sent, or that
    ``settles`` a task, for ``reconnect`` seconds. ``failed`` is the first try, if there was one.
    Raises BrokerUnavailable when the time is over.
    """
    tried = time.monotonic() if failed is None else failed.tried
    began: float | None = None
    pause, again, is_told = 0.0, False, False
    while True:
        try:
            if failed is not None:
                first, failed = failed.error, None
                raise first
            return await pool.execute(*call(again), patience(options, end, began, again or settles))
        except MadeBefore:
            again = True
            continue
        except BrokerUnavailable as error:
            if isinstance(error, ConnectionLost):
                again = True
            now = time.monotonic()
            if began is None:
                began = now if again or settles else tried
            until = _until(options, end, began, again or settles)
            if now >= until or (isinstance(error, WrongServerError) and not pool.was_connected):
                raise
            if now - began >= _QUIET and not is_told:
                is_told = True
                _log.warning(
                    "trying for another %.0f s to reach the broker: %s", until - now, error
                )
            await pool.sleep(min(pause * _random.uniform(0.5, 1.0), until - now))
            pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)


def _until(options: Options, end: float | None, began: float, settles: bool) -> float:
    if end == ONE_TRY:
        return end
    ends = [began + options.reconnect]
    if end is not None and not settles:
        ends.append(max(end, began + SHORTEST_TRY))
    if options.until is not None:
        ends.append(options.until)
    return min(ends)


def patience(
    options: Options,
    end: float | None,
    began: float | None = None,
    settles: bool = False,
) -> float | None:
    """Return for how many seconds to wait for a reply; None for no limit. ``began`` is the time at
    which the first try failed."""
    if end is None and began is None and options.until is None:
        return None
    now = time.monotonic()
    limits = []
    if began is not None and end != ONE_TRY:
        limits.append(max(_until(options, end, began, settles) - now, 0.0) + _GRACE)
    elif end is not None:
        limits.append(max(end - now, 0.0) + _GRACE)
    if options.until is not None:
        limits.append(max(options.until - now, 0.0))
    return min(limits, default=None)
