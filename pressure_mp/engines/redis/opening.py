"""Limits on how an event loop opens connections: many tasks that need one at once do not open one
each."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: The most connections to one server that are opened at a time, for single operations.
_AT_ONCE = 4


class Together(Generic[T]):
    """A call that is made once for all tasks that make it at the same time. A task that is
    cancelled, or has no more time, does not end it for the others."""

    def __init__(self, do: Callable[..., Coroutine[Any, Any, T]]) -> None:
        self._do = do
        self._task: asyncio.Task[T] | None = None

    async def __call__(self, timeout: float | None, *args: Any) -> T:
        """Return the result, or raise the error. The first task makes the call with its arguments,
        which have a time limit; the others wait ``timeout`` seconds for it."""
        task, limit = self._task, timeout
        if task is None:
            task, limit = asyncio.ensure_future(self._do(*args)), None
            self._task = task
            task.add_done_callback(self._end)
        done, _ = await asyncio.wait({task}, timeout=limit)
        if not done:
            raise TimeoutError("no connection in time")
        if task.cancelled():
            raise ConnectionAbortedError("the event loop ends")
        error = task.exception()
        if error is not None:
            raise error.with_traceback(None)
        return task.result()

    def _end(self, task: asyncio.Task[T]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # perhaps no task waits for it any more


class Gate:
    """Limits how many tasks open a connection at a time. A waiting task tries again when another
    has opened one, or when a connection became idle."""

    def __init__(self) -> None:
        self._free = _AT_ONCE
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()

    def enter(self) -> bool:
        """Return whether the caller may open a connection now; it must call :meth:`leave` then."""
        if self._free == 0:
            return False
        self._free -= 1
        return True

    def leave(self, error: OSError | None = None) -> None:
        """Note that a connection was opened; with an ``error`` it was not, and the waiting tasks
        raise that too."""
        self._free += 1
        if error is None:
            self.wake()
            return
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    def wake(self) -> None:
        """Let the first waiting task try again."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    async def wait(self, timeout: float | None) -> None:
        """Wait until another try may succeed."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            done, _ = await asyncio.wait({waiting}, timeout=timeout)
        except asyncio.CancelledError:
            if waiting.done() and waiting.exception() is None:
                self.wake()
            waiting.cancel()
            raise
        if not done:
            waiting.cancel()
            raise TimeoutError("no connection in time")
        error = waiting.exception()
        if error is not None:
            raise error.with_traceback(None)
