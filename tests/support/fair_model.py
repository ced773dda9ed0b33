"""The fair queue as its reference describes it: a snapshot of the heads of all keys."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any


class FairModel:
    """A queue for each key, and a snapshot that is served until it is used up."""

    def __init__(self, key: Callable[[Any], Any], weight: Callable[[Any], int] = lambda key: 1):
        self._key = key
        self._weight = weight
        self._arrivals = itertools.count()
        self._queues: dict[Any, deque[tuple[int, Any]]] = {}
        self._snapshot: deque[tuple[int, Any]] = deque()

    def __len__(self) -> int:
        return len(self._snapshot) + sum(map(len, self._queues.values()))

    def put(self, item: Any) -> None:
        self._queues.setdefault(self._key(item), deque()).append((next(self._arrivals), item))

    def get(self) -> Any:
        """The next item; IndexError when there is none."""
        if not self._snapshot:
            heads = []
            for key, queue in self._queues.items():
                heads += [queue.popleft() for _ in range(min(self._weight(key), len(queue)))]
            self._snapshot.extend(sorted(heads))
            self._queues = {key: queue for key, queue in self._queues.items() if queue}
        return self._snapshot.popleft()[1]

    def look(self) -> tuple[list[Any], dict[Any, list[Any]]]:
        """What dereferencing answers: the snapshot, and the queues."""
        snapshot = [item for _, item in self._snapshot]
        return snapshot, {key: [item for _, item in q] for key, q in self._queues.items()}
