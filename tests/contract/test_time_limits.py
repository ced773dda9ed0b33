"""A time to wait that is negative, as ``deadline - time.monotonic()`` is when it is late."""

from __future__ import annotations

import queue as stdlib

import pytest
from worlds import Looped

from pressure_mp import (
    Empty,
    FairQueue,
    Full,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueDoesNotExistError,
    SimpleQueue,
    TaskQueue,
)

pytestmark = pytest.mark.usefixtures("world")


def buffered(maxsize, **options):
    ahead = {} if issubclass(Queue, Looped) else {"prefetch": 8}
    return Queue(maxsize, buffering=8, **ahead, **options)


def fair(maxsize, **options):
    return FairQueue(bool, maxsize, **options)


#: Those that mirror ``multiprocessing``, or nothing of the standard library.
LENIENT = [Queue, JoinableQueue, buffered, fair]
#: Those that mirror ``queue``.
STRICT = [LifoQueue, PriorityQueue]
NEGATIVE = [-1, -0.001, float("-inf")]


@pytest.mark.parametrize("timeout", NEGATIVE)
@pytest.mark.parametrize("kind", LENIENT)
def test_a_negative_timeout_is_a_time_that_is_over(kind, timeout, url, name):
    with kind(1, name=name, url=url) as q:
        with pytest.raises(Empty):
            q.get(timeout=timeout)
        with pytest.raises(Empty):
            q.get_many(2, timeout=timeout)
        q.put(1, timeout=timeout)
        q.flush()
        with pytest.raises(Full):
            q.put(2, timeout=timeout)
        with pytest.raises(Full) as caught:
            q.put_many([2, 3], timeout=timeout)
        assert caught.value.rest == [2, 3]
        assert q.get(True, timeout) == 1
        q.put_many([2], timeout=timeout)
        assert q.get_many(2, timeout=timeout) == [2]
        q.delete(timeout=timeout)


@pytest.mark.parametrize("timeout", NEGATIVE)
@pytest.mark.parametrize("kind", STRICT)
def test_a_negative_timeout_is_a_value_error_where_it_is_one_in_queue(kind, timeout, url, name):
    theirs = getattr(stdlib, kind.__name__)(1)
    q = kind(1, name=name, url=url)
    for one in (theirs, q):
        with pytest.raises(ValueError, match="'timeout' must be a non-negative number"):
            one.get(timeout=timeout)
        with pytest.raises(ValueError, match="'timeout' must be a non-negative number"):
            one.put(1, timeout=timeout)
        one.put(1, False, timeout)  # a call that does not wait has no timeout
        assert one.get(False, timeout) == 1
    for call in (q.get_many, q.put_many):
        with pytest.raises(ValueError, match="non-negative"):
            call([1] if call == q.put_many else 1, timeout=timeout)
    with pytest.raises(ValueError, match="non-negative"):
        q.delete(timeout)
    assert q.empty()


@pytest.mark.only_threads("of a SimpleQueue")
@pytest.mark.parametrize("timeout", NEGATIVE[:2])  # the standard library's overflows at infinity
def test_a_negative_timeout_of_a_simple_queue_is_a_value_error(timeout, url, name):
    q = SimpleQueue(name, url=url)
    q.put(1)
    for one in (q, stdlib.SimpleQueue()):
        with pytest.raises(ValueError, match="non-negative"):
            one.get(timeout=timeout)
    assert q.get() == 1


@pytest.mark.parametrize("timeout", NEGATIVE)
def test_the_operations_of_the_protocol_do_not_wait_for_a_negative_time(timeout, url, name):
    q = PressureQueue(name, url=url)
    q.create(1)
    q.put(b"x", timeout)
    with pytest.raises(Full):
        q.put(b"y", timeout)
    assert q.get(timeout) == b"x"
    with pytest.raises(Empty):
        q.get(timeout)
    q.close(timeout)
    q.delete(timeout)
    with pytest.raises(QueueDoesNotExistError):
        q.length()


@pytest.mark.only_threads("of a TaskQueue")
@pytest.mark.parametrize("timeout", NEGATIVE)
def test_a_queue_of_tasks_does_not_wait_for_a_negative_time(timeout, url, name):
    q = TaskQueue(name, url=url)
    task, was_processed = q.put(1, wait=timeout)
    assert (task.state, was_processed) == ("R", False)
    assert not q.wait(task.id, timeout)[1]
    first = q.take(timeout)
    q.put(2)
    assert q.take(timeout, ack=first).data == 2
    assert first.state == "X"
    for call in (q.take, lambda timeout: q.take_many(2, timeout)):
        with pytest.raises(Empty):
            call(timeout)
    q.delete()


@pytest.mark.parametrize("kind", [*LENIENT, *STRICT])
@pytest.mark.parametrize(
    ("timeout", "error"), [("1", TypeError), ([], TypeError), (float("nan"), ValueError)]
)
def test_a_timeout_that_is_no_number_of_seconds_is_refused(kind, timeout, error, url, name):
    with kind(1, name=name, url=url) as q:
        with pytest.raises(error, match="'timeout' is a number of seconds or None, not"):
            q.get(timeout=timeout)
        with pytest.raises(error, match="'timeout' is a number of seconds or None, not"):
            q.put(1, timeout=timeout)
        assert q.empty()
        q.delete()
