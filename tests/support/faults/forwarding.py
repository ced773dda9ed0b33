"""What the workers of a pipeline do in the fault suite."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import Any

from faults.histories import Log
from pressure_mp import Empty, JoinableQueue, PressureError, Queue, ShutDown, TaskQueue

#: Seconds of work, at most, before each step: to be killed in any of them is as likely.
_WORK = 0.006
#: Every so many items one is large, and so many bytes are in it.
_EVERY, LARGE = 50, 300_000


def first_of(name: str, **options: Any) -> TaskQueue[Any]:
    return TaskQueue(f"{name}-first", max_deliveries=None, **options)


def second_of(name: str, **options: Any) -> JoinableQueue[Any]:
    """A queue that is mostly full."""
    return JoinableQueue(5, name=f"{name}-second", **options)


def third_of(name: str, **options: Any) -> TaskQueue[Any]:
    return TaskQueue(f"{name}-third", max_deliveries=None, **options)


def last_of(name: str, **options: Any) -> Queue[Any]:
    return Queue(name=f"{name}-last", **options)


def made_of(number: int) -> tuple[int, bytes]:
    """What a stage makes of an item with that number."""
    return number, b"large" * (LARGE // 5) if number % _EVERY == 0 else b""


def work_as_first(log: Log, name: str, seed: int, options: dict[str, Any]) -> None:
    _work(log, seed, first_of(name, **options), second_of(name, **options))


def work_as_second(log: Log, name: str, seed: int, options: dict[str, Any]) -> None:
    _work(log, seed, second_of(name, **options), third_of(name, **options))


def work_as_third(log: Log, name: str, seed: int, options: dict[str, Any]) -> None:
    _work(log, seed, third_of(name, **options), last_of(name, **options))


def _work(log: Log, seed: int, source: Any, target: Any) -> None:
    """Forward each delivery, until the shutdown; go on after an error, as a worker that is started
    again."""
    chance = random.Random(f"{seed} {log.client}")

    def pause() -> None:
        time.sleep(chance.uniform(0, _WORK))

    while True:
        with suppress(Empty, PressureError):
            try:
                if isinstance(source, TaskQueue):
                    task = source.take(0.5)
                    pause()
                    task.forward(target, made_of(task.data[0]))
                else:
                    number, _ = source.get(timeout=0.5)
                    pause()
                    source.forward(target, made_of(number))
            except ShutDown:
                return
            pause()
