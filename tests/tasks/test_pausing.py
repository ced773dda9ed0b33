"""A queue of tasks, or a tube of it, that is paused: no take gets its tasks until it is resumed."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import threading

import pytest
from programs import tasks as programs
from tasks.life import check_stats
from tasks.takers import answers, is_empty, parked, taken
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import Empty, ShutDown, TaskQueue, aio

#: More tasks than come back into the line at a time.
MANY = 250


def test_a_paused_queue_takes_in_tasks_and_gives_out_none(queue):
    queue.put(0)
    task = queue.take(0)
    queue.pause()
    queue.pause()
    queue.put_many([1, 2], tube="a")
    assert is_empty(queue)
    assert is_empty(queue, tube="a")
    with pytest.raises(Empty):
        queue.take(0, ack=task)
    assert task.state == "X"
    assert queue.qsize() == 2
    stats = queue.stats()
    assert (stats.paused, stats.paused_tubes) == (True, ())
    queue.resume("a")  # it is not paused by itself
    assert is_empty(queue, tube="a")
    queue.resume()
    assert not queue.stats().paused
    assert taken(queue, 5) == [1, 2]


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("paused", [None, "a"])
@pytest.mark.parametrize("tube", [None, "a"])
def test_takers_that_wait_get_the_tasks_when_they_are_resumed(tube, paused, queue):
    queue.pause(paused)
    queue.put(1, tube="a")
    takers = [parked(queue, tube=tube) for _ in range(3)]
    queue.put_many([2, 3], tube="a")
    assert all(taker.is_alive() for taker in takers)
    queue.resume(paused)
    assert sorted(taker.result().data for taker in takers) == [1, 2, 3]


@pytest.mark.usefixtures("no_ticks")
def test_a_paused_tube_is_left_out_while_others_are_served(queue):
    queue.pause("a")
    first = parked(queue)
    queue.put_many(range(MANY), tube="a")
    queue.put("b", tube="b")
    assert first.result().data == "b"
    queue.put_many(range(MANY), tube="a")
    queue.put_many(["c", "d", "e"])
    assert taken(queue, 1) == ["c"]
    assert queue.qsize() == 2 * MANY + 2
    assert taken(queue, 9) == ["d", "e"]
    assert is_empty(queue, tube="a")
    assert queue.qsize() == queue.qsize("a") == 2 * MANY
    assert queue.stats().paused_tubes == ("a",)
    assert queue.stats().oldest_ready_age is not None
    check_stats(queue)


@pytest.mark.usefixtures("no_ticks")
def test_a_taker_that_waits_gets_the_task_behind_very_many_that_are_paused(url, name):
    queue = TaskQueue(name, url=url, lease=HOURS)
    queue.put_many(range(10 * MANY), tube="a")
    queue.put("b")
    queue.pause()
    queue.pause("a")
    takers = [parked(queue), parked(queue)]
    queue.resume()
    until(lambda: not all(taker.is_alive() for taker in takers))
    queue.put("c")
    assert sorted(taker.result().data for taker in takers) == ["b", "c"]
    assert queue.qsize() == queue.qsize("a") == 10 * MANY
    queue.delete()


@pytest.mark.parametrize("size", [1, 40])
def test_tasks_of_a_tube_that_is_resumed_have_their_old_places(size, queue):
    queue.pause("a")
    for number in range(0, MANY, 10):
        queue.put_many(range(number, number + 9), tube="a")
        queue.put(number + 9, tube="b")
    assert taken(queue, 3) == [9, 19, 29]
    queue.put(-1, tube="a", priority=-1)
    assert taken(queue, 2) == [39, 49]
    queue.resume("a")
    queue.put(MANY, tube="a")
    gone = {9, 19, 29, 39, 49}
    found = []
    while len(found) <= MANY - len(gone) + 1:
        found += taken(queue, size)
    assert found == [number for number in range(-1, MANY + 1) if number not in gone]
    check_stats(queue)


def test_a_tube_can_be_paused_again_before_all_of_it_was_taken(queue):
    queue.put_many(range(MANY), tube="a")
    queue.pause("a")
    assert is_empty(queue)
    queue.resume("a")
    assert taken(queue, 2) == [0, 1]
    queue.pause("a")
    queue.pause("b")
    assert is_empty(queue)
    queue.resume("a")
    assert taken(queue, 2, tube="a") == [2, 3]
    assert taken(queue, MANY) == list(range(4, MANY))
    assert queue.stats().paused_tubes == ("b",)


def test_tasks_that_a_pause_keeps_waiting_can_be_changed(queue):
    ids = [queue.put(number, tube="a") for number in range(6)]
    queue.pause("a")
    assert is_empty(queue)
    queue.kill(ids[0])
    queue.move(ids[1], "b")
    queue.switch(ids[2], "W", delay=3600)
    queue.switch(ids[3], "B")
    queue.kick(ids[3])
    assert taken(queue, 5) == [1]
    assert sorted(task.data for task in queue.list("R")) == [3, 4, 5]
    assert sorted(task.data for task in queue.list("R", "a")) == [3, 4, 5]
    check_stats(queue)
    queue.resume("a")
    assert sorted(taken(queue, 5)) == [3, 4, 5]
    assert queue.restart(ids[2]).state == "R"
    assert taken(queue, 5) == [2]


def test_delays_and_times_to_live_go_on_in_a_paused_tube(queue):
    queue.put(0, tube="a", ttl=0.2)
    queue.pause("a")
    assert is_empty(queue)
    queue.put(1, tube="a", delay=0.2)
    until(lambda: queue.stats().transitions.get("W-R") == queue.stats().transitions.get("R-X") == 1)
    assert is_empty(queue)
    queue.resume("a")
    assert taken(queue, 5) == [1]


def test_keys_take_turns_after_a_pause(url, name):
    queue = TaskQueue(name, url=url, per_key=1)
    for key in "kl":
        queue.put_many([f"{key}1", f"{key}2"], tube="a", key=key)
    queue.pause("a")
    assert is_empty(queue)
    queue.put("k0", tube="a", key="k", priority=-1)
    assert is_empty(queue)
    queue.resume("a")
    tasks = queue.take_many(5, timeout=0)
    assert [task.data for task in tasks] == ["k0", "l1"]
    queue.pause("a")
    tasks[1].ack()
    assert is_empty(queue)
    tasks[0].ack()
    queue.resume("a")
    found = queue.take_many(5, timeout=0)
    assert sorted(task.data for task in found) == ["k1", "l2"]
    check_stats(queue)
    queue.delete()


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("paused", [None, "a"])
def test_a_queue_that_is_shut_down_and_paused_is_served_when_it_is_resumed(paused, queue):
    last = queue.put(1, tube="a")
    queue.put(2, tube="a")
    queue.pause(paused)
    takers = [parked(queue), parked(queue, tube="a"), parked(queue)]
    queue.shutdown()
    assert is_empty(queue)
    assert all(taker.is_alive() for taker in takers)
    queue.resume(paused)
    served = [taker for taker in takers if not raises_shut_down(taker)]
    assert sorted(taker.result().data for taker in served) == [1, 2]
    assert queue.peek(last).state == "T"


def raises_shut_down(taker):
    try:
        taker.result()
    except ShutDown:
        return True
    return False


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("paused", [None, "a"])
def test_takers_are_told_when_the_last_task_of_a_paused_queue_that_is_shut_down_is_gone(
    paused, queue
):
    ids = [queue.put(number, tube="a") for number in range(2)]
    queue.pause(paused)
    queue.shutdown()
    takers = [parked(queue), parked(queue, tube="a"), parked(queue)]
    queue.kill(ids[0])
    assert is_empty(queue)
    queue.kill(ids[1])
    assert all(raises_shut_down(taker) for taker in takers)


@pytest.mark.parametrize("paused", [None, "a"])
def test_a_pause_and_the_takers_that_wait_outlast_a_restart_of_the_broker(paused, durable, name):
    queue = TaskQueue(name, url=durable.url, reconnect=LIMIT)
    queue.put(1, tube="a")
    queue.pause(paused)
    takers = [parked(queue), parked(queue, tube="a")]
    durable.kill()
    durable.start()
    assert is_empty(queue)
    assert all(taker.is_alive() for taker in takers)
    queue.put(2, tube="a")
    queue.resume(paused)
    assert sorted(taker.result().data for taker in takers) == [1, 2]
    queue.delete()


def test_tasks_of_a_worker_that_is_killed_wait_for_the_resumption(server, name):
    queue = TaskQueue(name, url=server.url, lease=3600)
    queue.put_many(range(3), tube="a")
    process = multiprocessing.get_context("spawn").Process(
        target=programs.take_and_wait, args=(queue,)
    )
    process.start()
    until(lambda: queue.stats().counts["T"] == 3)
    queue.pause("a")
    taker = parked(queue)
    process.kill()
    process.join()
    until(lambda: queue.stats().counts["R"] == 3)
    assert taker.is_alive()
    queue.resume("a")
    task = taker.result()
    assert (task.data, task.deliveries) == (0, 2)
    queue.delete()


def test_a_pause_is_kept_while_the_broker_is_away(durable, name):
    queue = TaskQueue(name, url=durable.url, reconnect=30)
    queue.put(1)
    queue.put(2, tube="a")
    queue.pause()
    queue.pause("a")
    taker = Background(queue.take, LIMIT)
    until(lambda: parks(taker))
    durable.kill()
    durable.start()
    until(lambda: answers(queue))
    assert queue.stats().paused_tubes == ("a",)
    assert taker.is_alive()
    queue.resume()
    assert taker.result().data == 1
    assert is_empty(queue)
    queue.delete()


def test_why_blocked_says_that_the_queue_is_paused_and_what_resumes_it(queue, name):
    queue.put_many(range(2), tube="a")
    queue.pause("a")
    found = queue.why_blocked()
    assert (found.paused, found.paused_tubes) == (False, {"a": 2})
    assert found.sentence == (
        "No task can be taken: 2 tasks are ready, in tubes that are paused; see "
        f"`pressure-mp resume {name} --tube a`."
    )
    assert "tube 'a' is paused, with 2 ready tasks" in str(found)
    queue.put(3)
    assert "start a worker" in queue.why_blocked().sentence
    queue.pause()
    resuming = f"`pressure-mp resume {name}` lets workers take them."
    assert queue.why_blocked().sentence == f"The queue is paused, with 3 ready tasks: {resuming}"


def test_takers_on_an_event_loop_wait_for_the_resumption(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            await queue.pause()
            await queue.pause("a")
            await queue.put_many(range(3))
            await queue.put(3, tube="a")
            takers = [asyncio.ensure_future(queue.take(LIMIT)) for _ in range(4)]
            with pytest.raises(Empty):
                await queue.take(0.1)
            await queue.resume()
            come = asyncio.as_completed(takers, timeout=LIMIT)
            found = [(await next(come)).data for _ in range(3)]
            assert (await queue.stats()).paused_tubes == ("a",)
            await queue.resume("a")
            found.append((await next(come)).data)
            await queue.delete()
            return found

    *found, last = asyncio.run(main())
    assert sorted(found) == [0, 1, 2]
    assert last == 3


def test_workers_of_a_run_go_on_when_the_queue_is_resumed(queue):
    seen, stop = [], threading.Event()
    running = Background(queue.run, lambda task: seen.append(task.data), concurrency=3, stop=stop)
    queue.put(0)
    until(lambda: seen == [0])
    queue.pause()
    queue.put_many(range(1, 50))
    assert is_empty(queue)
    assert seen == [0]
    queue.resume()
    until(lambda: sorted(seen) == list(range(50)))
    stop.set()
    running.result()


def test_pauses_at_any_time_lose_no_task_and_give_none_twice(queue):
    seen, stop = [], threading.Event()
    running = Background(queue.run, lambda task: seen.append(task.data), concurrency=3, stop=stop)
    draw = random.Random(7)
    for number in range(100):
        change = queue.pause if draw.random() < 0.5 else queue.resume
        change(draw.choice([None, "a", "b"]))
        tube = draw.choice([None, "a", "b"])
        queue.put_many(range(5 * number, 5 * number + 5), tube=tube, key=draw.choice([None, "k"]))
    for tube in (None, "a", "b"):
        queue.resume(tube)
    until(lambda: len(seen) >= 500)
    stop.set()
    running.result()
    assert sorted(seen) == list(range(500))
    check_stats(queue)
