"""A number may be of any type that is one: of numpy, of pandas, or of the standard library."""

from __future__ import annotations

from fractions import Fraction

import pytest

import pressure_mp
from pressure_mp import ArgumentError, ArgumentTypeError, FairQueue, JoinableQueue, Queue, TaskQueue

pytestmark = pytest.mark.usefixtures("world")


class Integer:
    """All that an integer needs to be one."""

    def __init__(self, value):
        self._value = value

    def __index__(self):
        return self._value


def of_numpy(kind):
    def make(value):
        return getattr(pytest.importorskip("numpy"), kind)(value)

    make.__name__ = kind
    return make


@pytest.fixture(params=[Integer, of_numpy("int64"), of_numpy("uint8")], ids=lambda k: k.__name__)
def integer(request):
    return request.param


@pytest.fixture(params=[Fraction, of_numpy("float32"), of_numpy("int64")], ids=lambda k: k.__name__)
def real(request):
    return request.param


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_bound_and_a_number_of_items_may_be_any_integer(integer, kind, url, name):
    q = kind(integer(3), name, url=url, buffering=integer(0))
    assert (q.maxsize, type(q.maxsize)) == (3, int)
    q.maxsize = integer(2)
    q.put_many([1, 2])
    assert q.full()
    assert q.peek(integer(5)) == [1, 2]
    assert q.rejected(integer(1)) == []
    assert q.get_many(integer(1)) == [1]
    assert q.get_many(integer(9)) == [2]
    for wrong in (integer(0), 0):
        with pytest.raises(ArgumentError, match="max_items is 1 or more, not 0"):
            q.get_many(wrong)
    q.delete()


@pytest.mark.only_threads("there is no prefetch in asyncio")
def test_the_sizes_of_buffers_may_be_any_integers(integer, url, name):
    with Queue(name=name, url=url, buffering=integer(8), prefetch=integer(8)) as q:
        q.put(1)
        q.flush()
        assert q.get() == 1
        q.delete()


def test_limits_of_deliveries_and_weights_may_be_any_integer(integer, url, name):
    assert JoinableQueue(name=name, url=url, max_deliveries=integer(2)).empty()
    fair = FairQueue(
        lambda item: "key", integer(9), f"{name} fair", weight=lambda key: integer(2), url=url
    )
    fair.put(1)
    assert fair.snapshot(integer(1)).is_whole
    assert fair.get() == 1


@pytest.mark.only_threads("a TaskQueue of asyncio checks by the same functions")
def test_the_numbers_of_tasks_may_be_of_any_type(integer, real, url, name):
    tasks = TaskQueue(name, url=url, max_deliveries=integer(2), per_key=integer(3), ttr=real(7))
    tasks.put("a", id=integer(5), priority=real(2), delay=real(0))
    assert [(task.id, task.priority) for task in tasks.list(limit=integer(1))] == [(5, 2)]
    (task,) = tasks.take_many(integer(2), real(1))
    task.bury()
    assert tasks.kick_many(integer(1)) == 1
    tasks.delete()


def test_a_time_may_be_any_real_number(real, url, name):
    q = Queue(name=name, url=url, lease=real(5), reconnect=real(7))
    for call in (lambda: q.get(timeout=real(0)), lambda: q.get_many(1, timeout=real(0))):
        with pytest.raises(pressure_mp.Empty):
            call()
    q.delete()


@pytest.mark.parametrize("wrong", [2.0, "2", True, None, Fraction(2)], ids=repr)
def test_a_value_that_is_no_integer_is_a_type_error_that_names_the_argument(wrong, url, name):
    q = Queue(name=name, url=url)
    calls = {
        "maxsize": lambda: setattr(q, "maxsize", wrong),
        "max_items": lambda: q.get_many(wrong),
        "limit": lambda: q.rejected(wrong),
    }
    for what, call in calls.items():
        with pytest.raises(
            ArgumentTypeError, match=f"{what} is an int, not {type(wrong).__name__}"
        ):
            call()
    q.delete()


@pytest.mark.parametrize("kind", ["int64", "uint8"])
def test_a_database_may_be_any_integer(kind, server, name):
    db = of_numpy(kind)(0)
    q = Queue(name=name, host="127.0.0.1", port=server.port, db=db)
    q.put(1)
    assert Queue(name=name, url=server.url).get() == 1
    for what in ("port", "db"):
        with pytest.raises(pressure_mp.AddressError, match=f"{what} is '6.5', which is not a"):
            Queue(**{what: 6.5})
    q.delete()


@pytest.mark.parametrize("wrong", ["2", True, 2j], ids=repr)
def test_a_value_that_is_no_real_number_is_a_type_error_that_names_the_argument(wrong, url):
    for what in ("lease", "reconnect"):
        with pytest.raises(ArgumentTypeError, match=f"{what} is a number of seconds, not"):
            Queue(url=url, **{what: wrong})
