"""Keys of a queue of items that a server, or another program, removed."""

from __future__ import annotations

import json

import pytest
from programs import killed as programs
from started import run_and_die
from stepwise import StepwiseClient
from waiting import LIMIT, Background

from pressure_mp import (
    Empty,
    FairQueue,
    IncompleteQueueError,
    JoinableQueue,
    LifoQueue,
    PressureError,
    PriorityQueue,
    Queue,
    QueueMismatchError,
)
from pressure_mp.cli import statuses

pytestmark = pytest.mark.usefixtures("no_looks")

SORTED = {
    "priority": lambda name, url: PriorityQueue(5, name, url=url),
    "fair": lambda name, url: FairQueue(lambda item: str(item % 2), 5, name, url=url),
}


@pytest.fixture
def remove(remove_key, name):
    """Removes a key of the queue: ``{0}`` begins one of its own, ``{1}`` one of the protocol's."""
    return lambda ending: remove_key(ending.format(f"mp:{{{name}}}", name))


@pytest.fixture
def look(call, name):
    """What doctor tells of the queue."""

    def look(*arguments):
        lines = call("doctor", "--json", *arguments, status=statuses.FOUND).splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [one for one in found if one["subject"] == f"queue {name!r}"]

    return look


def listed(call, name):
    """What the list has of the only queue in whose name this is."""
    (found,) = [line for line in call("ls", "--json").splitlines() if name in line]
    return json.loads(found)


@pytest.mark.parametrize("kind", SORTED)
def test_a_get_of_an_item_that_is_lost_says_so_and_removes_nothing(
    server, name, remove, call, look, kind
):
    q = SORTED[kind](name, server.url)
    q.put_many([1, 2, 3])
    remove("{}:items")
    for _ in range(2):
        for get in (q.get_nowait, lambda: q.get(timeout=LIMIT), lambda: q.get_many(2)):
            with pytest.raises(IncompleteQueueError, match=r"`items`.*pressure-mp doctor` says"):
                get()
    assert q.qsize() == 3
    with pytest.raises(IncompleteQueueError):
        q.peek()
    (found,) = look()
    assert found["problem"].startswith("Items are missing whose order is there")
    assert found["loses_data"]
    assert "`pressure-mp doctor` says what to do" in call("why", name)
    call("purge", name, "--yes")
    assert look() == []
    q.put(4)
    assert q.get() == 4


def test_items_before_one_that_is_lost_are_got(server, name, remove):
    q = PriorityQueue(name=name, url=server.url)
    q.put((2, "lost"))
    remove("{}:items")
    q.put_many([(1, "there"), (3, "behind")])
    assert q.get_many(3) == [(1, "there")]
    with pytest.raises(IncompleteQueueError):
        q.get_many(3)
    assert q.qsize() == 2


KINDS = SORTED | {"lifo": lambda name, url: LifoQueue(5, name, url=url)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_that_lost_its_kind_is_named_and_whole_when_its_class_opens_it(
    server, name, remove, call, look, kind
):
    KINDS[kind](name, server.url).put_many([1, 2, 3])
    remove("{}:meta")
    (found,) = look()
    assert found["problem"].startswith("The key that says its discipline is missing")
    assert name not in call("ls", "--json")
    assert "doctor" in call("info", name, status=statuses.FAILED)
    for other, make in KINDS.items():
        if other != kind:
            with pytest.raises(PressureError):
                make(name, server.url).open()
    with pytest.raises(QueueMismatchError):
        Queue(5, name, url=server.url).open()
    q = KINDS[kind](name, server.url)
    q.open()
    assert look() == []
    assert listed(call, name)["discipline"] == kind
    assert sorted(q.get_many(3)) == [1, 2, 3]


def test_a_queue_whose_name_looks_like_a_key_of_another_kind_is_itself(server, name, call, look):
    Queue(5, f"mp:{{{name}}}", url=server.url).put(1)
    assert listed(call, name)["length"] == 1
    assert look() == []


def test_an_item_that_was_lost_in_flight_is_named_until_it_counts_as_done(
    server, name, remove, call, look
):
    q = JoinableQueue(5, name, url=server.url)
    q.put("lost")
    run_and_die(programs.take_and_die, "get", q)
    remove("{1}:mp:in_flight")
    for _ in range(2):
        (found,) = look()
        assert found["problem"].startswith("Items were taken that are neither in flight nor")
        assert "Items that were in flight are missing" in call("why", name)
        with pytest.raises(Empty):  # others give back what the ended process had
            q.get(timeout=1)
        assert q.unfinished_tasks == 1
    (found,) = look("--fix")
    assert found["fixed"]
    assert Background(q.join).result() is None
    assert look() == []


def test_an_item_that_was_lost_in_flight_can_be_acknowledged_by_its_consumer(
    server, name, remove, look
):
    q = JoinableQueue(5, name, url=server.url)
    q.put("there")
    assert q.get() == "there"
    remove("{1}:mp:in_flight")
    (found,) = look("--fix")
    assert found["fixed"]
    assert q.unfinished_tasks == 1
    q.task_done()
    assert Background(q.join).result() is None
    assert look() == []


@pytest.mark.parametrize("bound", [0, 5])
@pytest.mark.parametrize("kind", ["fifo", "lifo"])
def test_a_missing_sign_of_space_is_named_and_put_back(
    server, name, remove, call, look, kind, bound
):
    q = (Queue if kind == "fifo" else LifoQueue)(bound, name, url=server.url)
    sign = "{1}:not_full" if kind == "fifo" else "{0}:not_full"
    q.put_many([1, 2, 3])
    remove(sign)
    why = call("why", name)
    assert "the key that says that there is space is missing" in why
    assert "a put waits for nothing" in why
    (found,) = look("--fix")
    assert found["problem"].startswith("The key that says that there is space is missing")
    assert found["fixed"]
    assert look() == []
    remove(sign)
    q.put(4)
    assert look() == []


def test_a_sign_that_is_rightly_not_there_is_not_missed(server, name, remove, look):
    q = Queue(1, name, url=server.url)
    q.put(1)
    assert look() == []
    q.get()
    theirs = StepwiseClient(server.port, name)
    theirs.take("producer")
    remove("{1}:not_full")
    assert not any("space is missing" in one["problem"] for one in look())
    theirs.abort()
