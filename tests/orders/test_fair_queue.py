"""FairQueue: its reference's schedule, on every engine and server."""

from __future__ import annotations

import math
import pickle
import queue as stdlib

import pytest
from order_keys import first, name_of, weight_of
from waiting import Background, until

import pressure_mp
from pressure_mp import FairQueue

pytestmark = pytest.mark.usefixtures("world")


def data(queue):
    return queue.get_nowait()["data"]


def put(queue, name, content):
    queue.put({"name": name, "data": content})


@pytest.fixture
def fair(url, name):
    return FairQueue(name_of, name=name, url=url)


def test_the_first_example(fair):
    for name, content in [("alice", 1), ("alice", 2), ("alice", 3), ("bob", "x")]:
        put(fair, name, content)
    assert [data(fair) for _ in range(4)] == [1, "x", 2, 3]


def test_the_second_example(fair):
    put(fair, "alice", 1)
    put(fair, "bob", "x")
    assert data(fair) == 1
    put(fair, "alice", 2)
    put(fair, "alice", 3)
    assert [data(fair) for _ in range(3)] == ["x", 2, 3]


def inside(queue):
    """The data of the snapshot and of the keys' queues."""
    snapshot = queue.snapshot()
    assert snapshot.is_whole
    waiting = {key: [item["data"] for item in items] for key, items in snapshot.waiting.items()}
    return [item["data"] for item in snapshot.current], waiting


def test_the_last_example_with_its_states(fair):
    put(fair, "alice", 1)
    assert inside(fair) == ([], {"alice": [1]})
    put(fair, "bob", "x")
    assert inside(fair) == ([], {"alice": [1], "bob": ["x"]})
    put(fair, "alice", 2)
    assert inside(fair) == ([], {"alice": [1, 2], "bob": ["x"]})
    assert data(fair) == 1
    assert inside(fair) == (["x"], {"alice": [2]})
    put(fair, "alice", 3)
    assert inside(fair) == (["x"], {"alice": [2, 3]})
    put(fair, "alice", 4)
    assert inside(fair) == (["x"], {"alice": [2, 3, 4]})
    assert data(fair) == "x"
    assert inside(fair) == ([], {"alice": [2, 3, 4]})
    put(fair, "bob", "y")
    assert inside(fair) == ([], {"alice": [2, 3, 4], "bob": ["y"]})
    assert data(fair) == 2
    assert inside(fair) == (["y"], {"alice": [3, 4]})
    assert data(fair) == "y"
    assert inside(fair) == ([], {"alice": [3, 4]})
    assert data(fair) == 3
    assert inside(fair) == ([], {"alice": [4]})
    assert data(fair) == 4
    assert inside(fair) == ([], {})


def test_the_example_of_a_full_queue(url, name):
    q = FairQueue(name_of, 1, name, url=url)
    q.put({"name": 1})
    with pytest.raises(stdlib.Full) as caught:
        q.put_nowait({"name": 2})
    assert (caught.value.item, caught.value.current_size) == ({"name": 2}, 1)
    putting = Background(q.put, {"name": 3})
    until(lambda: q.why_blocked().put.holder)
    with pytest.raises(stdlib.Full) as caught:  # also when another waits
        q.put_nowait({"name": 4})
    assert (caught.value.item, caught.value.current_size) == ({"name": 4}, 1)
    assert q.get() == {"name": 1}
    putting.result()


def test_the_bound_is_128_unless_told_otherwise(url, name):
    assert FairQueue(first, name=name, url=url).maxsize == 128
    for none in (None, 0):
        assert FairQueue(first, none, url=url).maxsize == 0
    assert FairQueue.attach(name, key=first, url=url).maxsize == 128
    assert FairQueue.create(name + "2", 7, key=first, url=url).maxsize == 7


def test_none_is_a_key_and_an_item(url, name):
    q = FairQueue(lambda item: None, url=url)
    q.put(None)
    assert (q.keys(), q.qsize(key=None)) == ([None], 1)
    assert q.get() is None


def test_keys_that_are_equal_in_python_are_one_key(url, name):
    q = FairQueue(first, url=url)
    for key in (1, 1.0, True, "1", b"1", (1, None), (1.0, None), 2.5, -(2**70)):
        q.put((key, "item"))
    assert q.qsize(key=1) == 3
    assert q.qsize(key=(1, None)) == 2
    assert q.qsize(key="nobody") == 0
    keys = q.keys()
    assert len(keys) == len(set(keys))
    assert set(keys) == {1, "1", b"1", (1, None), 2.5, -(2**70)}
    assert {type(key) for key in keys if key == 1} == {int}
    assert q.qsize() == 9


@pytest.mark.parametrize(
    ("key", "error"),
    [([1], TypeError), ({}, TypeError), (object(), TypeError), (math.nan, ValueError)],
)
def test_a_wrong_key_is_refused_and_not_queued(key, error, url, name):
    q = FairQueue(lambda item: key, url=url)
    with pytest.raises(error):
        q.put("item")
    assert q.qsize() == 0


def test_a_key_of_weight_w_has_up_to_w_items_in_each_round(url, name):
    q = FairQueue(first, url=url, weight=weight_of)
    for number in range(7):
        q.put(("heavy", number))
    for number in range(3):
        q.put(("light", number))
    heavy, light = [("heavy", n) for n in range(7)], [("light", n) for n in range(3)]
    expected = [*heavy[:3], light[0], *heavy[3:6], light[1], heavy[6], light[2]]
    assert [q.get() for _ in range(10)] == expected


@pytest.mark.parametrize(
    ("weight", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)]
)
def test_a_wrong_weight_is_refused(weight, error, url):
    q = FairQueue(first, url=url, weight=lambda key: weight)
    with pytest.raises(error, match="weight of key 'a'"):
        q.put(("a", 1))
    assert q.qsize() == 0


@pytest.mark.parametrize("key", [None, 5])
def test_a_key_is_a_callable(key, url):
    with pytest.raises(TypeError, match="key"):
        FairQueue(key, url=url)


def test_a_pickled_handle_takes_key_and_weight_along(url, name):
    q = pickle.loads(pickle.dumps(FairQueue(first, name=name, url=url, weight=weight_of)))
    for key in ("heavy", "heavy", "light", "light"):
        q.put((key, 1))
    assert [q.get()[0] for _ in range(4)] == ["heavy", "heavy", "light", "light"]
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(FairQueue(lambda item: item, url=url))


def test_a_snapshot_has_a_limit_and_takes_nothing(url, name):
    q = FairQueue(first, None, url=url)
    for number in range(10):
        q.put((number % 2, number))
    q.get()
    assert q.snapshot(3) == ([(1, 1)], {0: [(0, 2)], 1: [(1, 3)]}, False)
    assert q.snapshot(9).is_whole
    assert q.qsize() == 9
    with pytest.raises(pressure_mp.ArgumentError):
        q.snapshot(0)


def test_a_hog_delays_a_newcomer_by_less_than_two_rounds(url, name):
    q = FairQueue(first, None, url=url, serializer="text")
    for number in range(300):
        q.put(f"h{number}")
    for key in "abc":
        q.put(key)
    q.get()
    q.put("n")
    assert "n" in [q.get() for _ in range(3 + 5)]


def test_a_shutdown_at_once_forgets_every_key(url, name):
    q = FairQueue(first, None, url=url)
    q.put((1, 1))
    q.put((2, 2))
    q.shutdown(immediate=True)
    assert (q.qsize(), q.keys(), q.unfinished_tasks) == (0, [], 0)
    with pytest.raises(pressure_mp.ShutDown):
        q.get()


def test_nothing_is_kept_of_a_key_whose_items_are_gone(server, name):
    q = FairQueue(first, None, name, url=server.url, serializer="raw")
    with server.client() as client:
        pattern = f"*{name}*"

        def kept():
            return {
                key: client.memory_usage(key)
                for key in client.scan_iter(match=pattern)
                if b":kept:" not in key
            }

        q.put(b"0")
        q.get()
        before = kept()
        for number in range(3000):
            q.put(b"%d" % (number % 7))
            if number % 3 == 0:
                q.get()
        while q.qsize():
            q.get()
        after = kept()
        assert after.keys() == before.keys()
        assert sum(after.values()) - sum(before.values()) < 100
        q.delete()
        assert not kept()


def test_its_keys_are_in_one_slot_of_a_cluster(server, name):
    q = FairQueue(first, name=name, url=server.url)
    q.put((1, 1))
    with server.client() as client:
        names = [key.decode() for key in client.scan_iter(match=f"*{name}*")]
    assert names
    assert all(key.startswith(f"__pressure__:mp:{{{name}}}:") for key in names)


def test_many_items_keep_the_schedule_and_tell_what_was_accepted(url, name):
    q = FairQueue(first, 4, url=url)
    q.put_many([("a", 1), ("a", 2), ("b", 3)])
    with pytest.raises(stdlib.Full) as caught:
        q.put_many([("c", 4), ("c", 5)], block=False)
    assert (caught.value.accepted, caught.value.rest) == (1, [("c", 5)])
    assert q.get_many(3) == [("a", 1), ("b", 3), ("c", 4)]
    assert q.get_many(10) == [("a", 2)]
    with pytest.raises(stdlib.Empty):
        q.get_many(10, block=False)
