"""Large items through handles with ``buffering``: they never wait on this side of the wire."""

from __future__ import annotations

import contents
import numpy as np
import pytest
from oracle.delivery_clients import Broker
from waiting import LIMIT

import pressure_mp
from pressure_mp import Full, JoinableQueue, Queue
from pressure_mp.encoding.large import CHUNK, THRESHOLD, is_manifest
from pressure_mp.engines.contract.items import NextIsLarge

KINDS = [Queue, JoinableQueue]
A = "elsewhere/1/1/aaaaaaaa"
A1 = f"{A}#1"


def array(size):
    return np.arange(size // 8, dtype="f8")


def left_over(q):
    return contents.count_chunks(q), contents.count_uploads(q)


@pytest.fixture
def make(url, name):
    made = []

    def make(kind=Queue, buffering=64, **options):
        made.append(kind(name=name, url=url, buffering=buffering, prefetch=buffering, **options))
        return made[-1]

    yield make
    for handle in made:
        try:
            handle.close()
        except pressure_mp.PressureError:
            pass  # what a test made to fail
    pressure_mp.PressureQueue(name, url=url).delete()


@pytest.fixture
def broker(url, name):
    made = Broker(url, name)
    made.open()
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("authkey", [None, b"a secret"], ids=["plain", "signed"])
def test_large_items_keep_their_place_among_the_others(make, kind, authkey):
    items = [
        1,
        b"2" * CHUNK,
        3,
        4,
        array(2 * CHUNK),
        array(THRESHOLD // 2),
        {"text": "x" * CHUNK},
        8,
    ]
    sender, receiver = make(kind, authkey=authkey), make(kind, authkey=authkey)
    for item in items:
        sender.put(item)
    sender.flush()
    for item in items:
        assert np.array_equal(receiver.get(timeout=LIMIT), item)
    for _ in items:
        receiver.task_done()
    assert receiver.unfinished_tasks == 0
    assert left_over(receiver) == (0, 0)


@pytest.mark.parametrize("size", [800, THRESHOLD - 8, THRESHOLD, 3 * CHUNK])
def test_an_array_is_queued_as_it_was_when_it_was_put(make, size):
    sender, item = make(), array(size)
    for _ in range(2):  # the first put of a handle goes another way than those that follow
        sender.put(item)
    item[:] = 0
    sender.flush()
    for _ in range(2):
        assert np.array_equal(sender.get(timeout=LIMIT), array(size))


@pytest.mark.parametrize("kind", KINDS)
def test_prefetched_items_go_back_before_a_large_item(make, kind):
    first, second = make(kind), make(kind)
    items = [1, 2, 3, b"4" * CHUNK, 5]
    first.put_many(items)
    assert first.get() == 1
    first.close()
    assert [second.get(timeout=LIMIT) for _ in items[1:]] == items[1:]


@pytest.mark.parametrize("kind", KINDS)
def test_many_items_are_had_at_once_with_buffers_too(make, kind):
    q = make(kind)
    items = [1, 2, b"3" * CHUNK, 4]
    q.put_many(items)
    got = [q.get()]
    while len(got) < len(items):
        got += q.get_many(10)
    assert got == items


def test_a_full_queue_refuses_a_large_item_and_keeps_nothing_of_it(make):
    q = make(maxsize=2)
    q.put(1)
    q.put(2)
    for arguments in ({"block": False}, {"timeout": 0.05}):
        with pytest.raises(Full) as caught:
            q.put(array(2 * CHUNK), **arguments)
        assert caught.value.item.nbytes == 2 * CHUNK
    assert left_over(q) == (0, 0)
    assert q.get() == 1
    q.put(array(2 * CHUNK), timeout=LIMIT)
    assert q.get() == 2
    assert np.array_equal(q.get(), array(2 * CHUNK))


def test_a_large_item_does_not_overtake_what_could_not_be_sent(make, url, name):
    q = make()
    q.put("before")
    q.flush()
    plain = make(buffering=0)
    plain.shutdown()
    q.put("lost")
    with pytest.raises(pressure_mp.ShutDown) as caught:
        q.put(array(CHUNK))
    assert caught.value.rest == ["lost"]
    assert plain.get() == "before"
    assert plain.qsize() == 0
    assert left_over(plain) == (0, 0)


def test_a_client_that_puts_only_large_items_is_a_producer(make):
    sender, receiver = make(eof="producers"), make(eof="producers")
    sender.put(array(CHUNK))
    assert receiver.get(timeout=LIMIT).nbytes == CHUNK
    sender.close()
    with pytest.raises(pressure_mp.ShutDown):
        receiver.get(timeout=LIMIT)


# Operations


def test_a_large_item_is_not_fetched_ahead(broker):
    run, operations = broker.run, broker.operations
    run(operations.put_many([b"1", b"2"], True, None))
    run(operations.put(contents.sample(), True, None))
    run(operations.put(b"4", True, None))
    assert broker.fetch(A1) == [b"1", b"2"]
    assert broker.prefetch(A1) == NextIsLarge()
    assert broker.stats().in_flight == 0
    assert is_manifest(broker.get(False))
    assert broker.fetch(A1) == [b"4"]
