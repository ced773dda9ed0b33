"""For how long items have been queued, as far as who looks again and again can tell."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from .brokers import QueueSummary

#: How many looks at a queue are remembered: of more every other one is forgotten.
_LOOKS = 64


class Ages:
    """What was seen of queues that are first in, first out.

    Their brokers do not keep when an item was put. But they count what was put: so the item that is
    next was there already at a look at which so many had been put.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By name the looks at which the next item was there: when, and how many had been put.
        self._looks: dict[str, list[tuple[float, int]]] = {}

    def look(self, queues: Iterable[QueueSummary], now: float) -> list[QueueSummary]:
        """Look at all queues, at a time of a clock that is never set back. Returns them with their
        ``age``: for how many seconds at least the next item has been there. It is not known of one
        that was not seen with items at the look before."""
        with self._lock:
            before, self._looks = self._looks, {}
            return [self._look(queue, before, now) for queue in queues]

    def _look(
        self, queue: QueueSummary, before: dict[str, list[tuple[float, int]]], now: float
    ) -> QueueSummary:
        if not queue.length or queue.discipline != "fifo":
            return queue
        looks = before.get(queue.name)
        if looks is None:
            self._looks[queue.name] = [(now, queue.produced)]
            return queue
        looks = self._looks[queue.name] = _still_there(looks, queue, now)
        return queue._replace(age=now - looks[0][0])


def _still_there(
    looks: list[tuple[float, int]], queue: QueueSummary, now: float
) -> list[tuple[float, int]]:
    """The looks at which the next item was there, and this one."""
    gone = queue.produced - queue.length
    left = [look for look in looks if gone < look[1] <= queue.produced]
    if not left or left[-1][1] < queue.produced:
        left.append((now, queue.produced))
    return left if len(left) <= _LOOKS else left[::2]
