"""Log for how long the broker does not answer a program that goes on."""

from __future__ import annotations

import logging
import math
import threading
import time

from ...exceptions import (
    ArgumentError,
    BrokerFull,
    BrokerUnavailable,
    CallCancelledError,
    PressureError,
    WrongServerError,
)
from ...numeric import seconds

#: Seconds from a failed call to the next try. Each try lasts for ``reconnect`` seconds.
PAUSE = 0.5
#: The errors of calls that a program makes again until they succeed.
PASSING = BrokerUnavailable, BrokerFull, CallCancelledError
#: Seconds from one line of the log to the next.
_INTERVAL = 60.0

_log = logging.getLogger("pressure_mp")


class Outages:
    """The outages of a broker, as the calls of a program's threads find them. The log gets a line
    when an outage begins, one each minute, and one when it is over."""

    def __init__(
        self, program: str, longest: float | None = None, reconnect: float = math.inf
    ) -> None:
        """:meth:`failed` raises after ``longest`` seconds; None for never. A call that fails may
        have waited for a task, and then tries for ``reconnect`` seconds."""
        self._program = program
        self._longest = longest
        self._reconnect = reconnect
        self._lock = threading.Lock()
        #: When the first failed call began; None while the broker answers.
        self._began: float | None = None
        #: When the next line is due.
        self._due = 0.0
        #: When the last outage was over; and when a call was answered.
        self._over = self._heard = -math.inf

    def failed(self, error: PressureError, tried: float) -> None:
        """Note that a call failed that began at the time ``tried``, on the monotonic clock. Raises
        ``error`` if the outage has lasted for too long; or if no broker was ever there, and another
        try does not help."""
        if isinstance(error, WrongServerError) and self._heard == -math.inf:
            raise error
        with self._lock:
            now = time.monotonic()
            if self._began is None and tried < self._over:
                return  # another call was answered since
            is_first = self._began is None
            if self._began is None:
                self._began = max(tried, self._heard, now - self._reconnect)
            began = self._began
            is_due = is_first or now >= self._due
            if is_due:
                self._due = now + _INTERVAL
        if self._longest is not None and now - began >= self._longest:
            raise error
        if is_first:
            _log.warning("%s waits for the broker: %s", self._program, error)
        elif is_due:
            _log.warning(
                "%s has waited %.0f s for the broker: %s", self._program, now - began, error
            )

    def answered(self) -> None:
        """Note that a call was answered."""
        self._heard = time.monotonic()
        if self._began is None:
            return
        with self._lock:
            began, self._began, self._over = self._began, None, time.monotonic()
        if began is not None:
            lasted = self._over - began
            _log.warning("%s goes on: the broker answers after %.0f s", self._program, lasted)


def of_run(name: str, max_outage: float | None, reconnect: float) -> Outages:
    """Return the outages of a run of the queue of that name. Raises ArgumentError,
    ArgumentTypeError."""
    longest = None if max_outage is None else seconds("max_outage", max_outage)
    if longest is not None and not longest >= 0:
        raise ArgumentError(f"max_outage is 0 or more seconds, or None; not {max_outage!r}")
    return Outages(f"a run of {name!r}", longest, reconnect)
