"""An item that was put or got is kept by its user only: no call leaves it to garbage collection."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from waiting import Background, parks, until

from pressure_mp import JoinableQueue, LifoQueue, PriorityQueue, Queue, TaskQueue
from pressure_mp.encoding.large import THRESHOLD

SMALL, LARGE = 8, THRESHOLD


def array(size):
    return np.zeros(size // 8)


@pytest.fixture(autouse=True)
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=[Queue, JoinableQueue, LifoQueue, PriorityQueue])
def q(request, url, name, world):
    options = {"key": lambda item: 0} if request.param.__name__ == "PriorityQueue" else {}
    with world(request.param)(name=name, url=url, **options) as found:
        yield found
        found.delete()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_an_item_that_was_put_and_got_is_freed_with_its_last_reference(q, size):
    for _ in range(3):
        item = array(size)
        given = weakref.ref(item)
        q.put(item)
        del item
        got = q.get()
        taken = weakref.ref(got)
        del got
        q.task_done()
        assert (given(), taken()) == (None, None)


@pytest.mark.only_threads  # its like is in test_aio_objects
def test_an_item_that_a_get_waited_for_is_freed_with_its_last_reference(q):
    for _ in range(3):
        got = got_by_a_waiting_get(q)
        q.task_done()
        assert got() is None


def got_by_a_waiting_get(q):
    getting = Background(q.get)
    until(lambda: parks(getting))
    q.put(array(LARGE))
    return weakref.ref(getting.result())


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_many_items_are_free_with_their_list(q, size):
    q.put_many([array(size) for _ in range(3)])
    got = []
    while len(got) < 3:
        got += q.get_many(3)
    taken = [weakref.ref(item) for item in got]
    del got
    for _ in taken:
        q.task_done()
    assert [one() for one in taken] == [None] * 3


@pytest.mark.only_threads
def test_a_task_is_free_when_it_was_acknowledged(url, name):
    queue = TaskQueue(name, url=url)
    for _ in range(3):
        queue.put(array(SMALL))
        task = queue.take()
        data = weakref.ref(task.data)
        queue.ack(task)
        del task
        assert data() is None
    queue.delete()
