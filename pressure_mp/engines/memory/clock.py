"""The clock of queues in memory."""

from __future__ import annotations

import time

#: Set once, so that a step of the system's clock ends no lease and makes no task ready.
_EPOCH = time.time() - time.monotonic()


def milliseconds() -> int:
    """Milliseconds since the epoch, as it was known when this process first used such a queue."""
    return int((_EPOCH + time.monotonic()) * 1000)
