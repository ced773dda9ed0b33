"""Options of a queue of tasks that change while other handles, which opened it before, use it."""

from __future__ import annotations

import asyncio

import pytest
from engines import Can
from programs import tasks as programs
from started import quickly
from tasks.life import check_stats
from tasks.takers import Takers, is_empty, parked, taken
from waiting import HOURS, Background, until

from pressure_mp import ArgumentError, ArgumentTypeError, Empty, TaskQueue, aio

#: Options before and after a change, and the state of a task that is acknowledged then.
CHANGES = [
    ({}, {"keep": True}, "D"),
    ({}, {"zombie": 60}, "Z"),
    ({"keep": True}, {"keep": False}, "X"),
    ({"zombie": 60}, {"zombie": None}, "X"),
    ({"zombie": True}, {"zombie": None, "keep": True}, "D"),
]


def ack(queue, tasks):
    for task in tasks:
        task.ack()


def ack_by_the_next_take(queue, tasks):
    for task in tasks:
        with pytest.raises(Empty):
            queue.take(0, ack=task)


ACKS = {
    "ack": ack,
    "ack_many": lambda queue, tasks: queue.ack_many(tasks),
    "take": ack_by_the_next_take,
}


@pytest.mark.parametrize(("before", "after", "state"), CHANGES)
@pytest.mark.parametrize("how", ACKS)
def test_a_task_is_told_in_the_state_that_the_broker_brings_it_into(
    how, before, after, state, url, name
):
    queue = TaskQueue(name, url=url, **before)
    queue.put_many(range(3))
    tasks = queue.take_many(3)
    TaskQueue(name, url=url).configure(**after)
    ACKS[how](queue, tasks)
    assert [task.state for task in tasks] == [state] * 3
    assert queue.stats().transitions[f"T-{state}"] == 3
    queue.delete()


@pytest.mark.needs(Can.PROCESSES)
@pytest.mark.parametrize(("before", "after", "state"), CHANGES[::3])
def test_a_run_tells_the_state_that_another_process_has_configured(before, after, state, url, name):
    queue, found = TaskQueue(name, url=url, **before), []

    @queue.batch(size=3, wait=HOURS)
    def handle(tasks):
        found.extend(tasks)
        other = quickly.Process(target=programs.configure, args=(url, name, after))
        other.start()
        other.join()
        assert other.exitcode == 0

    running = Background(queue.run)
    queue.put_many(range(3))
    until(lambda: queue.stats().transitions.get(f"T-{state}") == 3)
    queue.shutdown()
    running.result()
    assert [task.state for task in found] == [state] * 3
    queue.delete()


@pytest.mark.parametrize("options", [{"zombie": 60.0}, {"keep": True}])
@pytest.mark.parametrize("how", ACKS)
def test_a_processed_task_tells_since_when_it_is_so_and_until_when(options, how, url, name):
    queue = TaskQueue.create(name, url=url, ttr=30.0, **options)
    queue.put_many(range(3))
    tasks = queue.take_many(3)
    ACKS[how](queue, tasks)
    for task in tasks:
        now = queue.peek(task.id)
        assert (task.state, task.since, task.due) == (now.state, now.since, now.due)
    queue.delete()


def test_asyncio_tells_the_state_that_another_handle_has_configured(url, name):
    async def main():
        queue = await aio.TaskQueue.create(name, url=url)
        await queue.put_many(range(3))
        tasks = await queue.take_many(3)
        await aio.TaskQueue(name, url=url).configure(keep=True)
        await queue.ack_many(tasks)
        assert [task.state for task in tasks] == ["D"] * 3
        await queue.delete()

    asyncio.run(main())


def test_a_time_as_a_zombie_is_that_of_the_queue_now(queue, url):
    other, ids = TaskQueue(queue.name, url=url), queue.put_many("ab")
    with pytest.raises(ArgumentError, match="has no time for zombies"):
        queue.switch(ids[0], "zombie")
    other.configure(zombie=60)
    assert queue.switch(ids[0], "zombie").due is not None
    other.configure(zombie=None)
    with pytest.raises(ArgumentError, match="has no time for zombies"):
        queue.switch(ids[1], "zombie")
    assert queue.stats().counts["Z"] == 1


def test_a_stated_time_as_a_zombie_does_not_count_while_the_queue_keeps_its_tasks(queue, url):
    other = TaskQueue(queue.name, url=url)
    queue.put_many(range(2))
    for keep, state in ((True, "D"), (False, "Z")):
        other.configure(keep=keep)
        task = queue.take(0)
        task.ack(delay=3600)
        assert (task.state, task.due is None) == (state, keep)


def test_ids_are_made_as_the_queue_says_when_a_handle_opens_it(queue, url):
    before, other = queue.put("time64"), TaskQueue(queue.name, url=url)
    other.configure(id="auto_increment")
    assert [other.put("a"), *TaskQueue(queue.name, url=url).put_many("bc")] == [1, 2, 3]
    assert queue.put("as before") > before
    other.configure(id="required")
    with pytest.raises(ArgumentTypeError, match="needs an id"):
        other.put("d")
    other.configure(id=iter("xy").__next__)
    assert [other.put("e"), other.put("f")] == ["x", "y"]
    with pytest.raises(ArgumentTypeError, match="made by a callable"):
        TaskQueue(queue.name, url=url).put("g")
    other.configure(id="auto_increment", ttr=60)
    assert other.put_many("hi") == [4, 5]
    with pytest.raises(ArgumentError, match="id is one of"):
        other.configure(id="serial")
    check_stats(queue)


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("tube", [None, "t"])
def test_a_higher_bound_of_each_key_gives_its_tasks_to_takers_that_wait(tube, queue, url):
    other = TaskQueue(queue.name, url=url)
    other.configure(per_key=1)
    for key in "ab":
        queue.put_many([key] * 4, key=key, tube="t")
    assert taken(queue, 9) == ["a", "b"]
    takers = [parked(queue, tube=tube) for _ in range(4)]
    other.configure(per_key=3)
    assert sorted(taker.result().data for taker in takers) == ["a", "a", "b", "b"]
    assert is_empty(queue)
    other.configure(per_key=None)
    assert taken(queue, 9) == ["a", "b"]
    check_stats(queue)


def test_a_lower_bound_of_each_key_takes_no_task_away(queue, url):
    queue.put_many(range(6), key="a")
    first, second, third = queue.take_many(3)
    other = TaskQueue(queue.name, url=url)
    other.configure(per_key=2)
    assert is_empty(queue)
    assert queue.why_blocked().full_keys == (("a", "", 3, 3),)
    first.ack()
    assert is_empty(queue)
    third.release()
    assert taken(queue, 9) == [2]
    other.configure(per_key=1)
    second.ack()
    assert is_empty(queue)
    assert queue.qsize() == 3
    check_stats(queue)


@pytest.mark.needs(Can.PROCESSES)
def test_worker_processes_go_by_a_new_bound_of_each_key(queue, url):
    queue.configure(per_key=1)
    queue.put_many(range(6), key="a")
    pipes = [quickly.Pipe() for _ in range(3)]
    workers = [
        quickly.Process(target=programs.take_each_when_told, args=(queue, there), daemon=True)
        for _, there in pipes
    ]
    for worker in workers:
        worker.start()
    said = []

    def hear(number):
        """Wait until tasks came to so many workers that had none; which workers these are."""
        came = []
        while len(came) < number:
            for here, _ in pipes:
                if here.poll(0.01):
                    said.append(here.recv())
                    came.append(here)
        return came

    (first,) = hear(1)
    queue.configure(per_key=3)
    second, third = hear(2)
    queue.configure(per_key=1)
    for here in (first, second, third):
        assert sorted(said) == [0, 1, 2]
        here.send("acknowledge it")
    hear(1)
    assert sorted(said) == [0, 1, 2, 3]
    assert queue.stats().counts["T"] == 1
    for worker in workers:
        worker.kill()
        worker.join()


@pytest.mark.usefixtures("no_ticks")
def test_no_wakeup_is_lost_while_the_bound_of_each_key_changes(queue, url):
    for key in "abc":
        queue.put_many([key] * 20, key=key)
    queue.shutdown()
    takers = Takers(queue, url, 6, "abc")
    for number in range(12):
        TaskQueue(queue.name, url=url).configure(per_key=(1, 3, None, 2)[number % 4])
    queue.configure(per_key=1)
    until(lambda: max(takers.now.values()) <= 1)
    takers.forget()
    takers.join()
    assert sorted(takers.done) == sorted("abc" * 20)
    assert max(takers.most.values()) <= 1
