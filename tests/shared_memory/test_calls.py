"""Calls besides put and get that leave the items of a queue in shared memory."""

from __future__ import annotations

import multiprocessing

import pytest
from in_memory import is_here, move
from programs import sharing
from waiting import LIMIT, Background, until

from pressure_mp import Full, Queue, ShutDown, SimpleQueue, TaskDoneError
from pressure_mp.engines.shared import linux

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
forking = multiprocessing.get_context("fork")


@pytest.fixture
def queue(server):
    with Queue(url=server.url) as queue:
        yield queue


@pytest.fixture
def bounded(server):
    with Queue(2, url=server.url) as queue:
        yield queue


def test_join_waits_until_all_processes_called_task_done_for_all_items(queue, start):
    may_finish = forking.Event()
    for _ in range(3):
        start(sharing.get_then_finish, queue, 100, may_finish)
    queue.put_many(range(300))
    joins = Background(queue.join)
    until(queue.empty)
    assert queue.unfinished_tasks == 300
    assert joins.is_alive()
    may_finish.set()
    assert joins.result() is None
    assert (queue.unfinished_tasks, queue.qsize()) == (0, 0)
    assert is_here(queue)


def test_task_done_raises_when_it_is_called_more_often_than_items_were_put(queue):
    queue.put(1)
    queue.task_done()
    with pytest.raises(TaskDoneError):
        queue.task_done()
    assert is_here(queue)


def test_the_count_of_unfinished_items_goes_on_at_the_broker(queue):
    queue.put_many(range(10))
    assert [queue.get() for _ in range(6)] == list(range(6))
    for _ in range(4):
        queue.task_done()
    assert queue.unfinished_tasks == 6
    move(queue)
    assert queue.unfinished_tasks == 6
    for _ in range(6):
        queue.task_done()
    queue.join()
    with pytest.raises(TaskDoneError):
        queue.task_done()


def test_a_join_that_began_in_memory_ends_at_the_broker(queue):
    queue.put(1)
    joins = Background(queue.join)
    assert queue.get() == 1
    move(queue)
    queue.task_done()
    assert joins.result() is None


def test_a_larger_bound_wakes_a_put_that_waits_for_space_and_stays_at_the_broker(bounded):
    bounded.put_many([1, 2])
    puts = Background(bounded.put, 3)
    puts.join(0.2)
    assert puts.is_alive()
    bounded.maxsize = 3
    assert puts.result() is None
    with pytest.raises(Full):
        bounded.put_nowait(4)
    assert bounded.maxsize == 3
    assert is_here(bounded)
    move(bounded)
    assert bounded.maxsize == 3
    with pytest.raises(Full):
        bounded.put_nowait(4)


def test_a_bound_that_is_set_later_holds_in_all_processes(queue, start):
    queue.put((0, -1))
    queue.maxsize = 2
    putter = start(sharing.put_numbers, queue, 0, 5)
    until(queue.full)
    with pytest.raises(Full):
        queue.put_nowait("no space")
    lengths = [queue.qsize()]
    for count in range(-1, 5):
        assert queue.get(timeout=LIMIT) == (0, count)
        lengths.append(queue.qsize())
    assert max(lengths) == 2
    putter.join(LIMIT)
    queue.maxsize = 0
    queue.put_many(range(10))
    assert queue.qsize() == 10
    assert is_here(queue)


@pytest.mark.parametrize("moves", [False, True])
def test_after_a_shutdown_the_items_are_got_and_then_none_comes(queue, start, moves):
    queue.put_many([1, 2])
    assert not queue.is_shutdown
    queue.shutdown()
    assert is_here(queue)
    if moves:
        move(queue)
    assert queue.is_shutdown
    assert queue.stats().closed
    with pytest.raises(ShutDown):
        queue.put(3)
    assert list(queue) == [1, 2]
    queue.task_done()
    queue.task_done()
    queue.join()
    with pytest.raises(ShutDown):
        queue.get_nowait()


def test_a_shutdown_wakes_a_put_that_waits_for_space(bounded):
    bounded.put_many([1, 2])
    puts = Background(bounded.put, 3)
    puts.join(0.2)
    bounded.shutdown()
    with pytest.raises(ShutDown):
        puts.result()


@pytest.mark.parametrize("moves", [False, True])
def test_an_immediate_shutdown_drops_the_queued_items_and_counts_them_as_done(queue, moves):
    queue.put_many(range(10))
    assert [queue.get() for _ in range(3)] == [0, 1, 2]
    joins = Background(queue.join)
    queue.shutdown(immediate=True)
    assert is_here(queue)
    if moves:
        move(queue)
    with pytest.raises(ShutDown):
        queue.get()
    assert (queue.qsize(), queue.unfinished_tasks) == (0, 3)
    stats = queue.stats()
    assert (stats.produced_messages, stats.consumed_messages) == (10, 3)
    joins.join(0.2)
    assert joins.is_alive()
    for _ in range(3):
        queue.task_done()
    assert joins.result() is None


def test_a_simple_queue_is_in_memory(server, start):
    with SimpleQueue(url=server.url) as there, SimpleQueue(url=server.url) as back:
        start(sharing.double, there, back)
        for number in range(100):
            there.put(number)
            assert back.get() == 2 * number
        assert back.empty()
        there.put(None)
        assert is_here(there)
        assert is_here(back)
