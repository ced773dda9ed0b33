"""Sessions at queues in memory, for threads and for asyncio tasks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ...identity.client import client_id
from ..closed_loops import OwnLoop, give_back, own_loop
from ..contract.replies import Later
from ..contract.session import SessionDefaults, longest_wait
from ..requests.line import Caller


class MemoryQueue(Protocol):
    """The queue of one name, of whatever kind."""

    def call(self, request: Any, caller: Caller) -> Any:
        """Do a request, atomically, and wake the callers that can be served because of it."""

    def leave(self, caller: Caller) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""


class _Session(SessionDefaults):
    """The common part of the sessions of threads and of asyncio tasks: the caller of a queue."""

    def __init__(self, queue: MemoryQueue, discipline: str, lease: int) -> None:
        self.discipline = discipline
        self.lease = lease
        self._queue = queue

    @property
    def client(self) -> str:
        return client_id()


class MemorySession(_Session):
    """For a thread."""

    def __init__(self, queue: MemoryQueue, discipline: str, lease: int) -> None:
        super().__init__(queue, discipline, lease)
        # Only of a session that waited. An exception of a signal handler leaves it consistent.
        self._woken: SimpleQueue[None] | None = None

    def call(self, request: Any, end: float | None = None) -> Any:
        return self._queue.call(request, self)

    def wait(self, later: Later, timeout: float | None) -> bool:
        assert self._woken is not None
        try:
            self._woken.get(timeout=longest_wait(later, timeout))
        except Empty:
            return False
        return True

    def end(self) -> None:
        if self._woken is not None:
            self._queue.leave(self)

    def wake(self) -> None:
        assert self._woken is not None
        if self._woken.empty():
            self._woken.put(None)

    def will_wait(self) -> None:
        self._woken = SimpleQueue()


class AsyncMemorySession(_Session):
    """For an asyncio task."""

    def __init__(self, queue: MemoryQueue, discipline: str, lease: int) -> None:
        super().__init__(queue, discipline, lease)
        self._is_woken = False
        self._waiting: asyncio.Future[None] | None = None
        #: Only of a session that waited.
        self._loop: OwnLoop | None = None

    async def call(self, request: Any, end: float | None = None) -> Any:
        return self._queue.call(request, self)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        if self._loop is None:
            self._loop = own_loop()
            self._loop.note(self)
        self._waiting = waiting = asyncio.get_running_loop().create_future()
        if not self._is_woken:  # a wake-up from now on finds the future
            await asyncio.wait({waiting}, timeout=longest_wait(later, timeout))
        return self._is_woken

    async def end(self) -> None:
        if self._loop is not None and not self._loop.is_running:
            self.leave_behind()
            return
        if self._loop is not None:
            self._loop.forget(self)
        self._queue.leave(self)

    def leave_behind(self) -> None:
        """Leave in another thread: the loop was closed, or this operation's task is garbage, and
        the queue may be locked."""
        assert self._loop is not None
        self._loop.forget(self)
        give_back(partial(self._queue.leave, self))

    def wake(self) -> None:
        self._is_woken = True
        waiting = self._waiting
        if waiting is not None:
            with suppress(RuntimeError):  # the loop is closed, and will leave this operation behind
                waiting.get_loop().call_soon_threadsafe(_end, waiting)

    def will_wait(self) -> None:
        self._is_woken = False


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
