"""Random histories: each order against a plain model of it, on every engine and server."""

from __future__ import annotations

import queue as stdlib
from collections import Counter, deque

import hypothesis.strategies as st
import pytest
from fair_model import FairModel
from hypothesis import given
from random_histories import drawn

from pressure_mp import FairQueue, LifoQueue, PriorityQueue

few = drawn(40)
#: An item to put, or None to get one.
steps = st.lists(st.none() | st.integers(0, 4), max_size=40)


class Lifo(list):
    put = list.append
    get = list.pop


class Priority(list):
    """``list.sort`` keeps equal ones in order."""

    def put(self, item):
        self.append(item)
        self.sort(key=lambda item: item[0])

    def get(self):
        return self.pop(0)


def play(queue, model, history, compare=lambda: None):
    for number, step in enumerate(history):
        if step is not None:
            item = (step, {"number": number})
            queue.put(item)
            model.put(item)
        elif len(model):
            assert queue.get_nowait() == model.get()
        else:
            with pytest.raises(stdlib.Empty):
                queue.get_nowait()
        assert queue.qsize() == len(model)
        compare()
    while len(model):
        assert queue.get_nowait() == model.get()
        compare()


@few
@given(steps, st.lists(st.integers(1, 3), min_size=5, max_size=5))
def test_a_fair_queue_serves_as_the_snapshots_do(url, history, weights):
    with FairQueue(lambda item: item[0], None, url=url, weight=weights.__getitem__) as queue:
        model = FairModel(lambda item: item[0], weights.__getitem__)

        def compare():
            snapshot = queue.snapshot()
            assert (snapshot.current, snapshot.waiting) == model.look()
            keys = {item[0] for item in snapshot.current} | set(snapshot.waiting)
            assert sorted(queue.keys()) == sorted(keys)
            for key in range(5):
                now = [item for item in snapshot.current if item[0] == key]
                assert queue.qsize(key=key) == len(now) + len(snapshot.waiting.get(key, ()))

        play(queue, model, history, compare)


@few
@given(steps)
def test_a_keys_next_item_waits_for_at_most_two_of_each_other_key(url, history):
    with FairQueue(lambda item: item[0], None, url=url) as queue:
        queued: dict[int, deque] = {}
        waited: dict[int, Counter] = {}
        for number, step in enumerate([*history, *[None] * len(history)]):
            if step is not None:
                queue.put((step, number))
                queued.setdefault(step, deque()).append(number)
                waited.setdefault(step, Counter())
            elif queued:
                key, found = queue.get()
                assert queued[key].popleft() == found
                waited.pop(key)
                for others in waited.values():
                    others[key] += 1
                    assert others[key] <= 2
                if queued[key]:
                    waited[key] = Counter()
                else:
                    del queued[key]


def test_a_keys_next_item_can_wait_for_two_of_another_key(url):
    with FairQueue(lambda item: item[0], None, url=url) as queue:
        for item in ("a1", "b1", "b2", "a2"):
            queue.put(item)
        assert [queue.get() for _ in range(4)] == ["a1", "b1", "b2", "a2"]


@few
@given(steps)
def test_a_lifo_queue_serves_the_last_one_first(url, history):
    with LifoQueue(url=url) as queue:
        play(queue, Lifo(), history)


@few
@given(steps)
def test_a_priority_queue_serves_the_lowest_first_and_equal_ones_in_order(url, history):
    with PriorityQueue(url=url) as queue:
        play(queue, Priority(), history)
