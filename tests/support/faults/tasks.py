"""What producers and workers of tasks do in the fault suite; each writes it down (histories.py)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pressure_mp.aio
from faults.clients import attach, attempt, message, name_of
from faults.histories import DONE, FENCED, UNKNOWN, Log
from faults.task_checker import LOST, THEN
from pressure_mp import (
    BrokerUnavailable,
    Empty,
    ResultTimeout,
    ShutDown,
    Task,
    TaskError,
    TaskQueue,
)

TUBES = [None, None, "a", "b"]
#: How many tasks may be ready before producers wait.
_AHEAD = 200
#: What a worker does with a task, and how likely that is.
_WAYS = {"task_done": 45, "next": 40, "release": 5, "delay": 5, "bury": 5}


def put_tasks(log: Log, name: str, options: dict[str, Any], seed: int, items: int) -> None:
    """Put so many tasks, some with a delay; end when the queue is shut down."""
    queue: TaskQueue = attach("TaskQueue", name, options)
    chance = random.Random(f"{seed} {log.client}")
    for number in range(items):
        item = f"{log.client}-{number}"
        try:
            attempt(log, "put", item, lambda item=item: _put(queue, chance, item))
        except ShutDown:
            return
        while number % 20 == 0 and queue.stats().counts["R"] > _AHEAD:
            time.sleep(0.01)


def _put(queue: TaskQueue, chance: random.Random, item: str) -> None:
    delay = chance.choice([None] * 8 + [0.01, 0.2])
    asked: dict[str, Any] = {"id": item, "result_ttl": 3600} if is_asked_for(item) else {}
    order = {"tube": chance.choice(TUBES), "priority": chance.choice([0, 0, 1])}
    queue.put(message(item), delay=delay, **order, **asked)


def is_asked_for(item: str) -> bool:
    """Whether the result of a task is kept, which then has its name as its id. The result is the
    worker's name."""
    return int(item.rpartition("-")[2]) % 2 == 0


def results_of(queue: TaskQueue, items: Iterable[str]) -> dict[str, str | None]:
    """The results that the broker keeps for items that asked for one; None where it keeps none."""
    found: dict[str, str | None] = {}
    for item in filter(is_asked_for, items):
        try:
            found[item] = queue.result(item, 0)
        except (TaskError, ResultTimeout):
            found[item] = None
    return found


def work_tasks(log: Log, name: str, options: dict[str, Any], seed: int) -> None:
    """Take tasks, work on each for a while, and say what becomes of them; until the shutdown."""
    queue: TaskQueue = attach("TaskQueue", name, options)
    chance = random.Random(f"{seed} {log.client}")
    taken: list[Task] = []
    item: str | None = None
    try:
        while True:
            if item is None:
                item = attempt(log, "get", "", lambda: _take(queue, chance, taken))
                continue
            time.sleep(chance.uniform(0, 0.03))
            (way,) = chance.choices(list(_WAYS), list(_WAYS.values()))
            if way == "next":
                item = _close_by_take(log, queue, item, taken)
            else:
                _close(log, way, item, taken[-1])
                item = None
    except ShutDown:
        return


def _take(queue: TaskQueue, chance: random.Random, taken: list[Task]) -> bytes:
    """Take a task, of a tube or not, and wait or not."""
    tube = chance.choice([*TUBES, None, None])
    timeout = chance.choice([0, 0.2]) if tube else chance.choice([0.5, None])
    taken.append(queue.take(timeout, tube=tube))
    data: bytes = taken[-1].data
    return data


def _close_by_take(log: Log, queue: TaskQueue, item: str, taken: list[Task]) -> str | None:
    """Acknowledge a task by the take of the next one; which is one operation, of two tasks."""
    done = taken[-1]
    done.result = log.client
    log.begin("next", item)
    following, is_over = "", False
    try:
        taken.append(queue.take(0.5, ack=done))
        following = name_of(taken[-1].data)
    except Empty:
        pass
    except ShutDown:
        is_over = True
    except BrokerUnavailable:
        following = LOST
    except TaskError:
        log.end(FENCED, item + THEN)
        return None
    log.end(DONE if done.state == "X" else UNKNOWN, item + THEN + following)
    if is_over:
        raise ShutDown
    return following if following not in ("", LOST) else None


def _close(log: Log, way: str, item: str, task: Task) -> None:
    """Say what becomes of a task; and write it down: ``task_done``, ``release`` or ``bury``."""
    calls: dict[str, Callable[[], None]] = {
        "task_done": lambda: task.ack(result=log.client),
        "release": task.release,
        "delay": lambda: task.release(delay=0.05),
        "bury": lambda: task.bury(error="as it came"),
    }
    log.begin("release" if way == "delay" else way, item)
    try:
        calls[way]()
    except TaskError:
        log.end(FENCED)
    except BrokerUnavailable:
        log.end(UNKNOWN)
    else:
        log.end(DONE)


def run_tasks(
    log: Log, name: str, options: dict[str, Any], seed: int, run_in: str, concurrency: int
) -> None:
    """Handle tasks by ``run``, in threads or on an event loop; note what each handler does. The
    result of a task is the client's name. Ends when the queue is shut down."""
    chance = random.Random(f"{seed} {log.client}")
    logs = [Log(log.directory, log.client, f"handler{n}") for n in range(concurrency)]

    @contextlib.contextmanager
    def noted(task: Any) -> Iterator[float]:
        mine = logs.pop()
        mine.begin("handle", name_of(task.data))
        yield chance.uniform(0, 0.01)
        mine.end()
        logs.append(mine)

    def handle(task: Task) -> str:
        with noted(task) as seconds:
            time.sleep(seconds)
        return log.client

    async def handle_on_loop(task: pressure_mp.aio.Task) -> str:
        with noted(task) as seconds:
            await asyncio.sleep(seconds)
        return log.client

    async def run_on_loop() -> None:
        queue: pressure_mp.aio.TaskQueue = await pressure_mp.aio.TaskQueue.attach(name, **options)
        await queue.run(handle_on_loop, concurrency=concurrency)

    if run_in == "asyncio":
        asyncio.run(run_on_loop())
    else:
        attach("TaskQueue", name, options).run(handle, concurrency=concurrency)
