"""A put and a get have fewer statements where nobody waits; who waits is seen by them all the same,
also by a handle whose first call it is."""

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


def test_the_first_put_of_a_handle_wakes_who_waits_for_an_item(pair):
    getting = waiting(pair[0], pair[0].get)
    pair[1].put("item")
    assert getting.result() == "item"


def test_the_first_get_of_a_handle_wakes_who_waits_for_space(pair):
    pair[0].put(1)
    putting = waiting(pair[0], pair[0].put, 2)
    assert pair[1].get() == 1
    putting.result()
    assert pair[1].get() == 2
