"""A wait that its own thread ends when it is told to: for what stops cleanly."""

from __future__ import annotations

import threading

import pytest
from waiting import Background, parks, until

from pressure_mp import Empty, Full, Queue
from pressure_mp.drivers import waits_end_when
from pressure_mp.effects import WaitEnded


def wait_until_told(told, operation):
    with waits_end_when(told.is_set):
        return operation()


@pytest.mark.parametrize("operation", ["get", "put"])
def test_a_wait_ends_within_a_second_and_leaves_nothing_held(url, name, operation):
    queue = Queue(1, name, url=url)
    if operation == "put":
        queue.put(1)
    calls = {"get": queue.get, "put": lambda: queue.put(2)}
    told = threading.Event()
    waiting = [Background(wait_until_told, told, calls[operation]) for _ in range(2)]
    until(lambda: all(map(parks, waiting)))
    told.set()
    for one in waiting:
        with pytest.raises(WaitEnded):
            one.result()
    # No ended call holds a role or a place in line: other calls are served at once.
    if operation == "put":
        assert queue.get() == 1
        with pytest.raises(Empty):
            queue.get(timeout=0.05)
    else:
        queue.put(1)
        with pytest.raises(Full):
            queue.put(2, timeout=0.05)
        assert queue.get(timeout=0.05) == 1


def test_a_call_that_need_not_wait_is_done(url, name):
    queue = Queue(0, name, url=url)
    queue.put(1)
    with waits_end_when(lambda: True):
        assert queue.get() == 1
        with pytest.raises(WaitEnded):
            queue.get()
        with pytest.raises(Empty):
            queue.get(False)


def test_other_threads_and_later_waits_are_left_alone(url, name):
    queue = Queue(0, name, url=url)
    with waits_end_when(lambda: True):
        other = Background(queue.get)
    queue.put("other")
    assert other.result() == "other"
    waiting = Background(queue.get)
    until(lambda: parks(waiting))
    queue.put("later")
    assert waiting.result() == "later"
