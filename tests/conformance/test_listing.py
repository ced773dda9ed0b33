"""Which queues a full_url has: of every engine."""

from __future__ import annotations

import pytest
from waiting import until

from pressure_mp import (
    FairQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    TaskQueue,
    list_queues,
)
from pressure_mp.drivers import drive
from pressure_mp.engines import registry
from pressure_mp.engines.contract.session import Options
from pressure_mp.operations.task_leases import TaskLeaseOperations

pytestmark = pytest.mark.usefixtures("world")


def listed(url, prefix):
    found = [(one.name, one.discipline) for one in list_queues(url=url, prefix=prefix)]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("prefix", ["{}", "{}:*", "{}[a-z]?", "{}\\"])
def test_the_queues_of_every_discipline_are_listed_until_they_are_deleted(full_url, name, prefix):
    options = {"url": full_url, "prefix": prefix.format(name)}
    assert listed(full_url, options["prefix"]) == set()
    queues = {
        "fifo": Queue(name="one", **options),
        "lifo": LifoQueue(name="two", **options),
        "priority": PriorityQueue(name="three", **options),
        "fair": FairQueue(lambda item: "key", name="four", **options),
        "tasks": TaskQueue("five", **options),
    }
    for queue in queues.values():
        queue.open()
    kept = Queue(**options)
    expected = {(queue.name, discipline) for discipline, queue in queues.items()}
    assert listed(full_url, options["prefix"]) == {*expected, (kept.name, "fifo")}
    for queue in queues.values():
        queue.delete()
    assert listed(full_url, options["prefix"]) == {(kept.name, "fifo")}


@pytest.mark.only_threads
def test_a_queue_of_tasks_is_listed_with_its_workers_as_long_as_their_leases_last(full_url, name):
    address = registry.resolve(full_url, prefix=name).started()
    binding = registry.engine(address).bind("tasks", "tasks", Options(lease=700))
    leases = TaskLeaseOperations("tasks")
    TaskQueue("tasks", url=full_url, prefix=name).open()

    def workers():
        (found,) = list_queues(url=full_url, prefix=name)
        return found.workers

    assert workers() == 0
    for owner, texts in (("A", ["one"]), ("B", ["two", "three"])):
        drive(leases.renew(owner, False, texts), binding.session())
    assert workers() == 3
    drive(leases.renew("A", True, []), binding.session())
    assert workers() == 2
    until(lambda: workers() == 0)


def test_queues_whose_names_look_like_keys_are_listed_by_their_names(full_url, name):
    names = {"jobs:bound", "mp:{jobs}", "mp:{}", ":bound", "é", "x:mp:meta"}
    for one in names:
        PressureQueue(one, url=full_url, prefix=name).create()
    assert listed(full_url, name) == {(one, "fifo") for one in names}


def test_more_queues_are_listed_than_a_server_looks_at_in_one_call(full_url, name):
    names = {f"jobs-{number}" for number in range(1500)}
    for one in names:
        Queue(name=one, url=full_url, prefix=name).open()
    assert listed(full_url, name) == {(one, "fifo") for one in names}
