"""A key of a queue of tasks that holds what no client of ours writes there."""

from __future__ import annotations

import inside
import pytest

from pressure_mp import TaskError, TaskQueue, WrongKeyTypeError
from pressure_mp.engines.redis import keys
from pressure_mp.identity.processes import incarnation
from pressure_mp.operations.task_leases import TaskLeaseOperations

#: What can be done to a queue that has a ready, a buried and a taken task, and which keys it uses.
CALLS = {
    "put": lambda queue, task: queue.put(9, tube=task.tube),
    "take": lambda queue, task: queue.take(0),
    "take_many": lambda queue, task: queue.take_many(2),
    "ack": lambda queue, task: task.ack(),
    "release": lambda queue, task: task.release(),
    "kick": lambda queue, task: queue.kick_many(),
    "kill": lambda queue, task: queue.kill(task.id),
}
pytestmark = pytest.mark.usefixtures("no_looks")

#: Keys that these do not all have, or that say by themselves whether there is a queue.
LEFT_OUT = {"bound", "users", "kept", "woken", "outcomes"}
#: Keys of what comes of tasks.
OF_RESULTS = {"results", "notices", "inboxes", "chunks"}
#: The key of unique keys.
OF_UNIQUE = {"uniques"}
#: The key of what processes say of their workers.
OF_WORKERS = {"workers"}
#: Keys of tasks that have a key.
OF_GROUPS = {"behind", "groups"}
#: Keys that have tests of their own.
OF_SOME = OF_RESULTS, OF_UNIQUE, OF_WORKERS, OF_GROUPS
#: Keys that only tasks with a tube have.
OF_TUBES = {"tubes", "waiting"}


#: Each key, and whether the tasks of the test have a tube.
WRONG = pytest.mark.parametrize(
    ("part", "tube"),
    [
        (part, tube)
        for part in sorted(keys.TASKS.keys() - LEFT_OUT - set().union(*OF_SOME))
        for tube in (None, "tube")
        if tube or part not in OF_TUBES
    ],
)


class Spoilt:
    """In this block a key holds a string."""

    def __init__(self, client, name, part):
        self.client = client
        self.name = name
        self.key = f"__pressure__:mp:{{{name}}}:{part}"

    def __enter__(self):
        self.had = self.client.exists(self.key)
        if self.had:
            self.client.rename(self.key, self.key + "-right")
        self.client.set(self.key, "x")
        return self

    def __exit__(self, *exc_info):
        self.client.delete(self.key)
        if self.had:
            self.client.rename(self.key + "-right", self.key)

    def everything(self):
        """What the server has of the queue."""
        found = sorted(self.client.scan_iter(match=f"*{self.name}*"))
        return {key: self.client.dump(key) for key in found if b":kept:" not in key}

    def refusals_of(self, calls):
        """The errors that name a key of another type; each of these calls changed nothing."""
        before, named = self.everything(), []
        for call in calls:
            try:
                call()
            except WrongKeyTypeError as error:
                named.append(str(error))
                assert self.everything() == before
            before = self.everything()
        return named


def are_refused(calls, part, valkey, queue):
    """Some of these calls name the key of another type, and those change nothing."""
    with valkey.client() as client:
        with Spoilt(client, queue.name, part) as spoilt:
            named = spoilt.refusals_of(calls)
        assert named
        assert all(f":{part}'" in error for error in named)
        queue.delete()


@WRONG
def test_a_key_of_another_type_is_named_and_nothing_is_half_done(part, tube, valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.put_many(range(6), tube=tube)
    queue.take(0).bury()
    task = queue.take(0)
    with valkey.client() as client:
        with Spoilt(client, name, part) as spoilt:
            before, named, kept = spoilt.everything(), [], True
            for call in CALLS.values():
                try:
                    call(queue, task)
                except WrongKeyTypeError as error:
                    named.append(str(error))
                    kept = kept and spoilt.everything() == before
                except TaskError:
                    pass  # a call before this one did its part
                before = spoilt.everything()
        assert named
        assert kept
        assert all(f":{part}'" in error for error in named)
        queue.delete()


@WRONG
def test_a_take_does_its_acknowledgement_as_a_whole_or_not_at_all(part, tube, valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.put_many([1, 2, 3], tube=tube)
    task, taken, named = queue.take(0), None, f":{part}'"
    with valkey.client() as client:
        with Spoilt(client, name, part) as spoilt:
            before = spoilt.everything()
            try:
                taken = queue.take(0, ack=task)
            except WrongKeyTypeError as error:
                named = str(error)
                assert task.state == "X" or spoilt.everything() == before
        assert f":{part}'" in named
        there = {one.data: one.state for one in queue.list()}
        rest = {2: "T" if taken else "R", 3: "R"}
        assert there == ({1: "T", **rest} if task.state == "T" else rest)
        assert queue.stats().counts["T"] == list(there.values()).count("T")
        queue.delete()


@pytest.mark.parametrize("part", sorted({*OF_GROUPS, "ready", "tubes"}))
def test_a_key_of_groups_of_another_type_is_named_and_nothing_is_half_done(part, valkey, name):
    queue = TaskQueue(name, url=valkey.url, per_key=2)
    queue.put_many(range(6), key="k", tube="tube")
    task = queue.take(0)
    calls = (
        lambda: queue.put(9, key="k", tube="tube"),
        lambda: queue.take(0),
        lambda: queue.take_many(2, tube="tube"),
        task.ack,
        task.release,
        lambda: queue.kill(queue.list("T")[0]),
    )
    are_refused(calls, part, valkey, queue)


@pytest.mark.parametrize("part", sorted({*OF_RESULTS, "times"}))
def test_a_key_of_results_of_another_type_is_named_and_nothing_is_half_done(part, valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    inbox = queue.inbox()
    queue.put_many(range(3), inbox=inbox, ids=["a", "b", "c"])
    task = queue.take(0)
    calls = (
        lambda: queue.take(0),
        lambda: task.ack(result=bytes(1 << 19) if part == "chunks" else 1),
        lambda: queue.kill("c"),
        lambda: inbox.watch(["b"]),
        lambda: inbox.take(0),
    )
    are_refused(calls, part, valkey, queue)


@pytest.mark.parametrize("part", sorted({*OF_UNIQUE, "times"}))
def test_a_key_of_unique_keys_of_another_type_is_named_and_nothing_is_half_done(part, valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.put(1, unique="one", for_=3600)
    task = queue.take(0)
    queue.put(2, unique="two")
    calls = (
        lambda: queue.put(3, unique="three"),
        lambda: queue.put(4, unique="two", on_conflict="replace"),
        task.ack,
        lambda: queue.kill(queue.list("R")[0]),
    )
    are_refused(calls, part, valkey, queue)


@pytest.mark.parametrize("part", ["presence", "workers"])
def test_a_key_of_workers_of_another_type_is_named_and_nothing_is_half_done(part, valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.put(1)
    queue.take(0)
    leases = TaskLeaseOperations(name)
    calls = (
        queue.workers,
        lambda: inside.run(queue, leases.renew(incarnation(), True, ["a worker"])),
        lambda: inside.run(queue, leases.requeue(incarnation(), "gone")),
    )
    are_refused(calls, part, valkey, queue)


def test_a_count_that_is_none_is_named_and_nothing_is_done(valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.put(1)
    with valkey.client() as client:
        counts = f"__pressure__:mp:{{{name}}}:counts"
        client.hset(counts, "R-T", "many")
        with pytest.raises(Exception, match="not an integer"):
            queue.take(0)
        client.hdel(counts, "R-T")
    assert queue.take(0).data == 1
    queue.delete()
