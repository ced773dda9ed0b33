"""Event loops for tests: begun, ended, and looked at afterwards."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import waiting

#: The name of the task that waits for all of a test.
_LIMITED = "waits for the test"


class _Complaints(logging.Handler):
    """What asyncio logs: a task that was destroyed while it waited, an error that no call got."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def run(main: Callable[[], Coroutine[Any, Any, Any]], limit: float = 50.0) -> Any:
    """``asyncio.run(main())``, with a time limit.

    Fails when asyncio logged a warning. A resource that is left open becomes a ResourceWarning
    here and not in some later test.
    """
    complaints = _Complaints()
    logger = logging.getLogger("asyncio")
    logger.addHandler(complaints)
    try:
        return asyncio.run(_limited(main, limit))
    finally:
        gc.collect()
        logger.removeHandler(complaints)
        assert not complaints.messages


async def _limited(main: Callable[[], Coroutine[Any, Any, Any]], limit: float) -> Any:
    # asyncio.wait, because wait_for would report the cancelled task's outcome as its own.
    this = asyncio.current_task()
    assert this is not None
    this.set_name(_LIMITED)
    task = asyncio.ensure_future(main())
    await asyncio.wait([task], timeout=limit)
    assert task.done(), f"still running after {limit} s: {task.get_stack()}"
    return task.result()


async def others_end() -> None:
    """Wait until all other tasks end. ``asyncio.wait_for`` may leave a task that no other awaits:
    before Python 3.12, when it is cancelled while it cancels what it waited for."""
    waits = {task for task in asyncio.all_tasks() if task.get_name() == _LIMITED}
    if others := asyncio.all_tasks() - waits - {asyncio.current_task()}:
        await asyncio.wait(others)


async def until(condition: Callable[[], Any], limit: float = waiting.LIMIT) -> Any:
    """Look until ``condition()`` is true; its value. Fails the test after ``limit`` seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit
    while True:
        value = condition()
        if value:
            return value
        assert loop.time() < deadline, f"not within {limit} s: {condition}"
        await asyncio.sleep(0.002)
