"""A put and a get have fewer statements where no call waits; they see a call that waits all the
same, in the first call of a handle and in later calls, when the handle knows the queue."""

from __future__ import annotations

from typing import Any

import pytest
from brokers import postgres as servers
from waiting import HOURS, Background, until

from pressure_mp import Queue
from pressure_mp.engines import registry

pytestmark = pytest.mark.usefixtures("no_ticks", "no_looks")


def waiting(q: Queue[Any], call: Any, *args: Any) -> Background:
    found = Background(call, *args)
    engine = registry.engine(registry.parse(q.url))
    until(lambda: servers.waiters(engine, q.name) == 1)
    return found


@pytest.fixture
def pair(postgres, name):
    """Two handles to a queue that has space for one item."""
    return [Queue(1, name=name, url=postgres.limited_url, lease=HOURS) for _ in range(2)]


def test_the_first_put_of_a_handle_wakes_a_get_that_waits(pair):
    getting = waiting(pair[0], pair[0].get)
    pair[1].put("item")
    assert getting.result() == "item"


def test_the_first_get_of_a_handle_wakes_a_put_that_waits(pair):
    pair[0].put(1)
    putting = waiting(pair[0], pair[0].put, 2)
    assert pair[1].get() == 1
    putting.result()
    assert pair[1].get() == 2


@pytest.fixture
def known(pair, monkeypatch):
    """They made such calls before, and what they know of the queue stays worth knowing."""
    from pressure_mp.engines.postgres import quick

    monkeypatch.setattr(quick, "_FRESH", HOURS)
    for q in pair:
        q.put("before")
        q.get()
    return pair


def test_a_later_put_of_a_handle_wakes_a_get_that_waits(known):
    getting = waiting(known[0], known[0].get)
    known[1].put("item")
    assert getting.result() == "item"


def test_a_later_get_of_a_handle_wakes_a_put_that_waits(known):
    known[0].put(1)
    putting = waiting(known[0], known[0].put, 2)
    assert known[1].get() == 1
    putting.result()
    assert known[1].get() == 2


def test_a_queue_that_was_deleted_is_not_taken_for_the_one_that_has_its_name_now(
    postgres, name, known
):
    known[0].delete()
    q = Queue(name=name, url=postgres.limited_url)
    for number in range(10):  # its version is a later one than that of the former queue
        q.put(number)
        q.get()
    known[1].put("item")
    assert [q.qsize(), q.get(timeout=0)] == [1, "item"]
    q.put("item")
    assert known[1].get(timeout=0) == "item"
