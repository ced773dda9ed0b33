"""The clock of queues in memory."""

from __future__ import annotations

import time

#: Set once, so that a step of the system's clock ends no lease and makes no task ready.
_EPOCH = time.time() - time.monotonic()


def milliseconds() -> int:
    """Return the milliseconds since the epoch, by the system's clock at the first use of such a
    queue and the monotonic clock since then."""
    return int((_EPOCH + time.monotonic()) * 1000)
