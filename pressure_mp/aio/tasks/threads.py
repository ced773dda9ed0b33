"""The threads in which a worker pool of asyncio runs handlers that are plain functions.

They are daemon threads: the threads of ``concurrent.futures`` would keep the process from ending
while a handler hangs that was given up.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Work = tuple["asyncio.Future[tuple[Any, BaseException | None]]", Callable[[], Any]]


class Threads:
    """As many threads as there ever were calls at the same time; all calls are of one loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._number = 0
        self._idle = 0

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call it in one of the threads; return its result. A cancelled caller does not end it."""
        done: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()
        context = contextvars.copy_context()
        if self._idle:
            self._idle -= 1
        else:
            self._number += 1
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        self._work.put((done, lambda: context.run(function)))
        found, error = await done
        if error is not None:
            raise error
        return found

    def end(self) -> None:
        """The threads end, each when its function has returned."""
        for _ in range(self._number):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            done, function = work
            found, error = None, None
            try:
                found = function()
            except BaseException as raised:
                error = raised
            try:
                self._loop.call_soon_threadsafe(self._tell, done, found, error)
            except RuntimeError:  # the loop is closed: no task waits for it
                return
            del work, done, function, found, error  # what they refer to is not kept while it waits

    def _tell(
        self,
        done: asyncio.Future[tuple[Any, BaseException | None]],
        found: Any,
        error: BaseException | None,
    ) -> None:
        self._idle += 1
        if not done.done():
            done.set_result((found, error))
