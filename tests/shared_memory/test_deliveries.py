"""JoinableQueues in shared memory: what becomes of items that were got and not acknowledged."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

import pytest
from in_memory import is_here, move
from programs import holding, waiting_loops
from waiting import LIMIT, Background, until

from pressure_mp import JoinableQueue, LateTaskDoneWarning, ShutDown, TaskDoneError
from pressure_mp.engines.shared import linux

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
forking = multiprocessing.get_context("fork")


@pytest.fixture
def make(server):
    made = []

    def make(*args, **options):
        made.append(JoinableQueue(*args, url=server.url, **options))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


def held_by_another(queue, start, number):
    """Have another process get so many items, and keep them."""
    read, write = forking.Pipe(duplex=False)
    other = start(holding.get_and_keep, queue, number, write)
    return other, read.recv()


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join(LIMIT)


@pytest.mark.parametrize("moves", [None, "before", "after"])
def test_items_of_a_killed_process_come_again_before_all_others_in_order(make, start, moves):
    queue = make()
    queue.put_many(range(10))
    other, got = held_by_another(queue, start, 4)
    assert got == [0, 1, 2, 3]
    assert queue.get() == 4
    if moves == "before":
        move(queue)
    kill(other)
    until(lambda: queue.stats().in_flight == 1)
    if moves == "after":
        move(queue)
    assert [queue.get(timeout=LIMIT) for _ in range(9)] == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    for _ in range(10):
        queue.task_done()
    assert queue.unfinished_tasks == 0
    with pytest.raises(TaskDoneError):
        queue.task_done()
    assert is_here(queue) == (moves is None)


def test_a_get_that_waits_has_the_items_of_a_process_that_is_killed(make, start):
    queue = make()
    queue.put("item")
    other, got = held_by_another(queue, start, 1)
    assert got == ["item"]
    gets = Background(queue.get)
    gets.join(0.2)
    assert gets.is_alive()
    kill(other)
    assert gets.result() == "item"
    assert is_here(queue)


def test_a_join_that_waits_requeues_the_items_of_a_process_that_is_killed(make, start):
    queue = make()
    queue.put("item")
    other, _ = held_by_another(queue, start, 1)
    joins = Background(queue.join)
    joins.join(0.2)
    kill(other)
    until(lambda: queue.qsize() == 1)
    assert queue.get(timeout=LIMIT) == "item"
    queue.task_done()
    assert joins.result() is None
    assert is_here(queue)


def test_items_come_back_when_their_process_ends_without_task_done(make, start):
    queue = make()
    queue.put_many(["one", "two"])
    process = start(holding.get_and_end, queue, 2)
    process.join(LIMIT)
    assert [queue.get(timeout=LIMIT), queue.get(timeout=LIMIT)] == ["one", "two"]
    assert is_here(queue)


@pytest.mark.parametrize("moves", [False, True])
def test_an_item_is_set_aside_after_its_last_delivery(make, start, moves):
    queue = make(max_deliveries=2)
    queue.put_many(["kills", "next"])
    for _ in range(2):
        other, got = held_by_another(queue, start, 1)
        assert got == ["kills"]
        if moves:
            move(queue)
        kill(other)
        with queue._at.here:
            until(lambda: queue.stats().in_flight == 0)
    assert queue.get(timeout=LIMIT) == "next"
    queue.task_done()
    queue.join()
    (rejected,) = queue.rejected()
    assert b"kills" in rejected
    assert queue.unfinished_tasks == 0


@pytest.mark.parametrize("moves", [False, True])
def test_another_process_acknowledges_for_the_process_that_has_the_item(make, start, moves):
    queue = make()
    queue.put_many(["one", "two"])
    other, _ = held_by_another(queue, start, 2)
    queue.task_done()  # for the oldest item, which another process has
    assert queue.unfinished_tasks == 1
    if moves:
        move(queue)
    kill(other)
    assert queue.get(timeout=LIMIT) == "two"
    queue.task_done()
    queue.join()
    assert queue.unfinished_tasks == 0


def test_the_counts_are_the_same_before_and_after_a_move(make, start):
    queue = make()
    queue.put_many(range(10))
    _, got = held_by_another(queue, start, 3)
    assert got == [0, 1, 2]
    assert [queue.get(), queue.get()] == [3, 4]
    queue.task_done()
    seen = []
    for _ in range(2):
        stats = queue.stats()
        # At the broker, items are signed, and so larger.
        unlike = {"producer": None, "consumer": None, "produced_bytes": 0, "consumed_bytes": 0}
        seen.append(stats._replace(**unlike))
        move(queue)
    assert seen[0] == seen[1]
    assert (seen[0].length, seen[0].in_flight, seen[0].unfinished) == (5, 4, 9)


def test_task_done_of_a_process_that_was_stopped_for_too_long_comes_too_late(make, start):
    queue = make(lease=1.0)
    queue.put("item")
    read, write = forking.Pipe(duplex=False)
    told, tell = forking.Pipe(duplex=False)
    other = start(holding.get_and_acknowledge_when_told, queue, write, told)
    assert read.recv() == "item"
    os.kill(other.pid, signal.SIGSTOP)
    assert queue.get(timeout=LIMIT) == "item"
    os.kill(other.pid, signal.SIGCONT)
    tell.send("now")
    assert read.recv() == [LateTaskDoneWarning.__name__]
    assert queue.unfinished_tasks == 1
    queue.task_done()
    assert queue.unfinished_tasks == 0


def test_an_immediate_shutdown_drops_items_that_come_back(make, start):
    queue = make()
    queue.put_many(range(5))
    other, _ = held_by_another(queue, start, 2)
    joins = Background(queue.join)
    queue.shutdown(immediate=True)
    assert is_here(queue)
    assert (queue.qsize(), queue.unfinished_tasks) == (0, 2)
    kill(other)
    assert joins.result() is None
    with pytest.raises(ShutDown):
        queue.get()


@pytest.mark.parametrize("program", [holding.work, waiting_loops.work], ids=["threads", "asyncio"])
def test_workers_that_are_killed_at_any_time_lose_nothing(make, start, program):
    queue, number, killed = make(20), 0, []
    read, write = os.pipe()
    workers = [start(program, queue, write) for _ in range(3)]

    def kill_some():
        while len(killed) < 15:
            which = len(killed) % 3
            kill(workers[which])
            workers[which] = start(program, queue, write)
            killed.append(which)
            stop.wait(0.02)

    stop = threading.Event()
    kills = Background(kill_some)
    with open(read, "rb") as lines:
        told = Background(lines.read)
        while len(killed) < 15:
            queue.put(number)
            number += 1
        kills.result()
        queue.join()
        for worker in workers:
            kill(worker)
        os.close(write)
        assert set(map(int, told.result().split())) == set(range(number))
    assert (queue.qsize(), queue.unfinished_tasks) == (0, 0)
    assert is_here(queue)


def test_memory_before_an_item_that_is_kept_is_not_used_again(make):
    queue = make()
    queue.put(b"kept" * 100)
    kept = Background(queue.get).result()  # task_done() here is for the items of this thread
    item = bytes(100_000)
    for _ in range(1000):  # goes round in the file
        queue.put(item)
        assert len(queue.get()) == len(item)
        queue.task_done()
    assert is_here(queue)
    ring = queue._at.binding.items.ring
    (entry,) = [one for _, one in ring.entries()]
    assert kept in ring.item(entry)
