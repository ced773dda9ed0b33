"""Metrics, as Prometheus's own parser reads them."""

from __future__ import annotations

import socket
import time

import inside
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from pressure_mp import LifoQueue, Queue, TaskQueue
from pressure_mp.cli.app import app
from pressure_mp.engines.contract import brokers
from pressure_mp.engines.contract.ages import Ages
from pressure_mp.identity.processes import incarnation
from pressure_mp.operations.task_leases import TaskLeaseOperations
from pressure_mp.telemetry.prometheus import QueueCollector

AGE = "oldest_age_seconds"


@pytest.fixture
def options(broker, name):
    return {"url": broker.url, "prefix": name}


def read(options, *arguments):
    """By name and labels."""
    where = ("--url", options["url"], "--prefix", options["prefix"])
    result = CliRunner().invoke(app, ["metrics", *arguments, *where])
    assert result.exit_code == 0, result.output
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(result.output)
        for sample in family.samples
    }


def test_all_queues_of_a_discipline_are_summed_up(options):
    Queue(5, "jobs-1", **options).put_many([1, 2])
    Queue(1, "jobs-2", **options).put(3)
    Queue(0, "jobs-3", **options).shutdown()
    tasks = TaskQueue("tasks", **options)
    tasks.put_many([1, 2, 3])
    tasks.take().ack()
    tasks.take().release()
    tasks.take().bury()
    tasks.pause()
    tasks.pause("a")
    texts = ["a worker", "another"]
    inside.run(tasks, TaskLeaseOperations("tasks").renew(incarnation(), False, texts))
    found = read(options)
    expected = {
        "pressure_queues": 3,
        "pressure_closed_queues": 1,
        "pressure_full_queues": 1,
        "pressure_depth": 3,
        "pressure_bound": 6,
        "pressure_produced": 3,
        "pressure_consumed": 0,
        "pressure_blocked_producers": 0,
    }
    assert {name: found[name, "fifo"] for name in expected} == expected
    expected = {
        "pressure_paused": 2,
        "pressure_workers": 2,
        "pressure_rejected": 1,
        "pressure_redelivered": 1,
        "pressure_consumed": 1,
    }
    assert {name: found[name, "tasks"] for name in expected} == expected
    assert (found["pressure_tasks", "ready"], found["pressure_tasks", "buried"]) == (1, 1)
    assert 0 <= found["pressure_oldest_age_seconds", "tasks"] < 60
    assert not any(key[0].startswith("pressure_queue_") for key in found)


def test_each_queue_that_is_asked_for_has_its_own(options):
    for name in ("jobs-1", 'jobs-"\n2', "others"):
        Queue(0, name, **options).put(1)
    found = read(options, "--per-queue", "jobs-*")
    assert {key[2] for key in found if key[0] == "pressure_queue_depth"} == {
        "jobs-1",
        'jobs-"\n2',
    }
    assert found["pressure_queue_produced_total", "fifo", "jobs-1"] == 1


def test_a_second_look_tells_for_how_long_the_next_item_has_been_there(options):
    def look():
        found = {}
        for metric in collector.collect():
            found |= {(one.name, *one.labels.values()): one.value for one in metric.samples}
        return found.get((f"pressure_queue_{AGE}", "jobs", "fifo"))

    collector = QueueCollector(per_queue="jobs", **options)
    jobs = Queue(0, "jobs", **options)
    jobs.put_many(["a", "b"])
    LifoQueue(0, "others", **options).put("c")
    begun = time.monotonic()
    assert look() is None
    seen = time.monotonic()
    age = look()
    assert 0 < age <= time.monotonic() - begun
    jobs.put("d")
    jobs.get_many(2)
    between = time.monotonic()
    assert look() == 0  # put since the last look
    assert 0 < look() <= time.monotonic() - between < time.monotonic() - seen
    jobs.get()
    assert look() is None


def test_of_many_looks_the_first_is_remembered():
    ages = Ages()
    queue = brokers.QueueSummary("jobs", "fifo", 0, 0, False, 0, 0, 0, 0, 0, 0, None, {})
    for number in range(1, 1000):
        (told,) = ages.observe([queue._replace(length=number, produced=number)], float(number))
    assert told.age == 998


def test_to_register_the_collector_asks_no_broker(name):
    assert list(QueueCollector(url="redis://127.0.0.1:1", prefix=name).describe()) == []


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        where = ("--url", "redis://127.0.0.1:1", "--listen", str(port))
        result = CliRunner().invoke(app, ["metrics", *where])
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: cannot listen at 127.0.0.1, port {port}: ")
