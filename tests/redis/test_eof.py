"""The end of a stream when all producers have ended: eof="producers"."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time

import inside
import pytest
from programs import deliveries as programs
from waiting import HOURS, LIMIT, Background, lasting, until

from pressure_mp import ArgumentError, Empty, JoinableQueue, Queue, ShutDown, SimpleQueue
from pressure_mp.drivers import drive
from pressure_mp.identity.processes import incarnation
from pressure_mp.operations.deliveries import DeliveryOperations

METHODS = ["fork", "spawn"]
KINDS = [Queue, JoinableQueue, SimpleQueue]
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

STRANGER = "another-host/1/1/aaaaaaaa"


@pytest.fixture
def make(url, name):
    """Makes handles to one queue, on every engine and server."""

    def make(kind=Queue, eof="producers", **options):
        return kind(name=name, url=url, eof=eof, **options)

    return make


@pytest.fixture
def shared(valkey, name):
    """The same, for what needs processes."""
    made = []

    def make(kind=Queue, **options):
        options.setdefault("lease", HOURS)  # what waits for its end does not end
        made.append(kind(name=name, url=valkey.url, eof="producers", **options))
        return made[-1]

    yield make
    made[0].delete()
    with valkey.client() as client:
        assert lasting(client, f"*{name}*") == []


@pytest.fixture
def start(start):
    """The same; the program has begun."""

    def begin(program, *args, **options):
        process, here = start(program, *args, **options)
        assert here.recv() == "up"
        return process, here

    return begin


def elsewhere(q, operation, *args, **kwargs):
    """An operation of a process on another host."""
    binding = inside.bind(q)
    operations = DeliveryOperations(q.name, "fifo")
    return drive(getattr(operations, operation)(*args, **kwargs), binding.session())


def producers(q):
    return set(elsewhere(q, "renew", STRANGER, False, False).producers)


# In one process


@pytest.mark.parametrize("kind", KINDS)
def test_the_stream_ends_when_the_last_producer_closes_its_handle(make, kind):
    one, other, reader = make(kind), make(kind), make(kind)
    one.put(1)
    other.put(2)
    one.close()
    assert [reader.get(), reader.get()] == [1, 2]
    with pytest.raises(Empty):
        reader.get_nowait()
    getting = Background(reader.get)
    other.close()
    with pytest.raises(ShutDown, match="producers have ended"):
        getting.result()
    with pytest.raises(ShutDown):
        reader.get_nowait()


def test_a_queue_that_never_had_a_producer_is_not_at_its_end(make):
    q = make()
    with pytest.raises(Empty):
        q.get(timeout=0.1)
    q.close()
    with pytest.raises(Empty):
        make().get_nowait()


def test_a_stream_that_ended_goes_on_with_a_new_producer(make):
    with make() as producer:
        producer.put(1)
    reader = make()
    assert list(reader) == [1]
    producer = make()
    producer.put(2)
    assert reader.get() == 2
    with pytest.raises(Empty):
        reader.get_nowait()
    producer.close()
    assert list(reader) == []


def test_handles_without_the_option_neither_produce_nor_end(make):
    plain = make(eof=None)
    plain.put(1)
    assert producers(plain) == set()
    with make() as q:
        q.put(2)
    assert [plain.get(), plain.get()] == [1, 2]
    with pytest.raises(Empty):
        plain.get_nowait()


def test_a_handle_that_was_pickled_is_another_producer(make):
    q = make()
    q.put(1)
    other = pickle.loads(pickle.dumps(q))
    other.put(2)
    q.close()
    assert producers(q) == {incarnation()}
    other.close()
    assert producers(q) == set()


@pytest.mark.parametrize("wrong", ["producer", "", True, 1])
def test_no_other_value_is_taken(wrong):
    with pytest.raises(ArgumentError, match="eof"):
        Queue(url="memory://unused", eof=wrong)


def test_the_end_waits_for_items_in_flight_in_other_processes(make):
    q = make(JoinableQueue, serializer="raw")
    with make(serializer="raw") as producer:
        producer.put(b"1")
        producer.put(b"2")
    (delivery,) = elsewhere(q, "take_many", STRANGER, 1, 0, 1, False, None)
    assert q.get() == b"2"
    with pytest.raises(Empty):
        q.get_nowait()
    elsewhere(q, "acknowledge", STRANGER, delivery.seq)
    with pytest.raises(ShutDown):  # what this process has in flight it need not wait for
        q.get_nowait()
    q.task_done()
    q.join()


def test_a_requeued_item_is_still_delivered_before_the_end(make):
    q = make(JoinableQueue, serializer="raw")
    with make(serializer="raw") as producer:
        producer.put(b"1")
    elsewhere(q, "take_many", STRANGER, 1, 0, 1, False, None)
    getting = Background(q.get)
    elsewhere(q, "requeue", STRANGER)
    assert getting.result() == b"1"
    Background(q.task_done).result()
    assert list(q) == []


# Processes


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_all_waiting_consumers_are_told_when_the_last_producer_is_gone(shared, start, kind, method):
    """Three producers: one closes its handle, one ends, one is killed. Three consumers wait."""
    q = shared(kind)
    by = {
        act: start(programs.produce, q, [act], act, method=method)
        for act in ("close", "return", "kill")
    }
    consumers = [start(programs.drain, q, method=method) for _ in range(3)]
    until(lambda: q.qsize() == 0)
    for act, (process, pipe) in by.items():
        assert not any(pipe.poll() for _, pipe in consumers)
        pipe.send("end")
        if act == "close":
            assert pipe.recv() == "closed"
        else:
            process.join()
    assert all(pipe.poll(LIMIT) for _, pipe in consumers)
    got = [pipe.recv() for _, pipe in consumers]
    assert sorted(item for items in got for item in items) == ["close", "kill", "return"]


def test_a_stopped_producer_counts_as_ended_after_its_lease_until_it_goes_on(shared, start):
    q = shared(lease=0.5)
    process, _ = start(programs.produce, q, [1], "return")
    assert q.get() == 1
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(ShutDown):
        Background(q.get).result()
    os.kill(process.pid, signal.SIGCONT)
    until(lambda: producers(q))
    with pytest.raises(Empty):
        q.get_nowait()


def test_a_producer_of_another_host_counts_as_ended_after_its_lease(shared):
    q = shared(lease=2.0)
    q.open()
    elsewhere(q, "renew", STRANGER, False, True)
    with pytest.raises(Empty):
        q.get(timeout=0.5)
    elsewhere(q, "renew", STRANGER, False, True)
    begin = time.monotonic()
    with pytest.raises(ShutDown):
        Background(q.get).result()
    assert time.monotonic() - begin > 1.9


def test_a_producer_that_pauses_for_longer_than_its_lease_is_still_one(shared):
    q = shared(lease=0.3)
    q.put(1)
    reader = shared(lease=0.3)
    assert reader.get() == 1
    with pytest.raises(Empty):
        reader.get(timeout=1.0)


def test_a_forked_child_of_a_producer_is_none_until_it_puts(shared, start):
    q = shared()
    q.put("parent")
    _, pipe = start(programs.produce, q, [], "return")
    assert producers(q) == {incarnation()}
    q.close()
    reader = shared()
    assert reader.get() == "parent"
    with pytest.raises(ShutDown):
        Background(reader.get).result()
    pipe.send("end")


PROGRAM = """
import multiprocessing, pressure_mp

def consume(q):
    print(*q, flush=True)

if __name__ == "__main__":
    q = pressure_mp.Queue(eof="producers")
    multiprocessing.get_context("fork").Process(target=consume, args=(q,)).start()
    for number in range(3): q.put(number)
"""


def test_a_program_that_ends_need_not_close_for_the_children_it_waits_for(valkey, name):
    environ = {**os.environ, "PRESSURE_URL": valkey.url, "PRESSURE_PREFIX": name}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT)
    assert (run.stdout, run.stderr) == ("0 1 2\n", "")
    with valkey.client() as client:
        assert lasting(client, f"{name}*") == []
