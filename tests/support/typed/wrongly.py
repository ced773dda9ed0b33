"""A user's program, each line of which that says so is wrong. It is checked, and not run."""

# pyright: strict

from __future__ import annotations

from pressure_mp import (
    FairQueue,
    JoinableQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    SimpleQueue,
    Task,
    TaskQueue,
    aio,
)


def size(text: str) -> int:
    return len(text)


numbers: Queue[int] = Queue()
numbers.put("one")  # wrong
numbers.put_nowait(None)  # wrong
numbers.put_many(["one", "two"])  # wrong
text: str = numbers.get()  # wrong
texts: list[str] = numbers.get_many(2)  # wrong
for one in numbers:
    one.upper()  # wrong
others: Queue[str] = numbers  # wrong

Queue[int](leese=2)  # wrong
Queue[int](lease="2")  # wrong
Queue[int](_how="create")  # wrong
Queue[int](eof="consumers")  # wrong
Queue[int].create("name", leese=2)  # wrong
Queue[int].create("name", lease="2")  # wrong
Queue[int].create()  # wrong
Queue[int].attach("name", max_deliveries=2)  # wrong
JoinableQueue[int].attach("name", max_deliveries="2")  # wrong
SimpleQueue[int](maxsize=2)  # wrong
PressureQueue("name", buffering=1)  # wrong
PressureQueue("name").put("text")  # wrong

by_size: PriorityQueue[int] = PriorityQueue(key=size)  # wrong
FairQueue[str].create("name")  # wrong
FairQueue[int].create("name", key=size)  # wrong
FairQueue[str](size).qsize(kye=1)  # wrong

jobs: TaskQueue[str] = TaskQueue()
jobs.put(1)  # wrong
jobs.put_many([1, 2])  # wrong
number: int = jobs.take().data  # wrong
jobs.take().ack(update=1)  # wrong
jobs.take().state = "R"  # wrong
jobs.list(1)  # wrong
TaskQueue[str](ttr="1")  # wrong
TaskQueue[str].create("name", eof="producers")  # wrong


def add(task: Task[int]) -> int:
    return task.data + 1


jobs.run(add)  # wrong
jobs.worker()(add)  # wrong


async def of_asyncio() -> None:
    queue: aio.Queue[int] = aio.Queue()
    queue.put_nowait(1)  # wrong
    queue.put(1)  # wrong
    queue.task_done()  # wrong
    queue.qsize() + 1  # wrong
    empty: bool = queue.empty()  # wrong
    queue.shutdown(immediate=True)  # wrong
    number: int = queue.get_nowait()  # wrong
    text: str = await queue.get()  # wrong
    texts: list[str] = await queue.get_many(2)  # wrong
    await queue.put("one")  # wrong
    queue.maxsize + 1  # wrong
    for _one in queue:  # wrong
        pass
    with queue:  # wrong
        pass
    aio.Queue[int](leese=2)  # wrong
    await aio.FairQueue[int].create("name", key=size)  # wrong
    aio.Queue[int].of(Queue[str]())  # wrong
    aio.TaskQueue.of(Queue[str]())  # wrong
    aio.PressureQueue.of(Queue[str]())  # wrong
    await queue.peek(max=2)  # wrong
    await queue.peek("2")  # wrong
    peeked: list[str] = await queue.peek()  # wrong
    await queue.put_many(["one"])  # wrong
    await aio.FairQueue[str](size).qsize(kye=1)  # wrong
    jobs: aio.TaskQueue[str] = aio.TaskQueue()
    jobs.take()  # wrong
    await jobs.put(1)  # wrong
    await jobs.put_many([1, 2])  # wrong
    await jobs.take(tubes="slow")  # wrong
    await jobs.take(on_error="drop")  # wrong
    data: int = (await jobs.take()).data  # wrong
    await (await jobs.take()).ack(update=1)  # wrong
    await jobs.ack(TaskQueue[str]().take())  # wrong
    await jobs.list(1)  # wrong
    print(number, text, texts, empty, peeked, data)
