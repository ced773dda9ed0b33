"""Measure how long items and tasks are in their queues, and handlers take, for Prometheus (``pip
install 'pressure_mp[metrics]'``)."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from prometheus_client import REGISTRY, CollectorRegistry, Histogram

from .. import events
from ..events import Destination, Message

#: The header that says when an item was put, in seconds since the epoch.
_PUT_AT = "pressure-put-at"
#: From the times of a lively queue and a quick handler to the times of a night's backlog.
_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 5, 20, 60, 300, 1800, 7200, 43200)


class Durations:
    """Two histograms of times in seconds, of what this process gets until :meth:`stop`.

    ``pressure_wait_seconds`` is the time from the put of an item or task until a consumer got it,
    including a delay. For a task the broker measures it, at the first delivery. For an item the
    producer must also have made a Durations: it sends the time of the put, by its own clock, in a
    header. Items without headers (see :func:`.otel.instrument`) are not counted.

    ``pressure_handler_seconds`` is the time that a worker's handler, or a ``with task:`` block,
    took; the label ``outcome`` is ``returned`` or ``raised``.

    Both have the label ``discipline``, and the label ``queue``: the name of a queue that matches
    ``per_queue``, such as ``"jobs-*"``; empty for all other queues. Does not block.

    :param registry: of prometheus_client; raises ValueError if it has these metrics already.
    """

    def __init__(
        self, registry: CollectorRegistry = REGISTRY, per_queue: str | None = None
    ) -> None:
        self._registry = registry
        self._per_queue = per_queue
        labels = ("discipline", "queue")
        self._wait = Histogram(
            *("pressure_wait_seconds", "From the put until a consumer got it.", labels),
            registry=registry,
            buckets=_BUCKETS,
        )
        self._handler = Histogram(
            *("pressure_handler_seconds", "Of handlers of tasks.", (*labels, "outcome")),
            registry=registry,
            buckets=_BUCKETS,
        )
        events.listen(self)

    def stop(self) -> None:
        """Stop observing, and remove the metrics from the registry."""
        events.ignore(self)
        for metric in (self._wait, self._handler):
            self._registry.unregister(metric)

    @contextmanager
    def sending(self, to: Destination, number: int) -> Iterator[Mapping[str, str]]:
        """See :class:`.events.Listener`."""
        yield self.created(to)

    def created(self, to: Destination) -> Mapping[str, str]:
        """See :class:`.events.Listener`."""
        return {} if to.discipline == "tasks" else {_PUT_AT: f"{time.time():.3f}"}

    def received(self, source: Destination, messages: Sequence[Message], since: int) -> None:
        """See :class:`.events.Listener`."""
        wait, now = self._wait.labels(*self._labels(source)), time.time()
        for message in messages:
            waited = message.waited
            if waited is None and _PUT_AT in message.headers:
                try:
                    waited = max(now - float(message.headers[_PUT_AT]), 0.0)
                except ValueError:
                    continue  # another program wrote it
            if waited is not None:
                wait.observe(waited)

    def settled(
        self, source: Destination, verb: str, messages: Sequence[Message], since: int
    ) -> None:
        """See :class:`.events.Listener`."""

    @contextmanager
    def processing(self, source: Destination, message: Message) -> Iterator[None]:
        """See :class:`.events.Listener`."""
        begun, outcome = time.perf_counter(), "raised"
        try:
            yield
            outcome = "returned"
        finally:
            seconds = time.perf_counter() - begun
            self._handler.labels(*self._labels(source), outcome).observe(seconds)

    def _labels(self, queue: Destination) -> tuple[str, str]:
        is_named = self._per_queue is not None and fnmatch.fnmatchcase(queue.name, self._per_queue)
        return queue.discipline, queue.name if is_named else ""
