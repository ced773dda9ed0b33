"""Many items in one call: put_many and get_many."""

from __future__ import annotations

import itertools
import os
import threading

import pytest
from waiting import Background, until

import pressure_mp
from pressure_mp import (
    Empty,
    EncodingError,
    Full,
    JoinableQueue,
    PressureQueue,
    Queue,
    ShutDown,
    SimpleQueue,
)

pytestmark = pytest.mark.usefixtures("world")


def get_all(q, limit=1000):
    """Everything that is there, in calls of up to ``limit`` items."""
    got = []
    while True:
        try:
            got += q.get_many(limit, block=False)
        except Empty:
            return got


@pytest.mark.parametrize("kind", [Queue, SimpleQueue, JoinableQueue])
def test_many_items_come_out_in_the_order_they_went_in(url, name, kind):
    q = kind(name=name, url=url)
    q.put(0)
    q.put_many(range(1, 2500))  # more than one call can have
    q.put(2500)
    assert q.qsize() == 2501
    assert q.get() == 0
    assert q.get_many(10) == list(range(1, 11))
    assert get_all(q) == list(range(11, 2501))
    stats = q.stats()
    assert (stats.produced_messages, stats.consumed_messages) == (2501, 2501)
    assert stats.produced_bytes == stats.consumed_bytes


def test_bytes_of_the_protocol_go_and_come_in_batches(url, name):
    q = PressureQueue(name, url=url)
    q.create(3)
    with pytest.raises(Full) as caught:
        q.put_many([b"1", b"", b"\r\n$1", b"4"], block=False)
    assert (caught.value.accepted, caught.value.rest) == (3, [b"4"])
    assert q.get_many(2) == [b"1", b""]
    assert q.get_many(2) == [b"\r\n$1"]
    with pytest.raises(Empty):
        q.get_many(2, timeout=0.01)
    with pytest.raises(TypeError):
        q.put_many([b"5", "six"])
    assert q.length() == 0


def test_nothing_is_put_of_nothing(url, name):
    q = Queue(name=name, url=url)
    q.put_many([])
    q.put_many(iter(()))
    assert q.empty()


def test_a_call_has_at_most_a_thousand_items_and_a_megabyte_or_one_item(url, name):
    q = Queue(name=name, url=url, serializer="raw")
    large = bytes(400_000)
    q.put_many([*[large] * 5, bytes(3_000_000), b"last"])
    sizes = []
    while not q.empty():
        sizes.append([len(item) for item in q.get_many(10)])
    assert sizes[:2] == [[400_000] * 2] * 2
    assert [size for call in sizes for size in call] == [*[400_000] * 5, 3_000_000, 4]
    q.put_many([b"x"] * 1500)
    assert len(q.get_many(5000)) == 1000


def test_get_many_waits_only_for_the_first(url, name):
    q = Queue(name=name, url=url)
    getting = Background(q.get_many, 5)
    with pytest.raises(Empty):
        q.get_many(5, block=False)
    q.put("one")
    assert getting.result() == ["one"]


def test_put_many_waits_for_space_as_often_as_it_must(url, name):
    q = Queue(3, name, url=url)
    putting = Background(q.put_many, range(10))
    until(q.full)
    assert putting.is_alive()
    got = []
    while len(got) < 10:
        assert q.qsize() <= 3
        got += q.get_many(2)
    putting.result()
    assert got == list(range(10))


@pytest.mark.parametrize("timeout", [0, 0.2])
def test_a_full_queue_says_how_many_went_in_and_which_did_not(url, name, timeout):
    q = Queue(3, name, url=url)
    q.put("first")
    with pytest.raises(Full) as caught:
        q.put_many("abcd", timeout=timeout)
    assert (caught.value.accepted, caught.value.rest) == (2, ["c", "d"])
    with pytest.raises(Full) as caught:
        q.put_many("cd", block=False)
    assert (caught.value.accepted, caught.value.rest) == (0, ["c", "d"])
    assert q.get_many(10) == ["first", "a", "b"]


def test_an_object_that_cannot_be_serialized_keeps_all_of_its_batch_out(url, name):
    q = Queue(name=name, url=url)
    items = [1, threading.Lock(), 3]
    with pytest.raises(EncodingError) as caught:
        q.put_many(items)
    assert (caught.value.accepted, caught.value.rest) == (0, items)
    assert q.empty()


def test_a_shutdown_in_the_middle_says_how_many_went_in(url, name):
    q = Queue(2, name, url=url)
    putting = Background(q.put_many, "abcd")
    until(q.full)
    q.shutdown()
    with pytest.raises(ShutDown) as caught:
        putting.result()
    assert (caught.value.accepted, caught.value.rest) == (2, ["c", "d"])
    assert q.get_many(9) == ["a", "b"]
    with pytest.raises(ShutDown):
        q.get_many(9)


def test_waiting_calls_of_get_many_are_woken_by_a_shutdown(url, name):
    q = Queue(name=name, url=url)
    getting = [Background(q.get_many, 9) for _ in range(3)]
    with pytest.raises(Empty):
        q.get(timeout=0.1)
    q.shutdown(immediate=True)
    for each in getting:
        with pytest.raises(ShutDown):
            each.result()


def test_an_item_that_cannot_be_decoded_keeps_the_others_of_its_batch(url, name):
    raw = PressureQueue(name, url=url)
    q = Queue(name=name, url=url)
    q.put_many([1, 2])
    raw.put(b"no pickle")
    q.put(3)
    with pytest.warns(pressure_mp.RejectedItemWarning, match="9 bytes.*decoded") as caught:
        assert q.get_many(10) == [1, 2, 3]
    assert not caught[0].filename.startswith(os.path.dirname(pressure_mp.__file__))
    assert q.rejected() == [b"no pickle"]
    raw.put(b"no pickle either")
    with pytest.raises(pressure_mp.DecodingError):
        q.get_many(10)
    assert q.stats().rejected == 2


def test_items_of_many_are_in_flight_each_by_itself(url, name):
    q = JoinableQueue(name=name, url=url)
    q.put_many(range(3))
    assert q.get_many(5) == [0, 1, 2]
    assert q.unfinished_tasks == 3
    for left in (2, 1, 0):
        q.task_done()
        assert q.unfinished_tasks == left
    q.join()


@pytest.mark.parametrize(("number", "error"), [(0, ValueError), (-1, ValueError), ("3", TypeError)])
def test_how_many_is_a_positive_number(url, name, number, error):
    q = Queue(name=name, url=url)
    with pytest.raises(error, match="max_items"):
        q.get_many(number)


def test_a_closed_handle_puts_and_gets_none(url, name):
    q = Queue(name=name, url=url)
    q.close()
    with pytest.raises(pressure_mp.HandleClosedError):
        q.put_many([1])
    with pytest.raises(pressure_mp.HandleClosedError):
        q.get_many(1)


@pytest.mark.parametrize("maxsize", [0, 7])
def test_single_calls_and_batches_of_several_clients_mix(url, name, maxsize):
    """The bound holds, nothing is lost or doubled, and each producer's items stay in order."""
    q = Queue(maxsize, name, url=url)
    each = 300

    def produce(producer, size):
        numbers = iter(range(each))
        while batch := [(producer, number) for number in itertools.islice(numbers, size)]:
            if size == 1:
                q.put(batch[0])
            else:
                q.put_many(batch)

    def consume(size):
        got = []
        while True:
            try:
                got.append([q.get()] if size == 1 else q.get_many(size))
            except ShutDown:
                return [item for call in got for item in call]
            if maxsize:
                assert q.qsize() <= maxsize

    consumers = [Background(consume, size) for size in (1, 5, 50)]
    producers = [Background(produce, number, size) for number, size in enumerate((1, 3, 40))]
    for each_producer in producers:
        each_producer.result()
    q.shutdown()
    got = [consumer.result() for consumer in consumers]
    assert sorted(item for items in got for item in items) == sorted(
        (producer, number) for producer in range(3) for number in range(each)
    )
    for items in got:
        for producer in range(3):
            numbers = [number for sender, number in items if sender == producer]
            assert numbers == sorted(numbers)
