"""The counts of queues in the last hours, as the broker keeps them.

A sample is made by :func:`write` from a list of queues: a JSON array in a line for each, packed by
zlib. Any program that can write to the broker can write other bytes: a sample that cannot be read
is left out.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..administration.broker import Broker
from ..engines.contract.brokers import QueueSummary, Sample
from ..operations.brokers import append_sample, read_samples

#: Milliseconds between two samples, how many are kept, and for how long after the last one.
EVERY, KEPT, ENDS = 60_000, 360, 86_400_000
#: The most queues in a sample, the deepest first; and the most bytes of an unpacked sample.
_MOST_QUEUES, _MOST_BYTES = 2_000, 4 << 20
#: The most queues whose points are kept here.
_MOST_SERIES = 32

Key = tuple[str, str]


class Point(NamedTuple):
    """A queue at one moment, in seconds since the epoch by the broker's clock."""

    time: float
    depth: int
    bound: int
    produced: int
    consumed: int


def write(queues: Iterable[QueueSummary]) -> bytes:
    chosen = sorted(queues, key=lambda one: (-one.length, -one.produced - one.consumed))
    lines = (
        json.dumps(
            [one.name, one.discipline, one.length, one.maxsize, one.produced, one.consumed],
            separators=(",", ":"),
        )
        for one in chosen[:_MOST_QUEUES]
    )
    return zlib.compress("\n".join(("", *lines, "")).encode())


def read(sample: Sample, queue: Key) -> Point | None:
    """Read the counts of a queue from a sample; None if it has none that can be read."""
    begin = f"\n{json.dumps(queue, separators=(',', ':'))[:-1]},".encode()
    try:
        text = zlib.decompressobj().decompress(sample.data, _MOST_BYTES)
        at = text.find(begin)
        if at < 0:
            return None
        numbers = json.loads(b"[" + text[at + len(begin) : text.index(b"\n", at + 1)])
        depth, bound, produced, consumed = map(int, numbers)
    except (zlib.error, ValueError, TypeError, RecursionError):
        return None
    return Point(sample.time / 1000, depth, bound, produced, consumed)


@dataclass
class _Series:
    """The points of one queue, up to the last sample that was read for it."""

    points: deque[Point] = field(default_factory=lambda: deque(maxlen=KEPT))
    read_to: int = 0


class History:
    """The samples of a broker, each fetched once."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lock = threading.Lock()
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._series: OrderedDict[Key, _Series] = OrderedDict()

    def note(self, queues: Iterable[QueueSummary]) -> None:
        """Keep a sample, unless another dashboard did so a short time ago. Raises the broker's
        errors."""
        # The time between two samples is a multiple of the interval, so often a little less than
        # EVERY.
        self._broker.run(append_sample(write(queues), EVERY - EVERY // 10, KEPT, ENDS))

    def points(self, queue: Key) -> list[Point]:
        """Return the points of a queue in the last hours, oldest first. Raises the broker's
        errors."""
        with self._lock:
            newest = self._samples[-1].time if self._samples else 0
            self._samples.extend(self._broker.run(read_samples(newest)))
            series = self._series.setdefault(queue, _Series())
            self._series.move_to_end(queue)
            if len(self._series) > _MOST_SERIES:
                self._series.popitem(last=False)
            for sample in [one for one in self._samples if one.time > series.read_to]:
                point = read(sample, queue)
                series.points.extend(() if point is None else (point,))
                series.read_to = sample.time
            return list(series.points)
