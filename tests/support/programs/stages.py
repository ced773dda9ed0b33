"""A process between two queues."""

from __future__ import annotations

from pressure_mp import Queue


def carry(source: Queue, target: Queue) -> None:
    """Put into one queue what comes from another, without end."""
    while True:
        target.put(source.get())
