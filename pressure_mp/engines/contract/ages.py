"""Estimate for how long items have been queued, from repeated observations of a queue."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from .brokers import QueueSummary

#: Most observations of a queue that are kept: of more than these, every other one is dropped.
_MOST_OBSERVATIONS = 64


class Ages:
    """The observations of first-in-first-out queues.

    Their brokers do not keep when an item was put. But they count the puts: so the next item was
    already queued at an observation at which that many items had been put.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By name, the observations at which the next item was queued: the time, and the number of
        #: items that had been put.
        self._observations: dict[str, list[tuple[float, int]]] = {}

    def observe(self, queues: Iterable[QueueSummary], now: float) -> list[QueueSummary]:
        """Note the counts of all queues, at a time of a clock that is never set back. Returns the
        queues with their ``age``: for how many seconds at least the next item has been queued. The
        age of a queue that had no items at the previous observation is not known."""
        with self._lock:
            before, self._observations = self._observations, {}
            return [self._observe(queue, before, now) for queue in queues]

    def _observe(
        self, queue: QueueSummary, before: dict[str, list[tuple[float, int]]], now: float
    ) -> QueueSummary:
        if not queue.length or queue.discipline != "fifo":
            return queue
        seen = before.get(queue.name)
        if seen is None:
            self._observations[queue.name] = [(now, queue.produced)]
            return queue
        seen = self._observations[queue.name] = _still_there(seen, queue, now)
        return queue._replace(age=now - seen[0][0])


def _still_there(
    seen: list[tuple[float, int]], queue: QueueSummary, now: float
) -> list[tuple[float, int]]:
    """Select the observations at which the next item was queued, and add this one."""
    gone = queue.produced - queue.length
    left = [one for one in seen if gone < one[1] <= queue.produced]
    if not left or left[-1][1] < queue.produced:
        left.append((now, queue.produced))
    return left if len(left) <= _MOST_OBSERVATIONS else left[::2]
