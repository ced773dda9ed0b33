"""Tasks with a key: keys take turns, and of each so many are taken at a time."""

from __future__ import annotations

import multiprocessing

import pytest
from programs import tasks as programs
from tasks.takers import Takers
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import Empty, QueueMismatchError, ShutDown, TaskQueue


@pytest.fixture
def queue(url, name):
    queue = TaskQueue(name, url=url, per_key=2)
    yield queue
    queue.delete()


def names(tasks):
    return [task.data for task in tasks]


def take_all(queue):
    """What can be taken now, one after the other."""
    tasks = []
    while True:
        try:
            tasks.append(queue.take(0))
        except Empty:
            return tasks


def test_keys_take_turns_however_many_tasks_each_has(queue):
    queue.put_many(["a1", "a2"], key="a")
    queue.put_many(["b1", "b2"], key="b")
    queue.put("alone")
    queue.put("late", key="c")
    queue.put("urgent", key="c", priority=-1)
    tasks = take_all(queue)
    assert names(tasks) == ["urgent", "a1", "b1", "alone", "late", "a2", "b2"]
    assert [tasks[0].key, tasks[3].key] == ["c", None]
    assert queue.peek(tasks[1].id).key == "a"


def test_many_are_taken_in_the_same_order_as_one_by_one(queue):
    queue.put_many(["a1", "a2", "a3"], key="a")
    queue.put_many(["b1", "b2"], key="b")
    queue.put("alone")
    queue.put("late", key="b", priority=1)
    assert names(queue.take_many(10, 0)) == ["a1", "b1", "alone", "a2", "b2"]
    assert (queue.qsize(), names(queue.list("R"))) == (2, ["a3", "late"])


def outcome(taker):
    try:
        return taker.result().data
    except ShutDown:
        return "shut down"


def settle_ways(queue):
    return {
        "ack": lambda task: task.ack(),
        "ack_many": lambda task: queue.ack_many([task]),
        "bury": lambda task: task.bury(),
        "release": lambda task: task.release(delay=HOURS),
        "kill": lambda task: queue.kill(task.id),
    }


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("how", ["ack", "ack_many", "bury", "release", "kill"])
def test_a_waiting_take_is_woken_when_a_slot_comes_free(how, queue):
    queue.put_many(range(4), key="a", tube="t")
    queue.put_many(range(2), key="a")  # of another tube, which counts by itself
    tasks = take_all(queue)
    assert len(tasks) == 4
    takers = [Background(queue.take, LIMIT, tube=tube) for tube in (None, "t")]
    until(lambda: all(map(parks, takers)))
    mine = [task for task in tasks if task.tube]
    for task, data in zip(mine, (2, 3), strict=True):
        settle_ways(queue)[how](task)
        until(lambda: any(taker.ended_at for taker in takers))
        taker = next(taker for taker in takers if taker.ended_at)
        takers.remove(taker)
        assert taker.result().data == data


def test_a_task_that_is_taken_for_too_long_is_out_of_the_count(queue):
    queue.put_many(range(3), key="a")
    first, _ = queue.take(0, ttr=0.2), queue.take(0)
    assert queue.take(LIMIT).data == first.data  # its old place
    assert take_all(queue) == []


def test_acknowledging_one_frees_its_slot_for_the_take(queue):
    queue.put_many(range(3), key="a")
    first, _ = take_all(queue)
    assert queue.take(0, ack=first).data == 2


def test_a_queue_that_is_shut_down_serves_what_waits_for_a_slot(queue):
    queue.put_many(range(3), key="a")
    tasks = take_all(queue)
    queue.shutdown()
    takers = [Background(queue.take, LIMIT) for _ in range(2)]
    until(lambda: all(map(parks, takers)))
    tasks[0].ack()
    outcomes = [outcome(taker) for taker in takers]
    assert sorted(outcomes, key=str) == [2, "shut down"]


def test_per_key_is_the_queues_own(queue, url):
    assert queue.settings.per_key == 2
    with pytest.raises(QueueMismatchError, match="per_key=2, not per_key=1"):
        TaskQueue(queue.name, url=url, per_key=1, strict=True).open()


@pytest.mark.usefixtures("no_ticks")
def test_many_takers_never_have_more_of_a_key_than_there_may_be(queue, url):
    """Each takes and acknowledges until all is done; how many of a key are taken at a time is
    counted between the two."""
    for key in "abc":
        queue.put_many([key] * 10, key=key)
    queue.shutdown()
    takers = Takers(queue, url, 8, "abc")
    takers.join()
    assert len(takers.done) == 30
    assert max(takers.most.values()) <= 2


def test_why_blocked_says_that_tasks_wait_for_their_key(queue):
    queue.put_many(range(5), key="a", tube="t")
    queue.put(5, key="b")
    tasks = [queue.take(0) for _ in range(3)]
    found = queue.why_blocked()
    assert (found.per_key, found.all_wait) == (2, True)
    assert found.full_keys == (("a", "t", 3, 2),)
    assert "3 tasks are ready, but of key 'a' in tube 't' 2 tasks are taken" in found.sentence
    assert "is at work" in found.sentence
    queue.put(6)
    assert not queue.why_blocked().all_wait
    assert "of key 'a' in tube 't' 2 tasks are taken, and 3 wait: per_key=2" in str(found)
    for task in tasks:
        task.ack()
    assert queue.why_blocked().full_keys == ()


def test_the_place_of_a_killed_process_is_for_the_next_task_of_its_key(any_server, name):
    with TaskQueue(name, url=any_server.url, per_key=1, max_deliveries=1, lease=HOURS) as queue:
        queue.put_many(["first", "second"], key="a")
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=programs.take_and_wait, args=(queue,))
        process.start()
        until(lambda: queue.stats().counts["T"] == 1)
        taker = Background(queue.take, LIMIT)
        until(lambda: parks(taker))
        process.kill()
        process.join()
        assert taker.result().data == "second"
        queue.delete()
