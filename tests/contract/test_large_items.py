"""Large items: kept beside the queue, in chunks, and like every other item to their users."""

from __future__ import annotations

import pickle

import contents
import inside
import numpy as np
import pytest

import pressure_mp
from pressure_mp import (
    AuthenticationError,
    DecodingError,
    EncodingError,
    FairQueue,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    SimpleQueue,
)
from pressure_mp.encoding.large import CHUNK, MARK, THRESHOLD
from pressure_mp.encoding.signing import Key, Signer
from pressure_mp.engines.contract.contents import StoreChunks
from pressure_mp.engines.contract.replies import Outcome

pytestmark = pytest.mark.usefixtures("world")

SECRET = b"a secret"


@pytest.fixture
def q(url, name):
    found = Queue(name=name, url=url)
    yield found
    if found.exists():
        found.delete()


def array(size, dtype="f8"):
    return np.arange(size // np.dtype(dtype).itemsize, dtype=dtype)


def left_over(q):
    return contents.count_chunks(q), contents.count_uploads(q)


@pytest.mark.parametrize(
    "size",
    [*(THRESHOLD + off for off in (-1, 0, 1)), CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 7],
)
def test_bytes_of_every_size_come_back(q, size):
    item = bytes(range(256)) * (size // 256 + 1)
    q.put(item[:size])
    assert q.get() == item[:size]
    assert left_over(q) == (0, 0)


def test_arrays_come_back_and_can_be_written_to(q):
    big, small, frozen = array(3 * CHUNK), array(800), array(CHUNK)
    frozen.flags.writeable = False
    item = {
        "big": big,
        "small": small,
        "frozen": frozen,
        "fortran": np.asfortranarray(array(2 * CHUNK).reshape(512, -1)),
        "empty": array(0),
        "text": "x" * CHUNK,
    }
    q.put(item)
    got = q.get()
    assert list(got) == list(item)
    for key, value in item.items():
        assert np.array_equal(got[key], value)
    got["big"][0] = got["small"][0] = 7
    assert got["big"].flags.aligned
    assert got["fortran"].flags.f_contiguous
    assert not got["frozen"].flags.writeable
    assert left_over(q) == (0, 0)


def test_the_same_array_twice_is_the_same_array_twice(q):
    one = array(2 * CHUNK)
    q.put([one, one])
    first, second = q.get()
    assert first is second


def test_the_queued_item_of_an_array_is_a_copy(q):
    item = array(2 * CHUNK)
    q.put(item)
    item[0] = 99
    assert q.get()[0] == 0


def test_small_items_are_plain_pickles(q, url, name):
    bare = PressureQueue(name, url=url)
    q.put(array(1000))
    assert np.array_equal(pickle.loads(bare.get_nowait()), array(1000))


def test_an_item_that_cannot_be_pickled_is_an_error_before_anything_is_sent(q):
    with pytest.raises(EncodingError, match="list"):
        q.put([array(2 * CHUNK), lambda: None])
    assert left_over(q) == (0, 0)


@pytest.mark.parametrize("kind", [Queue, LifoQueue, JoinableQueue, SimpleQueue])
def test_large_and_small_items_keep_their_order(kind, url, name):
    with kind(name=name, url=url) as q:
        items = [1, array(CHUNK), 2, b"3" * CHUNK, array(2 * CHUNK)]
        for item in items:
            q.put(item)
        assert q.qsize() == 5
        if kind is LifoQueue:
            items.reverse()
        for item in items:
            assert np.array_equal(q.get(), item)
            if kind is JoinableQueue:
                q.task_done()
        assert left_over(q) == (0, 0)
        q.delete()


def test_a_priority_queue_and_a_fair_one_have_large_items(url, name):
    with PriorityQueue(name=name, url=url) as q:
        for priority in (2, 3, 1):
            q.put((priority, array(CHUNK)))
        assert [q.get()[0] for _ in range(3)] == [1, 2, 3]
        assert left_over(q) == (0, 0)
        q.delete()
    with FairQueue(len, name=name, url=url) as q:
        q.put_many([b"a" * CHUNK, b"b" * CHUNK, "short"])
        picture = q.snapshot()
        assert [item[0] for items in picture.waiting.values() for item in items] == [97, 98, "s"]
        assert [item[0] for _ in range(3) for item in q.get_many(3)] == [97, "s", 98]
        assert left_over(q) == (0, 0)
        q.delete()


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_many_items_at_once_may_have_large_ones_among_them(url, name, kind):
    q = kind(name=name, url=url)
    items = [1, 2, b"3" * CHUNK, 4, array(3 * CHUNK), 6, 7]
    q.put_many(items)
    assert q.qsize() == 7
    got, calls = [], 0
    while len(got) < 7:
        got += q.get_many(10)
        calls += 1
    assert all(np.array_equal(one, other) for one, other in zip(got, items, strict=True))
    assert calls == 5  # a large one is given out alone
    for _ in items:
        q.task_done()
    assert left_over(q) == (0, 0)
    q.delete()


def test_a_full_queue_takes_no_large_item_and_keeps_nothing_of_it(url, name):
    with Queue(1, name, url=url) as q:
        q.put(1)
        for arguments in ({"block": False}, {"timeout": 0.05}):
            with pytest.raises(pressure_mp.Full) as caught:
                q.put(array(2 * CHUNK), **arguments)
            assert caught.value.current_size == 1
            assert left_over(q) == (0, 0)
        with pytest.raises(pressure_mp.Full) as caught:
            q.put_many([array(CHUNK), 2], timeout=0.05)
        assert (caught.value.accepted, len(caught.value.rest)) == (0, 2)
        q.get()
        q.put(array(2 * CHUNK), block=False)
        q.delete()


def test_a_large_item_counts_with_its_size(q):
    q.put(array(4 * CHUNK))
    q.put_many([1, array(2 * CHUNK)])
    while not q.empty():
        q.get()
    found = q.stats()
    assert 6 * CHUNK < found.produced_bytes == found.consumed_bytes < 6 * CHUNK + 1000


def test_after_a_shutdown_no_large_item_is_put_and_a_queued_one_can_be_got(q):
    q.put(array(2 * CHUNK))
    q.shutdown()
    with pytest.raises(pressure_mp.ShutDown):
        q.put(array(2 * CHUNK))
    assert q.get().nbytes == 2 * CHUNK
    assert left_over(q) == (0, 0)


def test_an_immediate_shutdown_drops_queued_items_with_their_chunks(q):
    for _ in range(3):
        q.put(array(10 * CHUNK))
    q.shutdown(immediate=True)
    assert left_over(q) == (0, 0)


def test_deleting_a_queue_deletes_the_chunks(q, url, name):
    q.put(array(2 * CHUNK))
    q.delete()
    again = Queue(name=name, url=url)
    assert left_over(again) == (0, 0)
    again.delete()


def test_an_item_in_flight_keeps_its_content_until_it_is_acknowledged(url, name):
    with JoinableQueue(name=name, url=url) as q:
        q.put(array(20 * CHUNK))
        assert q.get().nbytes == 20 * CHUNK
        assert left_over(q) == (20 + 1, 0)  # 20 chunks of the array, and a bit of pickle
        q._at.here.lease.leave()  # as when this process ends
        assert q.qsize() == 1
        assert q.get().nbytes == 20 * CHUNK
        q.task_done()
        assert left_over(q) == (0, 0)
        assert q.stats().produced_bytes == q.stats().consumed_bytes
        q.delete()


def test_an_item_that_was_delivered_too_often_is_set_aside_with_its_content(url, name):
    with JoinableQueue(name=name, url=url, max_deliveries=1) as q:
        q.put(array(2 * CHUNK))
        q.get()
        q._at.here.lease.leave()
        assert q.empty()
        (item,) = q.rejected()
        assert item.startswith(MARK)
        assert array(2 * CHUNK).tobytes() in item
        q.delete()


class Poison:
    """An object that cannot be unpickled."""

    def __init__(self, size):
        self.content = b"x" * size

    def __setstate__(self, state):
        raise ValueError("poison")


def test_an_item_that_cannot_be_unpickled_is_set_aside_whole(q):
    q.put_many([Poison(2 * CHUNK), 1])
    with pytest.raises(DecodingError, match="poison") as caught:
        q.get()
    assert q.rejected() == [caught.value.payload]
    assert len(caught.value.payload) > 2 * CHUNK
    assert q.get() == 1
    assert q.stats().unfinished == 1


def test_get_many_sets_a_bad_large_item_aside(url, name):
    with JoinableQueue(name=name, url=url) as q:
        q.put_many([Poison(THRESHOLD), 1, 2])
        with pytest.raises(DecodingError, match="poison"):
            q.get_many(10)
        assert q.get_many(10) == [1, 2]
        q.task_done()
        q.task_done()
        assert q.stats().in_flight == q.unfinished_tasks == 0
        q.delete()


def test_bytes_that_only_look_like_a_manifest_are_an_item_like_any_other(url, name):
    with Queue(name=name, url=url, serializer="raw") as q:
        items = [MARK, MARK + b"x" * 100, b"\xfa", MARK + b"0" * 40]
        for item in items:
            q.put(item)
        assert [q.get() for _ in items] == items
        q.put_many(items)
        assert q.get_many(10) == items
        assert q.stats().consumed_bytes == 2 * sum(map(len, items))
        q.delete()


def test_to_a_queue_of_pickles_such_bytes_are_no_item(q, url, name):
    q.open()
    for item in (MARK, MARK + b"0" * 40, MARK + b"f" * 200):
        PressureQueue(name, url=url).put(item)
        with pytest.raises(DecodingError):
            q.get()
    assert len(q.rejected()) == 3


def test_a_signed_large_item_comes_back(url, name):
    with Queue(name=name, url=url, authkey=SECRET) as q:
        q.put([array(3 * CHUNK), "and more"])
        got, text = q.get()
        assert (got.nbytes, text) == (3 * CHUNK, "and more")
        assert left_over(q) == (0, 0)
        q.delete()


def exchange_a_chunk(q, token, number, chunk):
    """What a program can do that may write to the broker and has no key."""
    inside.run(q, _storing(token, number, chunk))


def _storing(token, number, chunk):
    assert (yield StoreChunks(token, number, [[memoryview(chunk)]])) is Outcome.DONE


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_chunk_that_was_exchanged_is_found_and_never_unpickled(kind, url, name, monkeypatch):
    with kind(name=name, url=url, authkey=SECRET) as q:
        q.put(array(3 * CHUNK))
        item = inside.run(q, inside.operations(q).get(False, None))
        token = item[4:28].decode()
        exchange_a_chunk(q, token, 1, bytes(CHUNK))
        inside.run(q, inside.operations(q).put(item, True, None))
        monkeypatch.setattr(pickle, "loads", None)
        with pytest.raises(AuthenticationError, match="exchanged"):
            q.get()
        assert q.stats().rejected == 1
        q.delete()


def test_the_content_of_one_signed_item_is_not_that_of_another(url, name):
    with Queue(name=name, url=url, authkey=SECRET) as q:
        q.put_many([b"a" * CHUNK, b"b" * CHUNK])
        first, second = (inside.run(q, inside.operations(q).get(False, None)) for _ in range(2))
        for forged in (first[:44] + second[44:], first[:36] + second[36:44] + first[44:]):
            inside.run(q, inside.operations(q).put(forged, True, None))
        with pytest.raises((AuthenticationError, DecodingError)):
            q.get()
        q.delete()


@pytest.mark.parametrize("keys", [(None, SECRET), (SECRET, None), (SECRET, b"another")])
def test_a_large_item_of_another_key_is_refused(keys, url, name):
    theirs, ours = (Queue(name=name, url=url, authkey=key) for key in keys)
    theirs.put(array(CHUNK))
    with pytest.raises(AuthenticationError) as caught:
        ours.get()
    assert caught.value.payload.startswith(MARK)
    ours.delete()


def test_a_signed_manifest_without_a_digest_is_refused(url, name):
    """Only a program with the key can make it: a small item whose payload looks like a manifest."""
    with Queue(name=name, url=url, authkey=SECRET) as q:
        large = contents.sample(1)
        sealed = Signer((Key(SECRET),), q.prefix, name).sign(large.manifest[44:])
        inside.run(q, inside.operations(q).put(large.manifest[:44] + sealed, True, None))
        with pytest.raises(DecodingError, match="contradicts"):
            q.get()
        q.delete()
