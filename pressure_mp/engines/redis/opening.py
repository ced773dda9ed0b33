"""How an event loop opens connections: many who need one at once do not open one each."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: So many connections to one server are opened at a time, for single operations.
_AT_ONCE = 4


class Together(Generic[T]):
    """Something that is done once for all who want it while it is done. Who is cancelled, or has
    no more time, does not end it for the others."""

    def __init__(self, do: Callable[..., Coroutine[Any, Any, T]]) -> None:
        self._do = do
        self._task: asyncio.Task[T] | None = None

    async def __call__(self, timeout: float | None, *args: Any) -> T:
        """What comes of it, or its error. The first who wants it says with which arguments, and
        has a time limit in them; the others wait ``timeout`` seconds for it."""
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
            task.exception()  # perhaps nobody waits for it any more


class Gate:
    """Lets few open a connection at a time. Who stands before it tries again when one has passed,
    or when a connection became idle."""

    def __init__(self) -> None:
        self._free = _AT_ONCE
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()

    def enter(self) -> bool:
        """Whether the caller may open one now; it leaves then."""
        if self._free == 0:
            return False
        self._free -= 1
        return True

    def leave(self, error: OSError | None = None) -> None:
        """One was opened; or not, and then nobody who waits will have better luck."""
        self._free += 1
        if error is None:
            self.wake()
            return
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    def wake(self) -> None:
        """Let the first who waits try again."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    async def wait(self, timeout: float | None) -> None:
        """Wait until to try again may help."""
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
