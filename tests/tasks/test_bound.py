"""A queue of tasks with a bound: a put waits while as many tasks are ready or waiting."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import threading

import pytest
from engines import Can
from programs import tasks as programs
from tasks.life import check_stats
from tasks.takers import answers, taken
from waiting import HOURS, LIMIT, Background, until

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    Full,
    HandleClosedError,
    QueueDoesNotExistError,
    QueueMismatchWarning,
    ShutDown,
    TaskExists,
    TaskQueue,
    aio,
)


@pytest.fixture
def full(url, name):
    """A full queue of two tasks."""
    queue = TaskQueue(name, url=url, maxsize=2)
    queue.put("a")
    queue.put("b", delay=HOURS)
    yield queue
    if queue.exists():
        check_stats(queue)
        queue.delete()


def putting(queue, *data, **options):
    """Puts that wait, in this order."""
    found = []
    for one in data:
        before = queue.stats().putting
        found.append(Background(queue.put, one, **options))
        until(lambda number=before + 1: queue.stats().putting == number)
    return found


def number_of(puts):
    """How many are done."""
    return sum(not put.is_alive() for put in puts)


def test_a_put_on_a_full_queue_is_refused(full):
    assert full.full()
    assert full.maxsize == full.stats().maxsize == full.settings.maxsize == 2
    for options, still in (({"block": False}, ""), ({"timeout": 0.05}, ", still after 0.05 s")):
        with pytest.raises(Full) as caught:
            full.put("c", **options)
        assert str(caught.value).endswith(f"is full: 2 tasks are ready or waiting{still}")
        assert (caught.value.item, caught.value.current_size) == ("c", 2)
        with pytest.raises(Full):
            full.put("c", unique="u", **options)
        with pytest.raises(Full):
            full.put("c", wait=HOURS, **options)
    with pytest.raises(Full):
        full.put("c", wait=0.05)
    assert full.stats().putting == 0
    assert [task.data for state in "RW" for task in full.list(state)] == ["a", "b"]


def test_ready_and_waiting_tasks_count_and_no_others(full):
    task = full.take(0)
    full.put("c", block=False)
    with pytest.raises(Full):
        full.put("d", block=False)
    task.bury()
    full.take(0).ack()
    full.put("d", key="k", tube="t", block=False)
    with pytest.raises(Full):
        full.put("e", block=False)


def test_a_task_that_comes_back_needs_no_space(full):
    first = full.take(0)
    full.put("c")
    second = full.take(0)
    full.put("d")
    first.release()
    second.bury()
    full.kick_many()
    assert full.stats().counts["R"] == 3
    assert full.full()
    assert sorted(taken(full, 5)) == ["a", "c", "d"]
    assert not full.full()


@pytest.mark.usefixtures("no_ticks")
def test_puts_that_wait_are_served_in_order_as_tasks_leave_the_queue(full):
    puts = putting(full, "c", "d", "e", "f", "g")
    found = []
    for number in range(1, 5):
        found += taken(full, 1)
        until(lambda number=number: number_of(puts) == number)
    full.kill(full.list("R")[0].id)
    until(lambda: number_of(puts) == 5)
    assert found == ["a", "c", "d", "e"]
    assert taken(full, 5) == ["g"]


@pytest.mark.usefixtures("no_ticks")
def test_each_way_out_of_the_line_makes_space(full):
    ways = [
        lambda: full.take(0),
        lambda: full.take_many(5, timeout=0),
        lambda: full.take(0, tube="t"),
        lambda: full.truncate(),
        lambda: full.switch(full.list("R")[0].id, "B"),
        lambda: full.cancel(full.list("R")[0].id),
    ]
    for leave in ways:
        (put,) = putting(full, "c", tube="t")
        leave()
        put.result()
        while not full.full():
            full.put("more", tube="t")


@pytest.mark.usefixtures("no_ticks")
def test_a_take_of_many_makes_space_for_many(url, name):
    queue = TaskQueue(name, url=url, maxsize=20)
    queue.put_many(range(20))
    puts = putting(queue, *range(20, 30))
    assert taken(queue, 20) == list(range(20))
    until(lambda: number_of(puts) == 10)
    assert taken(queue, 20) == list(range(20, 30))


@pytest.mark.usefixtures("no_ticks")
def test_a_worker_that_acknowledges_and_takes_makes_space(full):
    done = full.take(0)
    full.put("c")
    (put,) = putting(full, "d")
    assert full.take(0, ack=done).data == "c"
    put.result()
    assert done.state == "X"


def test_a_task_whose_ttl_is_over_makes_space(url, name):
    queue = TaskQueue(name, url=url, maxsize=1)
    queue.put("a", ttl=0.2)
    queue.put("b", timeout=LIMIT)
    assert taken(queue, 5) == ["b"]


def test_a_batch_is_put_as_there_is_space(full):
    full.take(0)
    with pytest.raises(Full) as caught:
        full.put_many(["c", "d", "e"], timeout=0.05)
    assert (caught.value.accepted, caught.value.rest) == (1, ["d", "e"])
    with pytest.raises(Full) as caught:
        full.put_many(["d"], block=False)
    assert (caught.value.accepted, caught.value.rest) == (0, ["d"])
    put = Background(full.put_many, range(50), ids=range(50))
    found = taken(full, 1)
    while len(found) < 51:
        found += taken(full, 1, tube=None) if full.qsize() else []
    assert found == ["c", *range(50)]
    assert put.result() == list(range(50))


def test_a_put_that_is_skipped_or_replaces_needs_no_space(full):
    first = full.take(0)
    held = full.put("c", unique="u")
    assert full.put("d", unique="u", block=False) == held
    with pytest.raises(TaskExists):
        full.put("d", unique="u", on_conflict="error", block=False)
    assert full.put("d", unique="u", on_conflict="replace", block=False) == held
    first.ack()
    assert taken(full, 1) == ["d"]
    full.put("e")
    with pytest.raises(Full):  # the holder is taken: this is another task
        full.put("f", unique="u", on_conflict="replace", block=False)


@pytest.mark.usefixtures("no_ticks")
def test_a_put_that_waits_for_its_task_waits_for_space_first(full):
    put = Background(full.put, "c", wait=HOURS)
    until(lambda: full.stats().putting == 1)
    full.take(0).ack()
    full.take(LIMIT).ack()
    task, was_processed = put.result()
    assert (task.data, was_processed) == ("c", True)


@pytest.mark.usefixtures("no_ticks")
def test_a_new_bound_counts_for_the_puts_that_wait(full):
    puts = putting(full, "c", "d", "e")
    full.configure(maxsize=3)
    until(lambda: number_of(puts) == 1)
    assert full.maxsize == full.settings.maxsize == 3
    full.configure(maxsize=1)
    taken(full, 2)
    with pytest.raises(Full):
        full.put("f", block=False)
    full.configure(maxsize=0)
    for put in puts:
        put.result()
    assert not full.full()
    full.put_many(range(10), block=False)


@pytest.mark.usefixtures("no_ticks")
def test_puts_that_wait_are_told_of_a_shutdown(full):
    puts = putting(full, "c", "d")
    full.shutdown()
    for put in puts:
        with pytest.raises(ShutDown):
            put.result()


def test_a_put_that_waits_is_told_that_its_handle_is_closed(full):
    other = pickle.loads(pickle.dumps(full))
    (put,) = putting(other, "c")
    other.close()
    with pytest.raises(HandleClosedError):
        put.result()


def test_puts_that_wait_are_told_that_the_queue_is_gone(full):
    puts = putting(full, "c", "d")
    full.delete()
    for put in puts:
        with pytest.raises(QueueDoesNotExistError):
            put.result()


def test_the_bound_belongs_to_the_queue(full, url, name):
    assert TaskQueue.attach(name, url=url).maxsize == 2
    with pytest.warns(QueueMismatchWarning, match="maxsize=2, not maxsize=3"):
        TaskQueue(name, url=url, maxsize=3).open()
    assert TaskQueue(f"{name}-none", url=url, maxsize=-1).settings.maxsize == 0
    for wrong in ("2", 2.0, None):
        with pytest.raises(ArgumentTypeError):
            TaskQueue(name, url=url, maxsize=wrong)
        with pytest.raises(ArgumentTypeError):
            full.configure(maxsize=wrong)
    with pytest.raises(ArgumentTypeError):
        full.put("c", timeout="long")


def test_a_task_is_forwarded_when_there_is_space(full, url, name):
    source = TaskQueue(f"{name}-source", url=url, ttr=HOURS)
    source.put_many([1, 2, 3])
    first, second, third = source.take_many(3, timeout=0)
    with pytest.raises(Full):
        first.forward(full, "c", block=False)
    with pytest.raises(Full):
        first.forward(full, "c", timeout=0.05)
    assert first.state == "T"
    forwarding = Background(first.forward, full, "c", timeout=HOURS)
    until(lambda: full.stats().putting == 1)
    assert source.stats().counts["T"] == 3
    taken(full, 1)
    forwarding.result()
    assert first.state == "X"
    assert source.stats().counts["T"] == 2
    second.forward(source, "again")  # it has no bound
    third.release()
    assert taken(source, 5) == [3, "again"]
    source.delete()


@pytest.mark.usefixtures("no_ticks")
def test_puts_of_an_event_loop_wait(full, url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            assert await queue.full()
            assert await queue.maxsize() == 2
            with pytest.raises(Full):
                await queue.put("c", block=False)
            with pytest.raises(Full):
                await queue.put("c", timeout=0.05)
            puts = [asyncio.ensure_future(queue.put(number)) for number in range(30)]
            many = asyncio.ensure_future(queue.put_many(range(30, 60)))
            given_up = asyncio.ensure_future(queue.put("given up"))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(given_up, 0.1)
            found = []
            while len(found) < 61:
                found.append((await queue.take(LIMIT)).data)
            await asyncio.gather(*puts, many)
            return found

    found = asyncio.run(main())
    assert sorted(map(str, found)) == sorted(["a", *map(str, range(60))])
    assert full.stats().putting == 0


@pytest.mark.usefixtures("no_ticks")
def test_a_cancelled_put_leaves_its_place_to_the_next(full, url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            first = asyncio.ensure_future(queue.put("first"))
            while (await queue.stats()).putting != 1:
                await asyncio.sleep(0.01)
            waiting = Background(full.put, "second")
            while (await queue.stats()).putting != 2:
                await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await queue.take(0)
            while waiting.is_alive():
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), LIMIT))
    assert taken(full, 5) == ["second"]


@pytest.mark.needs(Can.PROCESSES)
def test_a_put_that_is_killed_leaves_its_place_to_the_next(full):
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=programs.put_one, args=(full, "killed"))
    process.start()
    until(lambda: full.stats().putting == 1)
    (put,) = putting(full, "c")
    process.kill()
    process.join()
    assert taken(full, 1) == ["a"]
    put.result()
    assert taken(full, 5) == ["c"]


@pytest.mark.needs(Can.PROCESSES)
def test_a_forked_child_of_a_put_that_waits_puts_for_itself(full):
    (put,) = putting(full, "parent")
    process = multiprocessing.get_context("fork").Process(
        target=programs.put_one, args=(full, "child")
    )
    process.start()
    until(lambda: full.stats().putting == 2)
    assert taken(full, 1) == ["a"]
    put.result()
    assert full.take(LIMIT).data == "parent"
    process.join(LIMIT)
    assert process.exitcode == 0
    assert taken(full, 5) == ["child"]


def test_many_producers_and_workers_never_exceed_the_bound(full, url):
    full.truncate()
    full.configure(maxsize=5)
    seen, over, stop = [], [], threading.Event()

    def produce(me):
        for number in range(100):
            full.put((me, number))

    def look():
        while not stop.is_set():
            counts = full.stats().counts
            if counts["R"] + counts["W"] > 5:
                over.append(counts)

    workers = [
        Background(full.run, lambda task: seen.append(task.data), stop=stop) for _ in range(3)
    ]
    producers = [Background(produce, me) for me in range(4)]
    looking = Background(look)
    for producer in producers:
        producer.result()
    until(lambda: len(seen) == 400)
    stop.set()
    for one in (*workers, looking):
        one.result()
    assert not over
    assert sorted(seen) == [(me, number) for me in range(4) for number in range(100)]


def test_a_put_waits_on_while_the_broker_is_away(durable, name):
    queue = TaskQueue(name, url=durable.url, reconnect=30, maxsize=1)
    queue.put("a")
    (put,) = putting(queue, "b")
    durable.kill()
    durable.start()
    until(lambda: answers(queue))
    assert put.is_alive()
    assert taken(queue, 1) == ["a"]
    put.result()
    assert taken(queue, 5) == ["b"]
    queue.delete()


def test_the_task_of_a_schedule_waits_for_space(url, name):
    queue = TaskQueue(name, url=url, maxsize=1)
    queue.put("a")
    queue.every(0.05, "tick")
    seen, stop = [], threading.Event()
    queue.pause()
    running = Background(queue.run, lambda task: seen.append(task.data), stop=stop)
    until(lambda: queue.stats().putting == 1)
    assert queue.stats().counts["R"] == 1
    queue.resume()
    until(lambda: seen.count("tick") > 1)
    queue.pause()
    until(lambda: queue.stats().putting == 1)
    stop.set()
    running.result()
    until(lambda: queue.stats().putting == 0)  # it ends within a second
    queue.delete()


def test_a_transaction_takes_space_and_does_not_wait(full, url):
    if url.startswith(("memory", "redis", "embedded")):
        with pytest.raises(ArgumentError):
            full.put("c", connection=object())
        return
    with pytest.raises(ArgumentError):
        full.put("c", connection=object(), timeout=1)


def test_why_blocked_says_that_puts_wait(full, name):
    found = full.why_blocked()
    assert (found.maxsize, found.putting) == (2, 0)
    assert "full: 2 of 2 tasks are ready or waiting" in str(found)
    (put,) = putting(full, "c")
    assert "full: 2 of 2 tasks are ready or waiting, and 1 put waits" in str(full.why_blocked())
    full.take(0)
    put.result()
    assert "of 2 tasks" in str(full.why_blocked())
