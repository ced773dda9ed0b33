"""Shared memory where a processor may see the writes of another in another order: each step has the
lock of the queue. Here, the steps of such a processor are made on this one."""

from __future__ import annotations

import multiprocessing
from collections import Counter

import pytest
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import Queue
from pressure_mp.engines.shared import items, linux

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
forking = multiprocessing.get_context("fork")
EACH = 500


@pytest.fixture
def make(server, monkeypatch):
    """A queue whose waits end by being woken."""
    monkeypatch.setattr(linux, "IS_ORDERED", False)
    monkeypatch.setattr(items, "TICK", HOURS)
    made = []

    def make(*args):
        made.append(Queue(*args, url=server.url))
        return made[-1]

    yield make
    for q in made:
        q.close()


def put(q, number):
    for item in range(EACH):
        q.put((number, item))


def count(q, counts):
    found = Counter()
    for number, _ in iter(q.get, None):
        found[number] += 1
    counts.put(found)


def test_puts_and_takes_have_one_lock(make):
    ring = make()._at.binding.items.ring
    assert ring.putting is ring.taking


@pytest.mark.parametrize("bound", [0, 3])
def test_each_item_of_several_producers_is_got_once_by_several_consumers(make, bound):
    q, counts = make(bound), forking.SimpleQueue()
    consumers = [forking.Process(target=count, args=(q, counts)) for _ in range(3)]
    producers = [forking.Process(target=put, args=(q, number)) for number in range(3)]
    for process in (*consumers, *producers):
        process.start()
    for process in producers:
        process.join(LIMIT)
    for _ in consumers:
        q.put(None)
    found = sum((counts.get() for _ in consumers), Counter())
    assert found == dict.fromkeys(range(3), EACH)
    for process in consumers:
        process.join(LIMIT)
        assert process.exitcode == 0
    assert q._at.binding.are_here


def test_a_get_is_woken_by_a_put_and_a_put_by_a_get(make):
    q = make(1)
    getting = Background(q.get)
    until(lambda: parks(getting))
    forking.Process(target=q.put, args=("first",)).start()
    assert getting.result() == "first"
    q.put("second")
    putting = Background(q.put, "third")
    until(lambda: parks(putting))
    forking.Process(target=q.get).start()
    putting.result()
    assert q.get() == "third"
