"""Sessions at queues in memory, for threads and for asyncio tasks."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from ...identity.client import client_id
from ..bells import LoopBell, ThreadBell
from ..blocking_coroutines import finish
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

    #: Only of a session that waited.
    _bell: ThreadBell | LoopBell | None = None

    def __init__(self, queue: MemoryQueue, discipline: str, lease: int) -> None:
        self.discipline = discipline
        self.lease = lease
        self._queue = queue

    @property
    def client(self) -> str:
        return client_id()

    def wake(self) -> None:
        assert self._bell is not None
        self._bell.ring()


class MemorySession(_Session):
    """For a thread."""

    def call(self, request: Any, end: float | None = None) -> Any:
        return self._queue.call(request, self)

    def wait(self, later: Later, timeout: float | None) -> bool:
        assert self._bell is not None
        return finish(self._bell.wait(longest_wait(later, timeout)))

    def end(self) -> None:
        if self._bell is not None:
            self._queue.leave(self)

    def will_wait(self) -> None:
        self._bell = ThreadBell()


class AsyncMemorySession(_Session):
    """For an asyncio task."""

    #: Only of a session that waited.
    _loop: OwnLoop | None = None

    async def call(self, request: Any, end: float | None = None) -> Any:
        return self._queue.call(request, self)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        if self._loop is None:
            self._loop = own_loop()
            self._loop.note(self)
        assert self._bell is not None
        return await self._bell.wait(longest_wait(later, timeout))

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

    def will_wait(self) -> None:
        self._bell = LoopBell()
