"""A queue in select, multiprocessing.connection.wait and an event loop: it has a descriptor."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import pickle
import select
import threading
from multiprocessing.connection import wait

import pytest
from brokers.servers import Server
from programs import descriptors as programs
from waiting import LIMIT, Background, until

from pressure_mp import (
    Empty,
    FairQueue,
    HandleClosedError,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    QueueDoesNotExistError,
    ShutDown,
    SimpleQueue,
)
from pressure_mp.sync import readable


def fair(**options):
    return FairQueue(bool, **options)


def buffered(**options):
    return Queue(buffering=8, prefetch=8, **options)


def lookers():
    """The threads that look at queues."""
    return [one for one in threading.enumerate() if one.name == "pressure_mp select"]


def is_readable(one, timeout=0.0):
    return bool(select.select([one], [], [], timeout)[0])


@pytest.mark.parametrize(
    "kind", [Queue, JoinableQueue, SimpleQueue, LifoQueue, PriorityQueue, fair, buffered]
)
def test_a_descriptor_is_readable_while_an_item_may_be_got(kind, url, name):
    with kind(name=name, url=url) as q, Queue(name=name + "-x", url=url) as other:
        assert not is_readable(q)
        assert not is_readable(q._reader)
        producing = threading.Timer(0.05, q.put, [1])
        producing.start()
        assert wait([q._reader, other._reader], LIMIT) == [q._reader]
        producing.join()
        q.put(2)
        q.flush()
        number = q.fileno()  # to ask for it again is to look again
        assert {q.get(), q.get_nowait()} == {1, 2}
        assert not is_readable(number)
        with pytest.raises(Empty):
            q.get(timeout=0.001)
        q.put_many([1, 2, 3])
        assert is_readable(q, LIMIT)
        q.get()
        assert is_readable(q)
        q.get_many(9)
        assert not is_readable(number)
        q.delete()
        other.delete()


def test_a_program_that_selects_gets_each_item_of_its_queues_once(url, name):
    queues = [Queue(name=f"{name}-{number}", url=url) for number in range(3)]
    producing = Background(lambda: [queues[n % 3].put(n) for n in range(300)])
    got = []
    while len(got) < 300:
        for q in select.select(queues, [], [], LIMIT)[0]:
            got.append(q.get())  # it does not wait: there is no other consumer
    producing.result()
    assert sorted(got) == list(range(300))
    assert select.select(queues, [], [], 0)[0] == []
    for q in queues:
        q.delete()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_wait_for_several_queues_sees_an_item_of_another_process(method, server):
    context = multiprocessing.get_context(method)
    queues, asked = [Queue(url=server.url), Queue(url=server.url)], context.Event()
    process = context.Process(target=programs.put_when_asked, args=(queues[1], asked))
    process.start()
    readers = [q._reader for q in queues]
    assert wait(readers, 0) == []
    asked.set()
    assert wait([*readers, process.sentinel], LIMIT)
    until(lambda: wait(readers, 0) == [readers[1]])
    assert queues[1].get() == process.pid
    process.join()


@pytest.mark.parametrize("end", ["shutdown", "delete"])
def test_a_queue_that_ended_is_readable_since_get_says_so(end, url, name):
    q, other = Queue(name=name, url=url), Queue(name=name, url=url)
    assert not is_readable(q)
    getattr(other, end)()
    assert is_readable(q, LIMIT)
    with pytest.raises((ShutDown, QueueDoesNotExistError)):
        q.get()


def test_a_get_of_another_handle_is_seen_soon(url, name):
    q, other = Queue(name=name, url=url), Queue(name=name, url=url)
    q.put(1)
    assert is_readable(q, LIMIT)
    other.get()
    until(lambda: not is_readable(q))
    q.delete()


def test_a_poll_tells_whether_an_item_may_be_got(url, name):
    q = Queue(name=name, url=url)
    assert not q._reader.poll()
    assert not q._poll(0.01)
    q.put(1)
    assert q._poll()
    assert q._reader.poll(None)
    q.delete()


def test_an_event_loop_is_told_of_an_item(url, name):
    q = Queue(name=name, url=url)

    async def get():
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(q.fileno(), readable.set)
        loop.call_later(0.02, q.put, 1)
        await asyncio.wait_for(readable.wait(), LIMIT)
        loop.remove_reader(q.fileno())
        return q.get_nowait()

    assert asyncio.run(get()) == 1
    q.delete()


def test_one_thread_looks_at_all_queues_and_ends_with_the_last(url, name):
    gc.collect()  # a handle of a test before may be in a cycle
    until(lambda: not lookers())
    queues = [Queue(name=f"{name}-{number}", url=url) for number in range(20)]
    for q in queues:
        q.put(1)
        q.get()
    assert lookers() == []
    assert len({q.fileno() for q in queues}) == 20
    assert all(q.fileno() == q._reader.fileno() for q in queues)
    assert len(lookers()) == 1
    for q in queues[:19]:
        q.delete()
        q.close()
    assert len(lookers()) == 1
    ends = queues[19]._reader._ends
    del q
    queues.pop().delete()
    until(lambda: not lookers())
    for end in ends:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(end.number)


def test_a_closed_handle_has_no_descriptor(url, name):
    q, other = Queue(name=name, url=url), Queue(name=name, url=url)
    reader, number = q._reader, q.fileno()
    for handle in (q, other):
        handle.close()
        for ask in (handle.fileno, lambda: handle._reader.fileno(), lambda: handle._poll()):  # noqa: B023
            with pytest.raises(OSError, match=f"queue '{name}' is closed, and has no descriptor"):
                ask()
    with pytest.raises(ValueError, match="Invalid file object"):
        wait([reader], 0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    with pytest.raises(HandleClosedError):
        q.get()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_has_a_descriptor_of_its_own(method, server):
    context = multiprocessing.get_context(method)
    q, results = Queue(url=server.url), Queue(url=server.url)
    number = q.fileno()
    pipe = programs.pipe_of(number) if method == "fork" else None
    process = context.Process(target=programs.get_by_descriptor, args=(q, number, pipe, results))
    process.start()
    q.put("for the child")
    assert results.get(timeout=LIMIT) == "for the child"
    process.join()
    assert process.exitcode == 0
    until(lambda: not is_readable(q))
    q.put("for the parent")
    assert is_readable(q, LIMIT)
    assert q.get() == "for the parent"


def test_a_get_that_is_interrupted_while_it_looks_leaves_its_items_for_the_next(
    url, name, monkeypatch
):
    q = Queue(name=name, url=url)
    q.fileno()
    q.put_many([1, 2, 3])
    look = readable.Readable.look

    def interrupt(self):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        look(self)

    for call in (q.get, lambda: q.get_many(2)):
        with monkeypatch.context() as patch:
            patch.setattr(readable.Readable, "look", interrupt)
            with pytest.raises(KeyboardInterrupt):
                call()
        assert is_readable(q, LIMIT)
        if call == q.get:
            assert q.get() == 1
    assert [q.get(), q.get()] == [2, 3]
    assert not is_readable(q)
    q.delete()


def test_a_descriptor_outlives_an_outage_of_the_broker(name):
    server = Server("valkey")
    try:
        q = Queue(name=name, url=server.start().url)
        assert not is_readable(q)
        server.kill()
        assert not is_readable(q._reader._ends[0].number, 0.1)  # some looks in vain
        server.start()
        other = Queue(name=name, url=server.url)
        other.put(1)
        assert is_readable(q._reader._ends[0].number, LIMIT)
        assert q.get() == 1
    finally:
        server.stop()


@pytest.mark.parametrize("part", ["_writer", "_rlock", "_wlock", "_sem", "_notempty", "_buffer"])
def test_the_error_of_a_missing_part_of_multiprocessings_queue_gives_advice(part, url, name):
    q = Queue(name=name, url=url)
    with pytest.raises(AttributeError, match=rf"^a Queue has no {part}: \w+"):
        getattr(q, part)
    assert not hasattr(q, part)
    q.delete()


def test_a_reader_says_how_items_come_and_go(url, name):
    q = Queue(name=name, url=url)
    with pytest.raises(AttributeError, match=r"has no recv_bytes: use the queue's get"):
        q._reader.recv_bytes()
    with pytest.raises(TypeError, match="pass the queue"):
        pickle.dumps(q._reader)
    assert not is_readable(pickle.loads(pickle.dumps(q)))
    q.delete()


def test_a_program_that_closes_it_has_its_own_file_left_alone(url, name, tmp_path):
    with Queue(name=name, url=url) as q, open(tmp_path / "own", "w+b") as own:
        q.fileno()
        read, write = (end.number for end in q._at.readable._ends)
        os.dup2(own.fileno(), read)
        os.dup2(own.fileno(), write)
        q.put(1)
        assert wait([q._reader], LIMIT)
        assert q.get() == 1
        assert not is_readable(q)
        assert os.path.getsize(own.name) == 0
        assert os.path.samestat(os.fstat(read), os.fstat(own.fileno()))
        q.delete()
    for number in (read, write):
        os.close(number)


def test_a_program_that_closes_both_ends_during_a_look_has_its_own_file_left_alone(
    url, name, tmp_path, monkeypatch
):
    """The look finds one end closed, and the program takes the other number at that moment."""
    with Queue(name=name, url=url) as q, open(tmp_path / "own", "w+b") as own:
        q.fileno()
        descriptor = q._at.readable
        with descriptor._lock:  # no other look comes in between
            read, write = (end.number for end in descriptor._ends)
            os.dup2(own.fileno(), read)
            close, taken = os.close, []

            def take_first(number):
                if number == write:
                    taken.append(os.dup2(own.fileno(), write))
                close(number)

            with monkeypatch.context() as patch:
                patch.setattr(os, "close", take_first)
                assert not descriptor._has_ends()
            if not taken:
                os.dup2(own.fileno(), write)
        q.put(1)
        assert wait([q._reader], LIMIT)
        q.delete()
    for number in (read, write):
        assert os.path.samestat(os.fstat(number), os.stat(tmp_path / "own"))
        os.close(number)


def test_a_program_that_closes_one_end_leaves_no_other_open(url, name):
    with Queue(name=name, url=url) as q:
        q.fileno()
        read, write = (end.number for end in q._at.readable._ends)
        os.close(read)
        q._at.readable.look()
        q.fileno()
        new = [end.number for end in q._at.readable._ends]
        q.delete()
    for number in {read, write, *new}:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)


def test_a_program_that_closes_it_while_the_broker_is_asked_has_its_own_file_left_alone(
    url, name, tmp_path, monkeypatch
):
    with Queue(name=name, url=url) as q, open(tmp_path / "own", "w+b") as own:
        q.fileno()
        read, write = (end.number for end in q._at.readable._ends)
        q.put(1)
        ask = readable.Readable._may_get

        def closes(descriptor):
            found = ask(descriptor)
            os.dup2(own.fileno(), read)
            os.dup2(own.fileno(), write)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(readable.Readable, "_may_get", closes)
            q._at.readable.look()
        assert os.path.getsize(own.name) == 0
        assert wait([q._reader], LIMIT)
        q.delete()
    for number in (read, write):
        os.close(number)
