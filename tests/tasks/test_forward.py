"""A delivery is acknowledged, and something is put on another queue, in one step."""

from __future__ import annotations

import asyncio
import threading
import time

import inside
import pytest
from brokers.lossy import LossyProxy
from waiting import HOURS, LIMIT, Background, blocked, parks, until

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    EncodingError,
    FairQueue,
    Full,
    JoinableQueue,
    LateTaskDoneWarning,
    LifoQueue,
    NotOwner,
    NotTaken,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueDoesNotExistError,
    ShutDown,
    SimpleQueue,
    TaskDoneError,
    TaskExists,
    TaskNotFound,
    TaskQueue,
    aio,
)
from pressure_mp.identity.processes import incarnation

LARGE = b"large" * 100_000


@pytest.fixture
def tasks(url, name):
    """A queue of tasks, with a task that is ready."""
    queue = TaskQueue(name, url=url, ttr=HOURS)
    queue.put("task")
    return queue


@pytest.fixture
def items(url, name):
    """A queue of items, with an item."""
    queue = JoinableQueue(name=f"{name}-items", url=url)
    queue.put("item")
    return queue


@pytest.fixture
def other(url, name):
    """Makes other queues at the same place."""

    def make(kind, *args, **options):
        return kind(*args, name=f"{name}-{kind.__name__}", url=url, **options)

    return make


def states(queue):
    return {state.value: number for state, number in queue.stats().counts.items() if number}


@pytest.mark.parametrize("kind", [Queue, SimpleQueue, JoinableQueue, LifoQueue, PriorityQueue])
@pytest.mark.parametrize("item", ["small", LARGE], ids=["small", "large"])
def test_a_task_is_forwarded_to_a_queue_of_items(tasks, kind, item, other):
    target = other(kind, key=len) if kind is PriorityQueue else other(kind)
    task = tasks.take(0)
    assert task.forward(target, item) is None
    assert target.get(False) == item
    assert (task.state, states(tasks)) == ("X", {})


def test_an_item_is_forwarded_to_a_queue_of_items(items, other):
    target = other(FairQueue, lambda item: item % 2, maxsize=0)
    items.put("second")
    for number in (3, 5, 4):
        target.put(number)
    assert items.get() == "item"
    items.forward(target, 2)
    assert [target.get(False) for _ in range(4)] == [3, 4, 5, 2]
    assert (items.unfinished_tasks, items.get(False)) == (1, "second")


def test_a_delivery_is_forwarded_to_a_queue_of_tasks_with_the_options_of_its_put(
    tasks, items, other
):
    target = other(TaskQueue)
    made = tasks.take(0).forward(target, LARGE, delay=HOURS, priority=5, tube="tube", id="id")
    assert made == "id"
    (task,) = target.list("W")
    assert (task.id, task.data, task.priority, task.tube) == ("id", LARGE, 5, "tube")
    items.get()
    made = items.forward(target, "from an item", key="key")
    task = target.take(0)
    assert (task.id, task.data, task.key) == (made, "from an item", "key")
    items.join()


def test_a_delivery_is_forwarded_to_its_own_queue(tasks, items):
    task = tasks.take(0)
    made = task.forward(tasks, "again", delay=HOURS)
    assert made != task.id
    assert states(tasks) == {"W": 1}
    items.put("next")
    assert items.get() == "item"
    items.forward(items, "again")
    assert (items.qsize(), items.unfinished_tasks) == (2, 2)
    assert items.get_many(2) == ["next", "again"]


def test_a_full_queue_leaves_the_delivery_to_its_process(tasks, items, other):
    target = other(Queue, 1)
    target.put("first")
    task = tasks.take(0)
    items.get()
    for options in ({"block": False}, {"timeout": 0.05}):
        with pytest.raises(Full) as caught:
            task.forward(target, "second", **options)
        assert caught.value.item == "second"
        with pytest.raises(Full):
            items.forward(target, "second", **options)
    assert (states(tasks), items.unfinished_tasks, target.qsize()) == ({"T": 1}, 1, 1)
    assert target.get() == "first"
    task.forward(target, "second", block=False)
    assert target.get(False) == "second"
    items.forward(target, "third", block=False)
    assert target.get(False) == "third"
    assert (states(tasks), items.unfinished_tasks) == ({}, 0)


@pytest.mark.parametrize("world", ["threads", "asyncio"])
def test_a_forward_waits_for_space_and_is_woken(tasks, items, world, no_ticks, other):
    target = other(Queue, 1)
    target.put("first")
    if world == "threads":
        task = tasks.take(0)
        forwarding = Background(task.forward, target, "second")
        until(lambda: parks(forwarding))
    else:
        forwarding = Background(asyncio.run, forwarded_by_asyncio(tasks, target))
        until(lambda: states(tasks) == {"T": 1})
        time.sleep(0.05)
    assert (states(tasks), target.qsize()) == ({"T": 1}, 1)
    assert target.get() == "first"
    forwarding.result()
    assert (target.get(False), states(tasks)) == ("second", {})


async def forwarded_by_asyncio(tasks, target):
    async with aio.TaskQueue.of(tasks) as queue:
        task = await queue.take(0)
        await task.forward(aio.Queue.of(target), "second")


def test_waiting_calls_are_woken(url, tasks, items, no_ticks, other):
    tasks = TaskQueue(tasks.name, url=url, lease=HOURS)
    items = JoinableQueue(name=items.name, url=url, lease=HOURS)
    target = other(TaskQueue, lease=HOURS)
    task = tasks.take(0)
    waiting = Background(tasks.wait, task.id, HOURS)
    taking = Background(target.take, HOURS)
    until(lambda: parks(taking) and parks(waiting))
    task.forward(target, "forwarded")
    assert taking.result().data == "forwarded"
    assert waiting.result()[1] is True
    items.get()
    joining = Background(items.join)
    queue = other(Queue, lease=HOURS)
    getting = Background(queue.get)
    until(lambda: parks(joining) and parks(getting))
    items.forward(queue, "item")
    joining.result()
    assert getting.result() == "item"


TARGETS = [Queue, LifoQueue, PriorityQueue, TaskQueue]
SOURCES = [TaskQueue, JoinableQueue]


def deliveries(url, name, source, number):
    """Functions that forward a delivery each, of a queue of that kind."""
    queue = source(name=f"{name}-source", url=url, lease=HOURS)
    for place in range(number):
        queue.put(place)
    if source is TaskQueue:
        return [task.forward for task in queue.take_many(number)]
    for _ in range(number):
        queue.get()
    return [queue.forward] * number


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_each_forward_wakes_one_of_the_threads_that_wait_at_its_target(
    url, name, kind, source, no_ticks, no_looks, other
):
    target = other(kind, lease=HOURS)
    forwards = deliveries(url, name, source, 3)
    waiting = [Background(target.take if kind is TaskQueue else target.get) for _ in forwards]
    until(lambda: all(map(parks, waiting)))
    for number, forward in enumerate(forwards, 1):
        forward(target, number)
        until(lambda number=number: [one.is_alive() for one in waiting].count(False) == number)
    found = [one.result() for one in waiting]
    assert sorted(one.data if kind is TaskQueue else one for one in found) == [1, 2, 3]


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_each_forward_wakes_one_of_the_asyncio_tasks_that_wait_at_its_target(
    valkey, name, kind, source, no_ticks, no_looks
):
    forwards = deliveries(valkey.url, name, source, 2)
    target = kind(name=name, url=valkey.url, lease=HOURS)
    target.qsize()

    async def wait():
        async with getattr(aio, kind.__name__)(name=name, url=valkey.url, lease=HOURS) as queue:
            if kind is TaskQueue:
                return (await queue.take()).data
            return await queue.get()

    with valkey.client() as client:
        before = blocked(client)
        waiting = [Background(asyncio.run, wait()) for _ in forwards]
        until(lambda: blocked(client) == before + len(waiting))
    for number, forward in enumerate(forwards, 1):
        forward(target, number)
        until(lambda number=number: [one.is_alive() for one in waiting].count(False) == number)
    assert sorted(one.result() for one in waiting) == [1, 2]


def test_a_stage_wakes_the_putters_of_a_full_source_and_getters_of_a_full_target_wake_it(
    url, name, no_ticks, no_looks, other
):
    source = JoinableQueue(1, name=f"{name}-source", url=url, lease=HOURS)
    target = other(Queue, 1, lease=HOURS)
    source.put(0)
    target.put("full")
    putting = [Background(source.put, number) for number in (1, 2)]
    until(lambda: all(map(parks, putting)))

    def carry():
        for _ in range(3):
            source.forward(target, source.get())

    carrying = Background(carry)
    until(lambda: [one.is_alive() for one in putting].count(False) == 1)
    until(lambda: parks(carrying))
    assert target.get() == "full"
    assert sorted(target.get() for _ in range(3)) == [0, 1, 2]
    for one in (*putting, carrying):
        one.result()
    source.join()


def test_a_task_that_was_given_back_is_not_forwarded(tasks, other):
    target, full = other(Queue), other(LifoQueue, 1)
    full.put("there")
    task = tasks.take(0)
    tasks.release(task.id)
    with pytest.raises(NotTaken):
        task.forward(target, "item")
    with pytest.raises(NotTaken):
        task.forward(full, "item", timeout=HOURS)
    again = tasks.take(0)
    with pytest.raises(NotOwner, match="forward is for its owner"):
        task.forward(target, "item")
    again.ack()
    with pytest.raises(TaskNotFound):
        task.forward(target, "item")
    assert target.empty()


def test_a_task_whose_time_is_over_is_not_forwarded_also_while_it_waits(tasks, other):
    target = other(Queue, 1, lease=HOURS)
    target.put("first")
    task = tasks.take(0, ttr=0.1)
    threading.Timer(0.3, target.get).start()
    with pytest.raises(NotTaken):
        task.forward(target, "second", timeout=LIMIT)
    Background(target.put, "next", timeout=HOURS).result()  # no call is in line before it
    assert target.get(False) == "next"


def test_an_item_that_was_taken_away_is_not_forwarded(items, other):
    target = other(Queue)
    items.get()
    inside.run(items, inside.operations(items).requeue(incarnation()))
    with pytest.raises(LateTaskDoneWarning, match="Nothing was put"):
        items.forward(target, "item")
    with pytest.raises(TaskDoneError, match="no such item in flight"):
        items.forward(target, "item")
    assert (target.empty(), items.get(False)) == (True, "item")


def test_a_put_that_is_refused_leaves_the_delivery_to_its_process(tasks, items, other):
    target = other(TaskQueue)
    target.put("there", id="id")
    task = tasks.take(0)
    items.get()
    with pytest.raises(TaskExists):
        task.forward(target, "another", id="id")
    with pytest.raises(EncodingError):
        task.forward(target, threading.Lock())
    with pytest.raises(EncodingError):
        items.forward(target, threading.Lock())
    target.shutdown()
    with pytest.raises(ShutDown):
        task.forward(target, "data")
    with pytest.raises(ShutDown):
        items.forward(target, "data")
    target.delete()
    with pytest.raises(QueueDoesNotExistError):
        task.forward(target, "data")
    with pytest.raises(QueueDoesNotExistError):
        items.forward(target, "data")
    task.release()
    items.task_done()
    assert states(tasks) == {"R": 1}
    items.join()


def test_the_result_of_a_task_is_kept(tasks, other):
    target = other(Queue)
    for result in ("small", LARGE):
        id = tasks.put("task", result_ttl=HOURS, priority=-1)
        tasks.take(0).forward(target, "item", result=result)
        assert tasks.result(id, 0) == result
    id = tasks.put("task", result_ttl=HOURS, priority=-1)
    task = tasks.take(0)
    task.result = "attribute"
    task.forward(target, "item")
    assert tasks.result(id, 0) == "attribute"


def test_a_task_is_acknowledged_when_the_unique_key_of_the_put_is_held(tasks, other):
    target = other(TaskQueue)
    there = target.put("there", unique="key")
    assert tasks.take(0).forward(target, "data", unique="key") == there
    assert (states(tasks), states(target)) == ({}, {"R": 1})
    tasks.put("task")
    task = tasks.take(0)
    with pytest.raises(TaskExists):
        task.forward(target, "data", unique="key", on_conflict="error")
    assert task.forward(target, "new", unique="key", on_conflict="replace") == there
    assert [one.data for one in target.list("R")] == ["new"]
    with pytest.raises(ArgumentError, match="own queue"):
        task.forward(tasks, "data", unique="key")


def test_a_task_stays_as_its_queue_says(url, name, other):
    queue = TaskQueue(name, url=url, keep=True)
    target = other(Queue)
    queue.put("task")
    task = queue.take(0)
    task.forward(target, "item")
    assert (task.state, states(queue)) == ("D", {"D": 1})
    queue.put("task")
    task = queue.take(0)
    queue.forward(task.id, target, "item")
    assert target.qsize() == 2


def test_a_target_at_another_place_is_refused_before_anything_is_done(tasks, items):
    task = tasks.take(0)
    items.get()
    elsewhere = Queue(name="elsewhere", url="redis://127.0.0.1:1/3", reconnect=0)
    inside.rebind(elsewhere, inside.bind(elsewhere))
    named = f"from queue {tasks.name!r} to queue 'elsewhere' is one step"
    with pytest.raises(ArgumentError, match=named):
        task.forward(elsewhere, "item")
    with pytest.raises(ArgumentError, match="to queue 'elsewhere'"):
        items.forward(elsewhere, "item")
    task.ack()
    items.task_done()


def test_an_anonymous_queue_whose_items_are_in_shared_memory_is_refused(valkey):
    tasks, named = TaskQueue(url=valkey.url), Queue(name="named", url=valkey.url)
    with tasks, JoinableQueue(url=valkey.url) as items, LifoQueue(url=valkey.url) as lifo:
        tasks.put("task")
        items.put("item")
        task = tasks.take(0)
        items.get()
        for forward, target in ((task.forward, items), (items.forward, named)):
            with pytest.raises(ArgumentError, match=f"{items.name!r}, which is anonymous.*a name"):
                forward(target, "item")
        items.task_done()
        task.forward(lifo, "item")
        assert lifo.get(False) == "item"


def test_arguments_that_make_no_sense_are_refused(tasks, items, other):
    target = other(TaskQueue)
    task = tasks.take(0)
    items.get()
    for option in ({"wait": 1}, {"connection": object()}):
        with pytest.raises(ArgumentError, match="cannot go with forward"):
            task.forward(target, "data", **option)
        with pytest.raises(ArgumentError, match="cannot go with forward"):
            items.forward(target, "data", **option)
    for nothing in ("queue", PressureQueue("bytes", url="memory://")):
        with pytest.raises(ArgumentTypeError, match="a queue of objects or of tasks"):
            task.forward(nothing, "data")
    with pytest.raises(ArgumentTypeError, match="both of asyncio"):
        task.forward(aio.TaskQueue.of(target), "data")
    with pytest.raises(TypeError):
        task.forward(other(Queue), "data", delay=1)
    assert states(tasks) == {"T": 1}


def test_the_same_in_asyncio(url, name):
    async def main():
        tasks = aio.TaskQueue(f"{name}-tasks", url=url, ttr=HOURS)
        items = aio.JoinableQueue(name=f"{name}-items", url=url)
        full = aio.LifoQueue(name=f"{name}-full", maxsize=1, url=url)
        await tasks.put("task")
        await items.put("item")
        await items.put("second")
        task = await tasks.take(0)
        await task.forward(full, LARGE)
        assert (task.state, await full.get()) == ("X", LARGE)
        await items.get()
        made = await items.forward(tasks, "from an item", priority=3)
        task = await tasks.take(0)
        assert (task.id, task.data, task.priority) == (made, "from an item", 3)
        await full.put("there")
        await items.get()
        with pytest.raises(aio.QueueFull):
            await task.forward(full, "more", timeout=0.05)
        with pytest.raises(aio.QueueFull):
            await items.forward(full, "more", block=False)
        waiting = [
            asyncio.create_task(task.forward(full, "from a task")),
            asyncio.create_task(full.put("put")),
        ]
        await asyncio.sleep(0.05)
        found = [await full.get() for _ in range(3)]
        await asyncio.gather(*waiting)
        assert sorted(found) == ["from a task", "put", "there"]
        await items.task_done()
        with pytest.raises(TaskDoneError):
            await items.forward(full, "item")
        async with aio.Queue(name=f"{name}-other", url=url) as target:
            await tasks.put("task")
            async with await tasks.take(0) as task:
                await task.forward(target, "item")
            assert (await target.get(), task.state) == ("item", "X")
            with pytest.raises(TaskNotFound):
                await tasks.forward(task, target, "again")

    asyncio.run(main())


def test_a_block_that_forwards_its_task_acknowledges_nothing_more(tasks, other):
    target = other(Queue)
    with tasks.take(0) as task:
        task.forward(target, "item")
    assert (task.state, target.qsize()) == ("X", 1)


@pytest.fixture
def proxy(broker):
    proxy = LossyProxy(broker.port)
    yield proxy
    proxy.stop()


@pytest.mark.parametrize("kind", [Queue, LifoQueue, TaskQueue])
@pytest.mark.parametrize("source", [TaskQueue, JoinableQueue])
@pytest.mark.parametrize("in_world", ["threads", "asyncio"])
def test_a_forward_whose_reply_is_lost_is_done_once(broker, proxy, name, kind, source, in_world):
    lossy = broker.url_at(proxy.port)
    target, here = kind(name=f"{name}-target", url=broker.url), source(name=name, url=lossy)
    target.open()
    here.put("first")
    here.put("second")
    if in_world == "threads":
        there = kind(name=target.name, url=lossy)
        there.qsize()
        for item in ("warms up", "is lost"):
            delivery = here.take(0) if source is TaskQueue else here.get(False)
            if item == "is lost":
                proxy.lose(2)
            (delivery if source is TaskQueue else here).forward(there, item)
    else:
        asyncio.run(forwarded_twice(here, target, lossy, proxy))
    assert proxy.lost == 2
    assert target.qsize() == 2
    assert here.stats().counts["T"] == 0 if source is TaskQueue else here.unfinished_tasks == 0


async def forwarded_twice(here, target, lossy, proxy):
    source = getattr(aio, type(here).__name__).of(here)
    there = getattr(aio, type(target).__name__)(name=target.name, url=lossy)
    await there.open()
    for item in ("warms up", "is lost"):
        delivery = await (source.take(0) if isinstance(here, TaskQueue) else source.get(False))
        if item == "is lost":
            proxy.lose(2)
        await (delivery if isinstance(here, TaskQueue) else source).forward(there, item)
