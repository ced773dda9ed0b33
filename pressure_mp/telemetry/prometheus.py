"""Metrics of all queues at a broker, for Prometheus (``pip install 'pressure_mp[metrics]'``)."""

from __future__ import annotations

import collections
import fnmatch
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..engines.contract.ages import Ages
from ..engines.contract.brokers import QueueSummary
from ..states import NAMES, named
from ..sync.brokers import list_queues


class _Sum(NamedTuple):
    """A number that is summed up over queues: its name, its help, and its value for one queue."""

    name: str
    help: str
    of: Callable[[QueueSummary], float]
    #: It only grows, as long as the queue exists.
    grows: bool = False


_SUMS = (
    _Sum("pressure_depth", "Items that are queued; tasks that are ready.", lambda one: one.length),
    _Sum("pressure_bound", "Items and tasks that bounded queues hold.", lambda one: one.maxsize),
    _Sum("pressure_in_flight", "Taken and not yet acknowledged.", lambda one: one.in_flight),
    _Sum("pressure_rejected", "Items set aside; tasks buried.", lambda one: one.rejected),
    _Sum("pressure_blocked_producers", "Clients that wait to put.", lambda one: one.putting),
    _Sum("pressure_blocked_consumers", "Clients that wait to get.", lambda one: one.getting),
    _Sum(
        "pressure_paused",
        "Queues of tasks that are paused, and tubes that are paused by themselves.",
        lambda one: one.paused + len(one.paused_tubes),
    ),
    _Sum("pressure_workers", "Workers of queues of tasks.", lambda one: one.workers),
    _Sum("pressure_produced", "Items that were put so far.", lambda one: one.produced, True),
    _Sum("pressure_consumed", "Items that were got so far.", lambda one: one.consumed, True),
    _Sum(
        "pressure_redelivered",
        "Tasks and items that went back from the consumer that had taken them.",
        lambda one: one.returned,
        True,
    ),
)
_AGE = (
    "pressure_oldest_age_seconds",
    "How long the next task has been in the queue; of items, how long at least the next item "
    "has been there.",
)
_TASKS = "pressure_tasks", "Tasks by their state."


class QueueCollector(Collector):
    """A collector of metrics of all queues at a broker; it counts whenever it is asked.

    ``REGISTRY.register(QueueCollector(url=...))`` adds the metrics to a program's own. They are
    sums over all queues of a discipline, so their number does not depend on the number of queues.
    Each queue whose name matches ``per_queue``, such as ``"jobs-*"``, also has metrics of its own,
    with its name as a label. The sums are over queues that exist now, and go down when a queue is
    deleted; the totals of one queue only grow.

    Brokers do not keep for how long the next item of a first-in, first-out queue has been there.
    The collector computes this from the second collection on, from earlier counts: the true age is
    at least the value, and longer by at most the time between two collections.

    ``url`` and ``prefix`` mean the same as for :class:`pressure_mp.Queue`. Collecting blocks for
    round trips to the broker, and raises what :func:`pressure_mp.list_queues` raises.
    """

    def __init__(
        self, url: str | None = None, prefix: str | None = None, per_queue: str | None = None
    ) -> None:
        self._url = url
        self._prefix = prefix
        self._per_queue = per_queue
        self._ages = Ages()

    def describe(self) -> Iterable[Metric]:
        """Return no metrics, so that registering does not ask the broker."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of this moment."""
        found: dict[str, list[QueueSummary]] = {}
        there = list(list_queues(url=self._url, prefix=self._prefix))
        for queue in self._ages.observe(there, time.monotonic()):
            found.setdefault(queue.discipline, []).append(queue)
        yield from _summed({discipline: _Total(queues) for discipline, queues in found.items()})
        if self._per_queue:
            every = itertools.chain(*found.values())
            yield from _each(
                [one for one in every if fnmatch.fnmatchcase(one.name, self._per_queue)]
            )


class _Total:
    """The sums over all queues of a discipline. There may be very many queues, so as few steps as
    possible are done for each."""

    def __init__(self, queues: list[QueueSummary]) -> None:
        self.queues = len(queues)
        self.closed = sum(one.closed for one in queues)
        self.full = sum(one.is_full for one in queues)
        self.sums = [sum(map(sum_.of, queues)) for sum_ in _SUMS]
        self.age = max((one.age for one in queues if one.age is not None), default=None)
        self.tasks: collections.Counter[str] = collections.Counter()
        for one in queues:
            if one.tasks:
                self.tasks.update(one.tasks)


#: The attributes of a total that are metrics.
_COUNTED = (
    ("pressure_queues", "Queues that exist.", "queues"),
    ("pressure_closed_queues", "Queues that are shut down.", "closed"),
    ("pressure_full_queues", "Queues that are full.", "full"),
)


def _summed(totals: dict[str, _Total]) -> Iterator[Metric]:
    every = totals.values()

    def gauge(name: str, help: str, values: Iterable[float | None]) -> Metric:
        family = GaugeMetricFamily(name, help, labels=["discipline"])
        return _family(family, zip(([one] for one in totals), values, strict=True))

    for name, help, attribute in _COUNTED:
        yield gauge(name, help, [getattr(one, attribute) for one in every])
    for place, sum_ in enumerate(_SUMS):
        yield gauge(sum_.name, sum_.help, [one.sums[place] for one in every])
    yield gauge(*_AGE, [one.age for one in every])
    states: list[tuple[list[str], float]] = []
    if "tasks" in totals:
        tasks = totals["tasks"].tasks
        states = [([named(one).word], tasks.get(str(one), 0)) for one in NAMES]
    yield _family(GaugeMetricFamily(*_TASKS, labels=["state"]), states)


def _each(queues: list[QueueSummary]) -> Iterator[Metric]:
    for name, help, of, grows in (*_SUMS, _Sum(*_AGE, attrgetter("age"))):
        kind = CounterMetricFamily if grows else GaugeMetricFamily
        name = name.replace("pressure_", "pressure_queue_", 1)
        family = kind(name, help, labels=["queue", "discipline"])
        yield _family(family, (([one.name, one.discipline], of(one)) for one in queues))


def _family(
    family: GaugeMetricFamily | CounterMetricFamily,
    counted: Iterable[tuple[list[str], float | None]],
) -> Metric:
    """Add the values that are known, each with its labels."""
    for labels, value in counted:
        if value is not None:
            family.add_metric(labels, value)
    return family
