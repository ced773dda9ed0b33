"""Bells, which wake a waiting session."""

from __future__ import annotations

import asyncio
from queue import Empty, SimpleQueue
from typing import Protocol


class Bell(Protocol):
    """Wakes a session that waits."""

    def ring(self) -> None: ...

    def silence(self) -> None:
        """Forget rings before this call."""

    async def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most so many seconds; return whether there was one."""


class ThreadBell:
    """The bell of a thread. An exception of a signal handler leaves it consistent."""

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        self._rung.put(None)

    def silence(self) -> None:
        try:
            while True:
                self._rung.get_nowait()
        except Empty:
            pass

    async def wait(self, seconds: float) -> bool:
        try:
            self._rung.get(timeout=seconds)
        except Empty:
            return False
        return True


class LoopBell:
    """The bell of an asyncio task."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_rung = False
        self._waiter: asyncio.Future[bool] | None = None

    def ring(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._come, True)
        except RuntimeError:
            pass  # the loop is closed: no task waits there any more

    def silence(self) -> None:
        self._is_rung = False

    async def wait(self, seconds: float) -> bool:
        if self._is_rung:
            return True
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_later(seconds, self._come, False)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _come(self, is_rung: bool) -> None:
        self._is_rung = self._is_rung or is_rung
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(is_rung)
