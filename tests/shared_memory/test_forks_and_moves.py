"""Queues in shared memory whose processes are started before and after the items move."""

from __future__ import annotations

import logging
import logging.handlers
import multiprocessing
import os
import pickle
import threading
import time

import pytest
from programs import inheriting
from waiting import LIMIT, Background

from pressure_mp import Empty, Queue
from pressure_mp.engines.shared import linux

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

LARGE = 300_000


def put_large(queue):
    queue.put(bytes(LARGE))
    assert len(queue.get(timeout=LIMIT)) == LARGE


#: Whatever takes the items to the broker.
MOVES = {
    "nothing": lambda queue: None,
    "pickle": pickle.dumps,
    "large item": put_large,
    "rejected": lambda queue: queue.rejected(),
}


#: Started processes inherit nothing: of them each way to pickle and to move is enough.
STARTED = [("spawn", "nothing"), ("spawn", "rejected"), ("forkserver", "large item")]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("method", "move"), [*(("fork", move) for move in MOVES), *STARTED])
def test_items_of_a_child_arrive_however_and_whenever_the_queue_moves(server, move, method, when):
    context = multiprocessing.get_context(method)
    with Queue(url=server.url) as queue:
        queue.put("parent")
        assert queue.get(timeout=LIMIT) == "parent"
        go = context.Event()
        child = context.Process(target=inheriting.put_each_way, args=(queue, go, context))
        if when == "before":
            child.start()
        MOVES[move](queue)
        if when == "after":
            child.start()
        go.set()
        got = [queue.get(timeout=LIMIT) for _ in range(inheriting.ITEMS)]
        assert got == [("child", number) for number in range(inheriting.ITEMS)]
        child.join(LIMIT)
        assert child.exitcode == 0
        assert queue.rejected() == []


def test_a_small_item_of_one_child_arrives_behind_the_large_item_of_another(server):
    context = multiprocessing.get_context("fork")
    with Queue(url=server.url) as queue, Queue(url=server.url) as started:
        both = [
            context.Process(target=inheriting.put_both, args=(queue, queue, LARGE)),
            context.Process(target=inheriting.put_each_way, args=(queue, context.Event(), context)),
        ]
        both[1]._args[1].set()
        for process in both:
            process.start()
        got = [queue.get(timeout=LIMIT) for _ in range(2 + inheriting.ITEMS)]
        for process in both:
            process.join(LIMIT)
        assert bytes(LARGE) in got
        assert [one for one in got if type(one) is tuple] == [
            ("child", number) for number in range(inheriting.ITEMS)
        ]
        started.put("still in memory")
        assert started.get(timeout=LIMIT) == "still in memory"


def test_a_listener_of_the_standard_library_hears_all_records_of_forked_processes(server):
    heard = []
    context = multiprocessing.get_context("fork")

    class Heard(logging.Handler):
        def emit(self, record):
            heard.append(record.getMessage())

    with Queue(url=server.url) as queue:
        queue.put(logging.makeLogRecord({"msg": "first"}))
        children = [context.Process(target=inheriting.log, args=(queue, 20)) for _ in range(3)]
        children[0].start()
        listener = logging.handlers.QueueListener(queue, Heard())
        listener.start()
        for child in children[1:]:
            child.start()
        for child in children:
            child.join(LIMIT)
        queue.join()
        listener.stop()
    assert sorted(heard) == sorted(["first", *3 * [str(number) for number in range(20)]])


def slowly(monkeypatch, begun):
    """Have each batch of a move take 0.1 seconds, and set ``begun``."""
    from pressure_mp.engines.redis.engine import RedisQueue

    add = RedisQueue.add_moved

    def add_slowly(self, moved, end):
        begun.set()
        time.sleep(0.1)
        add(self, moved, end)

    monkeypatch.setattr(RedisQueue, "add_moved", add_slowly)


@pytest.mark.parametrize("timeout", [0.0, 0.05, 0.3])
def test_a_get_while_another_process_moves_the_items_is_empty_in_time(server, monkeypatch, timeout):
    begun = threading.Event()
    with Queue(url=server.url) as queue:
        context = multiprocessing.get_context("fork")
        for number in range(20_000):
            queue.put(number)
        queue.flush()
        ours, theirs = context.Pipe()
        over = context.Event()
        # Also in the process that is forked now: it may go on with the move.
        slowly(monkeypatch, begun)
        poller = context.Process(target=inheriting.poll, args=(queue, theirs, timeout, over.is_set))
        poller.start()
        assert ours.recv()[0] == 0
        moving = Background(queue.rejected)
        # Until the pipe is read the poller takes no more items than the pipe has space for.
        assert begun.wait(LIMIT)
        began, seen = time.monotonic(), []
        while moving.is_alive():
            seen.append(ours.recv())
        moving.result()
        lasted = time.monotonic() - began
        over.set()
        while poller.is_alive() or ours.poll():
            if ours.poll(0.01):
                seen.append(ours.recv())
        poller.join()
        numbers = [one for one, _ in seen if isinstance(one, int)]
        assert numbers == list(range(1, len(numbers) + 1))
        errors = [one for one, _ in seen if not isinstance(one, int)]
        assert all(issubclass(one, Empty) for one in errors)
        assert max(seconds for _, seconds in seen) < timeout + lasted / 2
        assert errors, (lasted, seen)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_whose_queue_moved_needs_no_file_of_it(server, method):
    context = multiprocessing.get_context(method)
    with Queue(url=server.url) as queue:
        queue.put("parent")
        os.unlink(queue._at.binding.items.ring.path)
        assert queue.get(timeout=LIMIT) == "parent"
        assert queue.rejected() == []
        go = context.Event()
        go.set()
        child = context.Process(target=inheriting.put_each_way, args=(queue, go, context))
        child.start()
        got = [queue.get(timeout=LIMIT) for _ in range(inheriting.ITEMS)]
        child.join(LIMIT)
    assert got == [("child", number) for number in range(inheriting.ITEMS)]


def test_a_process_that_cannot_see_where_the_items_are_is_told(server):
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with Queue(url=server.url) as queue:
        queue.put("parent")
        os.unlink(queue._at.binding.items.ring.path)
        child = context.Process(target=inheriting.put_and_tell_of_error, args=(queue, theirs))
        child.start()
        assert "has no file there" in ours.recv()
        child.join(LIMIT)
        assert queue.get(timeout=LIMIT) == "parent"
