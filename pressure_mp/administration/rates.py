"""Measure the depths and rates of a broker's queues, and find which of them block."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..engines.contract.ages import Ages
from ..engines.contract.brokers import QueueSummary
from ..exceptions import PressureError
from ..operations import phrases
from .broker import Broker

#: How many depths a line shows.
_DEPTHS = 16
_BARS = "▁▂▃▄▅▆▇█"
#: For at most so many full queues the broker is asked for the consumers.
_MOST_ASKED = 20

Key = tuple[str, str]


@dataclass
class QueueRates:
    """The depths and rates of a queue."""

    queue: QueueSummary
    seen: float
    depths: deque[int] = field(default_factory=lambda: deque(maxlen=_DEPTHS))
    puts: float = 0.0
    gets: float = 0.0
    #: Since when a client waits to put, or to get, and no client was served.
    putting_since: float | None = None
    getting_since: float | None = None

    def update(self, queue: QueueSummary, now: float) -> None:
        passed = max(now - self.seen, 0.001)
        self.puts = max(queue.produced - self.queue.produced, 0) / passed
        self.gets = max(queue.consumed - self.queue.consumed, 0) / passed
        self.queue, self.seen = queue, now
        self.depths.append(queue.length)
        # A client that waits was not served since it came, or since another one was.
        putting_since = None if self.puts else self.putting_since
        getting_since = None if self.gets else self.getting_since
        self.putting_since = (putting_since or now) if queue.putting else None
        self.getting_since = (getting_since or now) if queue.getting else None

    @property
    def key(self) -> Key:
        return self.queue.name, self.queue.discipline

    def as_json(self) -> dict[str, Any]:
        rates = {"puts_per_second": self.puts, "gets_per_second": self.gets}
        return {**self.queue._asdict(), **rates}

    @property
    def is_full(self) -> bool:
        """Whether a client waits for space."""
        return bool(self.queue.putting) and self.queue.is_full

    @property
    def line(self) -> str:
        """The depths as a line of bars: against the queue's bound, else against the greatest
        depth."""
        top = self.queue.maxsize or max(self.depths, default=0)
        return "".join(_bar(depth, top) for depth in self.depths)

    def state(self, slow: Container[str]) -> str:
        """Describe the state in a word or two, nothing for the usual one. ``slow`` has the names of
        the queues with consumers that delay other queues."""
        if self.queue.name in slow:
            return "its consumers are slow"
        if self.is_full:
            return "full"
        return phrases.standing(self.queue)

    def blocked(self, now: float) -> str:
        """Say how many clients wait, and for how long."""
        parts = []
        for number, what, since in (
            (self.queue.putting, "put", self.putting_since),
            (self.queue.getting, "get", self.getting_since),
        ):
            if number and since is not None:
                parts.append(f"{number} {what} {phrases.duration(now - since)}")
        return ", ".join(parts)


def _bar(depth: int, top: int) -> str:
    if not depth or not top:
        return _BARS[0]
    return _BARS[min(1 + (len(_BARS) - 2) * depth // top, len(_BARS) - 1)]


#: The orders in which queues are shown.
ORDERS: dict[str, Callable[[QueueRates], Any]] = {
    "waiting": lambda one: (
        -one.queue.putting - one.queue.getting,
        min(one.putting_since or math.inf, one.getting_since or math.inf),
        -one.queue.length,
        one.key,
    ),
    "depth": lambda one: (-one.queue.length, one.key),
    "rate": lambda one: (-one.puts - one.gets, one.key),
    "rejected": lambda one: (-one.queue.rejected, one.key),
    "name": lambda one: one.key,
}


class BrokerRates:
    """The rates of all queues of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.queues: dict[Key, QueueRates] = {}
        self._ages = Ages()
        #: The names of the queues with consumers that delay other queues.
        self.slow: set[str] = set()

    def update(self) -> None:
        there: dict[Key, QueueRates] = {}
        for page in self._broker.pages():
            now = time.monotonic()
            for queue in page:
                rates = QueueRates(queue, now)
                rates = there[rates.key] = self.queues.get(rates.key, rates)
                rates.update(queue, now)
        now = time.monotonic()
        for told in self._ages.observe([one.queue for one in there.values()], now):
            there[told.name, told.discipline].queue = told
        self.queues = there
        self.slow = self._find_slow(one for one in there.values() if one.is_full)

    def _find_slow(self, full: Iterable[QueueRates]) -> set[str]:
        """Return the full queues whose consumers do not themselves wait for space in another
        queue."""
        consumers: dict[str, set[str]] = {}
        waiting: set[str] = set()
        for rates in list(full)[:_MOST_ASKED]:
            queue = self._broker.named(*rates.key)
            try:
                seen = queue.run(queue.items.why_blocked())
            except PressureError:
                continue  # the queue is gone, or cannot be asked now
            consumers[queue.name] = {_process(peer.id) for peer in seen.put.partners}
            waiting |= {_process(one.peer.id) for one in seen.put.line}
            if seen.put.holder and seen.put.holder.peer:
                waiting.add(_process(seen.put.holder.peer.id))
        return {name for name, clients in consumers.items() if not clients & waiting}


def _process(client: str) -> str:
    """Return host and process of a client id; of another implementation's client the id."""
    return ":".join(client.split(":")[:2])
