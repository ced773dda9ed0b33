"""PriorityQueue and LifoQueue, beyond what the standard library's own tests look at."""

from __future__ import annotations

import math
import pickle

import hypothesis.strategies as st
import pytest
from hypothesis import given
from order_keys import name_of
from random_histories import drawn

from pressure_mp import ArgumentError, ArgumentTypeError, LifoQueue, PriorityQueue

pytestmark = pytest.mark.usefixtures("world")

numbers = st.integers() | st.floats(allow_nan=False) | st.booleans()


def drain(queue):
    return [queue.get_nowait() for _ in range(queue.qsize())]


@drawn(40)
@given(st.lists(numbers) | st.lists(st.text()) | st.lists(st.tuples(numbers, st.binary())))
def test_items_come_out_as_python_sorts_them(url, items):
    with PriorityQueue(url=url) as queue:
        for item in items:
            queue.put(item)
        assert drain(queue) == sorted(items)


def test_of_a_tuple_the_members_count_that_can_be_priorities(url):
    q = PriorityQueue(url=url)
    items = [(2, {"job": 1}), (1, {"job": 2}), (1, {"job": 3}), (-math.inf, [{}])]
    for item in items:
        q.put(item)
    assert drain(q) == [items[3], items[1], items[2], items[0]]


def test_a_key_tells_the_priority_of_any_item_and_travels_with_the_handle(url, name):
    q = pickle.loads(pickle.dumps(PriorityQueue(name=name, url=url, key=name_of)))
    for number in (3, 1, 2):
        q.put({"name": number})
    assert [item["name"] for item in drain(q)] == [1, 2, 3]


@pytest.mark.parametrize("item", [{}, object(), ({}, 1), Exception()])
def test_an_item_without_a_priority_is_refused_and_not_queued(item, url):
    q = PriorityQueue(url=url)
    with pytest.raises(ArgumentTypeError, match=r"PriorityQueue\(key=...\)"):
        q.put(item)
    assert (q.qsize(), q.unfinished_tasks) == (0, 0)


def test_nan_is_refused_and_not_queued(url):
    q = PriorityQueue(url=url)
    with pytest.raises(ArgumentError, match="nan"):
        q.put((math.nan, "job"))
    assert q.qsize() == 0


@pytest.mark.parametrize(
    ("queued", "item"),
    [
        ([1, 3], "2"),
        (["a"], b"a"),
        ([None], 0),
        ([(1, "a"), (2, "b")], (1, 5)),
        ([(1, 5)], (1, {})),
        ([[1]], (1,)),
        ([(1,), (1, b"x"), (2, "x")], (1, "a")),
    ],
)
def test_an_item_that_python_cannot_compare_with_queued_items_is_refused(queued, item, url):
    q = PriorityQueue(url=url)
    for other in queued:
        q.put(other)
    with pytest.raises(ArgumentTypeError, match="Python cannot compare"):
        q.put(item)
    assert drain(q) == sorted(queued)
    q.put(item)  # it is compared with no other item now


def test_a_key_is_a_callable(url):
    with pytest.raises(ArgumentTypeError, match="key is a callable"):
        PriorityQueue(url=url, key=5)


def test_a_lifo_queue_gives_the_last_one_first(url):
    q = LifoQueue(url=url)
    for item in (1, 2, 3):
        q.put(item)
    assert q.get() == 3
    q.put(4)
    assert drain(q) == [4, 2, 1]


def test_many_items_are_put_by_their_priorities_until_one_has_none(url):
    q = PriorityQueue(url=url)
    q.put_many([3, 1, 2])
    with pytest.raises(ArgumentTypeError, match="Python cannot compare") as caught:
        q.put_many([0, "x", 5])
    assert (caught.value.accepted, caught.value.rest) == (1, ["x", 5])
    assert q.get_many(10) == [0, 1, 2, 3]
    last = LifoQueue(url=url)
    last.put_many([1, 2, 3])
    assert last.get_many(2) == [3, 2]
