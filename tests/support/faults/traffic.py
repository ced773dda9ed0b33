"""Producers and consumers that work while something happens, and what became of their items."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from waiting import Background, until

from pressure_mp import NotDurable, Queue, ShutDown


@dataclass
class Traffic:
    """Threads that put and get numbered items on one queue, each with a handle of its own.

    A put that returned was acknowledged. One that raised NotDurable was not, and is not repeated.
    """

    name: str
    url: str
    options: dict[str, Any] = field(default_factory=dict)
    #: The class of the handles.
    kind: Any = Queue
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    unconfirmed: list[tuple[int, int]] = field(default_factory=list)
    received: list[list[tuple[int, int]]] = field(default_factory=list)
    longest_stall: float = 0.0

    def start(self, producers: int = 2, consumers: int = 2) -> Traffic:
        self._queue = self.kind.create(self.name, url=self.url, **self.options)
        self._stopping = threading.Event()
        self.received = [[] for _ in range(consumers)]
        self._producing = [Background(self._produce, producer) for producer in range(producers)]
        self._consuming = [Background(self._consume, received) for received in self.received]
        return self

    def wait_for_more(self, items: int = 200, limit: float = 60) -> None:
        """Wait until that many more items have gone all the way."""
        goal = sum(map(len, self.received)) + items
        until(lambda: sum(map(len, self.received)) >= goal or self._problem(), limit)

    def finish(self, limit: float = 60) -> None:
        """Let the producers end, and the consumers when they have got all there is."""
        self._stopping.set()
        for thread in self._producing:
            thread.result(limit)
        self._queue.shutdown()
        for thread in self._consuming:
            thread.result(limit)
        self._queue.delete()

    @property
    def lost(self) -> int:
        """How many acknowledged items no consumer got."""
        return len(set(self.acknowledged) - set(self._counts()))

    @property
    def duplicated(self) -> int:
        """How often an item was got that had been got before."""
        return sum(count - 1 for count in self._counts().values())

    @property
    def invented(self) -> int:
        """How many items were got that no producer put."""
        return len(set(self._counts()) - set(self.acknowledged) - set(self.unconfirmed))

    @property
    def is_in_order(self) -> bool:
        """Whether consumers got the items of each producer in order, but for repeated items."""
        counts = self._counts()
        for received in self.received:
            once = [item for item in received if counts[item] == 1]
            for producer in {one for one, _ in once}:
                numbers = [number for one, number in once if one == producer]
                if numbers != sorted(numbers):
                    return False
        return True

    def __str__(self) -> str:
        return (
            f"{len(self.acknowledged)} acknowledged, {len(self.unconfirmed)} not confirmed, "
            f"{self.lost} lost, {self.duplicated} duplicated, {self.invented} invented, "
            f"longest stall of a put {self.longest_stall:.1f} s"
        )

    def _counts(self) -> Counter[tuple[int, int]]:
        return Counter(item for received in self.received for item in received)

    def _problem(self) -> bool:
        return any(not thread.is_alive() for thread in (*self._producing, *self._consuming))

    def _produce(self, producer: int) -> None:
        queue = self.kind.attach(self.name, url=self.url, **self.options)
        number = 0
        while not self._stopping.is_set():
            item = (producer, number)
            begin = time.monotonic()
            try:
                queue.put(item)
                self.acknowledged.append(item)
            except NotDurable:
                self.unconfirmed.append(item)
            self.longest_stall = max(self.longest_stall, time.monotonic() - begin)
            number += 1
            time.sleep(0.001)

    def _consume(self, received: list[tuple[int, int]]) -> None:
        queue = self.kind.attach(self.name, url=self.url, **self.options)
        while True:
            try:
                received.append(queue.get())
            except ShutDown:
                return
