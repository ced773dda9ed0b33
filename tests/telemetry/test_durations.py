"""Seconds in queues and in handlers, as a registry of prometheus_client has them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from pressure_mp import Queue, TaskQueue, events
from pressure_mp.telemetry.durations import Durations


@pytest.fixture
def registry():
    registry = CollectorRegistry()
    durations = Durations(registry, per_queue="test-*-jobs")
    yield registry
    durations.stop()
    assert not events.listeners
    assert not list(registry.collect())


def test_the_seconds_of_tasks_are_observed(url, name, registry):
    q = TaskQueue(name, url=url)
    q.put_many([1, 2], delay=0.02)
    with q.take():
        pass
    with pytest.raises(KeyError), q.take():
        raise KeyError
    labels = {"discipline": "tasks", "queue": ""}
    q.take().ack()  # its wait is not known: it was delivered before
    assert registry.get_sample_value("pressure_wait_seconds_count", labels) == 2
    assert 0.04 <= registry.get_sample_value("pressure_wait_seconds_sum", labels) < 120
    spent = {
        outcome: registry.get_sample_value(
            "pressure_handler_seconds_sum", labels | {"outcome": outcome}
        )
        for outcome in ("returned", "raised")
    }
    assert 0 < spent["returned"] < 120
    assert 0 < spent["raised"] < 120


def test_the_seconds_of_items_are_observed_where_they_have_headers(valkey, name, registry):
    q = Queue(name=f"{name}-jobs", url=valkey.url)
    bare = Queue(name=name, url=valkey.url, serializer="json")
    q.put_many([1, 2, 3])
    assert q.get_many(3) == [1, 2, 3]
    bare.put(1)
    assert bare.get() == 1
    labels = {"discipline": "fifo", "queue": f"{name}-jobs"}
    assert registry.get_sample_value("pressure_wait_seconds_count", labels) == 3
    assert 0 <= registry.get_sample_value("pressure_wait_seconds_sum", labels) < 120
    labels["queue"] = ""
    assert registry.get_sample_value("pressure_wait_seconds_count", labels) == 0
