"""Tasks that were taken together are kept together until something becomes of one of them alone."""

from __future__ import annotations

import time

import pytest
from tasks.pair import Pair, ask, each_checked
from waiting import Background, parks, until

from pressure_mp import TaskQueue
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.engines.contract.task_administration import ChangeTask, GetTaskCounts
from pressure_mp.engines.contract.tasks import (
    AckTask,
    AckTasks,
    BuryTask,
    PutTasks,
    ReleaseTask,
    RequeueTasks,
    TakeTasks,
    TouchTask,
)
from pressure_mp.states import sources

ME, OTHER = "host/1/1/aaaaaaaa", "host/2/2/bbbbbbbb"
#: One more than two bundles.
MANY = 201


class Tasks(Pair):
    def __init__(self, url, **options):
        super().__init__(url)
        self.create(**options)

    def put(self, number=MANY, tube="", ttl=None, key=""):
        self.ask(PutTasks([(b"", b"data")] * number, "auto_increment", 0, ttl, 0, tube, key=key))

    def take(self, limit=MANY, tube="", ttr=None, call=1, owner=ME):
        return self.ask(TakeTasks(owner, call, limit, tube, ttr, waits=False))

    def ack_many(self, *ids, call=1):
        """The places of the tasks that were refused."""
        return self.ask(AckTasks(ME, [(b"%d" % id, call) for id in ids]))

    def by_taker(self, kind, id, call=1, **options):
        return self.ask(kind(b"%d" % id, ME, call, **options))

    def change(self, op, id, to, **options):
        return self.ask(ChangeTask(b"%d" % id, "".join(sources(op)), to, **options))

    def requeue(self, owner=ME, call=None):
        return self.ask(RequeueTasks(owner, "it died", 1000, call=call))


@pytest.fixture
def make(server):
    with each_checked(Tasks, server.url) as making:
        yield making


@pytest.fixture
def entries(server):
    """How many entries the keys have in which taken tasks are looked for."""

    def counting(tasks):
        begin = f"__pressure__:mp:{{{tasks.name}}}:"
        with server.client() as client:
            there = client.zcard(begin + "taken"), client.zcard(begin + "due")
            return *there, client.hlen(begin + "bundles")

    return counting


def test_tasks_taken_together_are_one_entry_for_each_hundred(make, entries):
    tasks = make()
    tasks.put()
    assert len(tasks.take()) == MANY
    assert entries(tasks) == (3, 3, 3)
    tasks.check()
    tasks.ack_many(*range(1, MANY + 1))
    assert entries(tasks) == (0, 0, 0)


def test_one_task_alone_is_no_bundle(make, entries):
    tasks = make()
    tasks.put(1)
    tasks.take()
    assert entries(tasks) == (1, 1, 0)


#: What becomes of the fifth task, by its taker or by an administrator.
ALONE = {
    "ack": lambda tasks: tasks.by_taker(AckTask, 5),
    "ack_many": lambda tasks: tasks.ack_many(5),
    "release": lambda tasks: tasks.by_taker(ReleaseTask, 5, report="why"),
    "release later": lambda tasks: tasks.by_taker(ReleaseTask, 5, delay=10**6, report="why"),
    "bury": lambda tasks: tasks.by_taker(BuryTask, 5, report="why"),
    "touch": lambda tasks: tasks.by_taker(TouchTask, 5, increment=1000),
    "snatch": lambda tasks: tasks.change("snatch", 5, "R"),
    "kill": lambda tasks: tasks.change("kill", 5, "X"),
    "move": lambda tasks: tasks.change("move", 5, "", tube="elsewhere"),
}


@pytest.mark.parametrize("what", ALONE)
@pytest.mark.parametrize("options", [{}, {"keep": True}, {"ttr": None}, {"zombie": 60}], ids=str)
def test_when_one_goes_its_own_way_the_others_stay_taken(what, options, make, entries):
    tasks = make(**options)
    tasks.put()
    tasks.take()
    ALONE[what](tasks)
    tasks.check()
    alone = {"touch": 100 if options.get("ttr", 1) else 1}.get(what, 99)
    assert entries(tasks)[0] == alone + 2  # the other bundles are as they were
    tasks.check()
    tasks.ack_many(*range(1, MANY + 1))
    tasks.check()


@pytest.mark.parametrize("options", [{}, {"keep": True}, {"zombie": 60}], ids=str)
def test_part_of_several_bundles_is_acknowledged(options, make, entries):
    tasks = make(**options)
    tasks.put()
    tasks.take()
    problems = tasks.ack_many(*range(51, 151), 51, 999)[2]
    assert problems == {100: Outcome.ABSENT, 101: Outcome.ABSENT} or options
    assert len(problems) == 2
    assert entries(tasks)[0] == 50 + 50 + 1
    tasks.check()
    tasks.ack_many(*range(1, 51), 201, *range(151, 201))
    assert entries(tasks)[0] == 0


#: Calls of ack_many, one after the other, with nearly the tasks of the bundles of take 1.
NEARLY = {
    "as taken": [(range(1, 202), 1)],
    "twice": [(range(1, 202), 1), (range(1, 202), 1)],
    "backwards": [(range(201, 0, -1), 1)],
    "without the first": [(range(2, 202), 1)],
    "without one in the middle": [([*range(1, 50), *range(51, 202)], 1)],
    "without the last": [(range(1, 201), 1)],
    "the first hundred": [(range(1, 101), 1)],
    "the second hundred first": [([*range(101, 202), *range(1, 101)], 1)],
    "by another take": [(range(1, 202), 2)],
}


@pytest.mark.parametrize("how", NEARLY)
@pytest.mark.parametrize("tubed", [(), range(7, 9), range(201, 202)], ids=str)
@pytest.mark.parametrize("options", [{}, {"ttr": None}, {"keep": True}], ids=str)
def test_whole_bundles_are_acknowledged_as_their_tasks_would_be(how, tubed, options, make, entries):
    tasks = make(**options)
    for number in range(1, MANY + 1):
        tasks.put(1, tube="a" if number in tubed else "")
    tasks.take()
    for ids, call in NEARLY[how]:
        tasks.ack_many(*ids, call=call)
        tasks.check()
    left = entries(tasks)
    tasks.ack_many(*range(1, MANY + 1))
    tasks.check()
    assert entries(tasks) == (0, 0, 0)
    assert (left[0] == 0) == (how in ("as taken", "twice", "backwards", "the second hundred first"))


def test_one_fence_that_is_wrong_leaves_that_task_and_no_other(make, entries):
    tasks = make()
    tasks.put(4)
    tasks.take()
    fences = [(b"1", 1), (b"2", 1), (b"3", 9), (b"4", 1)]
    assert tasks.ask(AckTasks(ME, fences))[2] == {2: ("OtherOwner", "")}
    tasks.check()
    assert entries(tasks)[0] == 1
    tasks.ack_many(3)


def test_a_wait_for_a_task_of_a_whole_bundle_ends(server, name):
    with TaskQueue(name, url=server.url) as queue:
        ids = queue.put_many(range(3))
        tasks = queue.take_many(3)
        waiting = Background(queue.wait, ids[1])
        until(lambda: parks(waiting))
        queue.ack_many(tasks)
        assert waiting.result()[1]
        queue.delete()


def test_tasks_that_a_dead_process_had_in_bundles_come_back(make, entries):
    tasks = make()
    tasks.put(MANY + 10)
    tasks.take(call=1)
    tasks.take(call=2)
    tasks.take(limit=5, call=3, owner=OTHER)
    assert tasks.requeue(call=1) == MANY
    tasks.check()
    assert tasks.requeue() == 10
    assert entries(tasks)[0] == 0
    tasks.check()
    assert len(tasks.take(limit=1000, call=4)) == MANY + 10


def test_bundles_of_a_process_whose_name_ends_alike_stay(make, entries):
    tasks = make()
    tasks.put(4)
    tasks.take(limit=2)
    tasks.take(limit=2, call=2, owner="elsewhere/7/7/aaaaaaaa")
    tasks.requeue()
    tasks.check()
    tasks.ack_many(3, 4)
    tasks.check()
    tasks.requeue(owner="elsewhere/7/7/aaaaaaaa")


def test_a_bundle_whose_time_is_over_is_ready_again(make, entries):
    tasks = make()
    tasks.put()
    tasks.take(ttr=1)
    time.sleep(0.01)
    for _ in range(4):  # a call moves about a hundred
        for binding in tasks.bindings:
            ask(binding, GetTaskCounts())
    assert entries(tasks) == (0, 0, 0)
    assert len(tasks.take(limit=1000, call=2)) == MANY


def test_one_of_a_bundle_that_was_touched_stays_when_the_time_of_the_others_is_over(make):
    tasks = make()
    tasks.put(3)
    tasks.take(ttr=1000)
    tasks.by_taker(TouchTask, 2, increment=10**6)
    time.sleep(1.05)
    assert [task[0] for task in tasks.take(call=2)] == [b"1", b"3"]
    tasks.by_taker(AckTask, 2)


@pytest.mark.parametrize("tube", ["", "a"])
@pytest.mark.parametrize("ttl", [None, 10**6])
def test_tasks_of_every_kind_are_listed_and_removed_from_their_bundles(tube, ttl, make, entries):
    tasks = make()
    tasks.put(tube=tube, ttl=ttl)
    tasks.take(tube=tube)
    tasks.check()
    assert tasks.list("W") == []
    assert tasks.truncate() == MANY
    assert entries(tasks) == (0, 0, 0)


def test_a_list_has_no_more_than_was_asked_for(server, name):
    with TaskQueue(name, url=server.url) as queue:
        queue.put_many(range(MANY))
        taken = queue.take_many(MANY)
        assert len(queue.list("taken", limit=7)) == 7
        assert sorted(task.data for task in queue.list("taken")) == list(range(100))
        assert len(queue.list("taken", limit=1000)) == MANY
        for task in taken:
            task.ack()
        assert queue.stats().counts["T"] == 0
        queue.delete()


def test_a_task_that_was_delivered_before_is_taken_alone_where_that_is_asked(make):
    tasks = make()
    tasks.put(5)
    tasks.take(3)
    for id in (1, 3):
        tasks.by_taker(ReleaseTask, id)
    tasks.ack_many(2)

    def take(call):
        """The ids of the tasks that such a take gets, four at most."""
        taken = tasks.ask(TakeTasks(ME, call, 4, waits=False, retries_alone=True))
        tasks.check()
        return [int(task[0]) for task in taken]

    assert [take(call) for call in (2, 3, 4)] == [[1], [3], [4, 5]]
    tasks.by_taker(ReleaseTask, 4, 4, priority=1)
    tasks.put(2)
    assert [take(call) for call in (5, 6)] == [[6, 7], [4]]


def test_tasks_of_one_key_are_taken_together_where_retries_are_to_be_alone(make):
    tasks = make()
    tasks.put(4, key="k")

    def take(call):
        taken = tasks.ask(TakeTasks(ME, call, 2, waits=False, retries_alone=True))
        return [int(task[0]) for task in taken]

    assert take(1) == [1, 2]
    tasks.by_taker(ReleaseTask, 1)
    assert [take(call) for call in (2, 3)] == [[1], [3, 4]]
