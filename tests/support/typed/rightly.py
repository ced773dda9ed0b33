"""A user's program, with types: checkers find nothing wrong with it, and it runs."""

# pyright: strict

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pressure_mp import (
    FairQueue,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueSummary,
    SimpleQueue,
    Stats,
    Task,
    TaskQueue,
    TaskState,
    aio,
    list_queues,
)

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, kind):
        return value


URL = "memory://typed"


@dataclass
class Job:
    tenant: str
    pages: int


def tenant(job: Job) -> str:
    return job.tenant


class Numbers(Queue[int]):
    def total(self) -> int:
        return sum(self)


def queues() -> None:
    queue: Queue[int] = Queue(10, url=URL, lease=2)
    queue.put(1)
    queue.put_nowait(2)
    queue.put_many(range(3, 7))
    assert_type(queue.get(), int)
    assert_type(queue.get(timeout=1.5), int)
    assert_type(queue.get_nowait(), int)
    assert_type(queue.get_many(2), list[int])
    assert_type(queue.peek(2), list[int])
    for listed in list_queues(url=URL):
        assert_type(listed, QueueSummary)
    queue.shutdown()
    for number in queue:
        assert_type(number, int)
    with Queue[str](url=URL) as names:
        assert_type(names, Queue[str])


def made_by_name() -> None:
    made = Queue[int].create("numbers", 5, url=URL, reconnect=0)
    assert_type(made, Queue[int])
    attached = Queue[int].attach("numbers", url=URL)
    assert_type(attached, Queue[int])
    attached.delete()
    anything = Queue.create("numbers", url=URL)
    assert_type(anything, Queue[Any])
    anything.put(1)
    anything.get().bit_count()
    anything.delete()
    assert_type(JoinableQueue.create("items", url=URL), JoinableQueue[Any])
    assert_type(TaskQueue.create("tasks", url=URL), TaskQueue[Any])
    numbers = Numbers.create("sum", url=URL)
    assert_type(numbers, Numbers)
    numbers.put_many([1, 2])
    numbers.shutdown()
    assert_type(numbers.get(), int)
    assert numbers.total() == 2


def other_kinds() -> None:
    joinable: JoinableQueue[Job] = JoinableQueue(url=URL, max_deliveries=3)
    joinable.put(Job("ann", 1))
    assert_type(joinable.get().pages, int)
    joinable.task_done()
    simple: SimpleQueue[bytes] = SimpleQueue(url=URL, serializer="raw")
    simple.put(b"item")
    assert_type(simple.get(), bytes)
    lifo: LifoQueue[str] = LifoQueue(url=URL)
    lifo.put("last")
    assert_type(lifo.get(), str)
    by_size = PriorityQueue[Job](url=URL, key=lambda job: job.pages)
    by_size.put(Job("ann", 1))
    assert_type(by_size.get(), Job)
    fair = FairQueue(tenant, url=URL, weight=lambda name: 2)
    assert_type(fair, FairQueue[Job])
    fair.put(Job("ann", 1))
    assert_type(fair.qsize(key="ann"), int)
    assert_type(fair.get(), Job)
    created = FairQueue[Job].create("fair", url=URL, key=tenant)
    assert_type(created, FairQueue[Job])
    protocol = PressureQueue("bytes", url=URL, durability=None)
    protocol.create()
    protocol.put(b"item")
    assert_type(protocol.get(), bytes)


class NumbersOfAsyncio(aio.Queue[int]):
    async def peek(self, max_items: int = 3) -> list[int]:
        return await super().peek(max_items)

    async def total(self) -> int:
        return sum([one async for one in self])


def of_another() -> None:
    """pyright has to be told of which items a handle is that is made of another one."""
    plain = Queue[int](url=URL)
    assert_type(aio.Queue[int].of(plain), aio.Queue[int])
    assert_type(NumbersOfAsyncio.of(plain), NumbersOfAsyncio)
    found = aio.Queue.of(plain)
    assert_type(found, aio.Queue[int])  # pyright: ignore[reportAssertTypeFailure]
    lifo = aio.LifoQueue.of(LifoQueue[int](url=URL))
    assert_type(lifo, aio.LifoQueue[int])  # pyright: ignore[reportAssertTypeFailure]
    fair = aio.FairQueue.of(FairQueue(tenant, url=URL))
    assert_type(fair, aio.FairQueue[Job])  # pyright: ignore[reportAssertTypeFailure]
    tasks = aio.TaskQueue.of(TaskQueue[int](url=URL))
    assert_type(tasks, aio.TaskQueue[int])  # pyright: ignore[reportAssertTypeFailure]
    protocol = aio.PressureQueue.of(PressureQueue("bytes", url=URL))
    assert_type(protocol, aio.PressureQueue)


async def of_asyncio() -> None:
    queue: aio.Queue[int] = aio.Queue(10, url=URL, lease=2)
    await queue.put(1)
    await queue.put_nowait(2)
    await queue.put_many(range(3, 7))
    assert_type(await queue.get(timeout=1.5), int)
    assert_type(await queue.get_nowait(), int)
    assert_type(await queue.get_many(2), list[int])
    assert_type(await queue.peek(max_items=2), list[int])
    assert_type(await queue.stats(), Stats)
    assert_type(await queue.qsize() + await queue.maxsize(), int)
    assert_type(await queue.empty(), bool)
    await queue.shutdown()
    async for number in queue:
        assert_type(number, int)
    async with aio.JoinableQueue[Job](url=URL, max_deliveries=3) as jobs:
        await jobs.put(Job("ann", 1))
        assert_type((await jobs.get()).pages, int)
        await jobs.task_done()
    assert_type(await aio.Queue.create("anything", url=URL), aio.Queue[Any])
    assert_type(await aio.TaskQueue.attach("tasks", url=URL), aio.TaskQueue[Any])
    numbers = await NumbersOfAsyncio.create("sum of asyncio", url=URL)
    assert_type(numbers, NumbersOfAsyncio)
    await numbers.put_many([1, 2])
    await numbers.shutdown()
    assert await numbers.total() == 3
    by_size = aio.PriorityQueue[Job](url=URL, key=lambda job: job.pages)
    await by_size.put(Job("ann", 1))
    assert_type(await by_size.get(), Job)
    fair = aio.FairQueue(tenant, url=URL)
    assert_type(fair, aio.FairQueue[Job])
    assert_type(await fair.qsize(key="ann"), int)
    lifo: aio.LifoQueue[str] = aio.LifoQueue(url=URL)
    await lifo.put("last")
    assert_type(await lifo.get(), str)
    protocol = aio.PressureQueue("bytes of asyncio", url=URL)
    await protocol.create()
    await protocol.put(b"item")
    assert_type(await protocol.get(), bytes)


def tasks() -> None:
    jobs = TaskQueue[Job].create("jobs", url=URL, ttr=30, keep=True)
    assert_type(jobs, TaskQueue[Job])
    assert_type(jobs.put(Job("ann", 1)), int | str)
    jobs.put_many([Job("bob", 2), Job("cleo", 3)])
    with jobs.take() as task:
        assert_type(task, Task[Job])
        assert_type(task.data, Job)
        assert_type(task.state, TaskState)
    (second,) = jobs.take_many(1)
    second.ack(update=lambda job: Job(job.tenant, 0))
    assert_type(jobs.stats().counts[TaskState.DONE], int)
    assert_type(jobs.list(TaskState.READY), list[Task[Job]])

    @jobs.worker(concurrency=2)
    def count(task: Task[Job]) -> int:
        jobs.shutdown()
        return task.data.pages

    assert_type(jobs.take(0).data.tenant, str)
    jobs.put(Job("dora", 4))
    jobs.run()


async def tasks_of_asyncio() -> None:
    jobs = await aio.TaskQueue[Job].create("jobs of asyncio", url=URL, ttr=30, keep=True)
    assert_type(jobs, aio.TaskQueue[Job])
    assert_type(await jobs.put(Job("ann", 1), priority=2), int | str)
    assert_type(await jobs.put(Job("bob", 2), wait=0), tuple[aio.Task[Job], bool])
    await jobs.put_many([Job("cleo", 3)], tube="slow")
    async with await jobs.take(timeout=0, backoff=lambda deliveries: 2.0**deliveries) as task:
        assert_type(task, aio.Task[Job])
        assert_type(task.data, Job)
    (second,) = await jobs.take_many(1)
    await second.ack(update=lambda job: Job(job.tenant, 0))
    third = await jobs.take(0)
    assert_type(await jobs.release(third, delay=5, error="later"), aio.Task[Job])
    assert_type(await jobs.list(TaskState.DONE, limit=5), list[aio.Task[Job]])
    assert_type(await jobs.kick_many(limit=2), int)
    assert_type((await jobs.stats()).counts[TaskState.DONE], int)


if __name__ == "__main__":
    queues()
    made_by_name()
    of_another()
    other_kinds()
    asyncio.run(of_asyncio())
    tasks()
    asyncio.run(tasks_of_asyncio())
