"""The moment at which to stop waiting, on the monotonic clock; None for never."""

from __future__ import annotations

import time


def deadline(block: bool, timeout: float | None) -> float | None:
    """Return when a wait of ``timeout`` seconds ends; None for a wait without limit, and for a call
    that does not wait."""
    if timeout is None or not block:
        return None
    return time.monotonic() + timeout


def shown(timeout: float | None) -> str:
    """Write a timeout for a message, such as "0.2 s". The rest of a longer timeout has many
    digits."""
    seconds = timeout or 0.0
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def seconds_left(end: float | None) -> float | None:
    """Return the seconds until ``end``, 0 when it is over; None when there is no end."""
    return None if end is None else max(end - time.monotonic(), 0.0)
