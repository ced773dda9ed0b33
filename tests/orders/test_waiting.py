"""A client that is killed while it waits on a queue of any order delays the others by little."""

from __future__ import annotations

import pytest
from order_keys import same
from programs.dying_clients import Doomed
from waiting import HOURS, Background, blocked, lasting, until

from pressure_mp import FairQueue, LifoQueue, PriorityQueue, ShutDown

pytestmark = pytest.mark.usefixtures("world")

KINDS = {
    "lifo": lambda **options: LifoQueue(**options),
    "priority": lambda **options: PriorityQueue(key=same, **options),
    "fair": lambda **options: FairQueue(same, **options),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_killed_with_the_role_does_not_keep_the_next_from_an_item(kind, valkey, name):
    q = KINDS[kind](maxsize=1, name=name, url=valkey.url, lease=HOURS)
    with valkey.client() as observer:
        doomed = Doomed(observer, q, "get")
        until(doomed.is_waiting)
        before = blocked(observer)
        getting = Background(q.get)
        until(lambda: blocked(observer) > before)
        doomed.kill()
        q.put("item")
        assert getting.result() == "item"
        q.delete()
        assert not lasting(observer, f"*{name}*")


def test_a_producer_killed_with_the_role_does_not_keep_the_next_from_space(valkey, name):
    q = FairQueue(same, 1, name, url=valkey.url, lease=HOURS)
    q.put("first")
    with valkey.client() as observer:
        doomed = Doomed(observer, q, "put")
        until(doomed.is_waiting)
        before = blocked(observer)
        putting = Background(q.put, "second")
        until(lambda: blocked(observer) > before)
        doomed.kill()
        assert q.get() == "first"
        putting.result()
        assert q.get() == "second"


@pytest.mark.parametrize("kind", KINDS)
def test_an_anonymous_queue_of_any_order_leaves_nothing_behind(kind, valkey):
    q = KINDS[kind](url=valkey.url)
    q.put("item")
    with valkey.client() as observer:
        assert lasting(observer, f"*{q.name}*")
        q.close()
        assert not lasting(observer, f"*{q.name}*")


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_all_producers_is_the_end_of_a_queue_of_any_order(kind, valkey, name):
    producer, consumer = (KINDS[kind](name=name, url=valkey.url, eof="producers") for _ in range(2))
    producer.put("last")
    assert consumer.get() == "last"
    getting = Background(consumer.get)
    producer.close()
    with pytest.raises(ShutDown):
        getting.result()
    consumer.delete()
