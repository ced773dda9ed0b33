"""A queue that exists before anything is put: a handle that names it opens it at its first call."""

from __future__ import annotations

from typing import TypeVar

from pressure_mp.sync.handles import Handle

AnyHandle = TypeVar("AnyHandle", bound=Handle)


def opened(queue: AnyHandle) -> AnyHandle:
    """Open the queue, and return its handle."""
    queue.open()
    return queue
