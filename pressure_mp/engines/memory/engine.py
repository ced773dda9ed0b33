"""The memory engine: a table of queues, and the two verbs on them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...config import Address
from ...effects import TICK, Reply
from ...exceptions import ArgumentError
from ..base import DEFAULTS, Options, QueueKey
from .flights import MemoryFlights
from .tasks import MemoryTasks
from .waiting import Waiter

#: A queue of one name: of items, in whatever order, or of tasks.
_Queue = MemoryFlights | MemoryTasks

#: The kinds of queues, by discipline; all that are not named are queues of items.
_KINDS: dict[str, type[_Queue]] = {"tasks": MemoryTasks}


class MemoryEngine:
    """The queues of one ``memory://`` address in this process."""

    outlives_process = False

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._queues: dict[tuple[type[_Queue], str], _Queue] = {}
        self._hosts: dict[str, set[tuple[str, str]]] = {}

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> MemoryBinding:
        if options.durability:
            raise ArgumentError(
                f"memory:// has neither replicas nor a disk: leave out durability="
                f"{str(options.durability)!r}"
            )
        return MemoryBinding(self._find(_kind(discipline), name))

    def rival(self, name: str, discipline: str) -> MemoryBinding:
        other = MemoryTasks if _kind(discipline) is MemoryFlights else MemoryFlights
        return MemoryBinding(self._find(other, name))

    def _find(self, kind: type[_Queue], name: str) -> _Queue:
        with self._lock:
            found = self._queues.get((kind, name))
            if found is None:
                found = self._queues[kind, name] = kind(threading.Lock())
            return found

    def remember(self, host: str, name: str, discipline: str, options: Options = DEFAULTS) -> None:
        self._hosts.setdefault(host, set()).add((name, discipline))

    def remembered(self, host: str, options: Options = DEFAULTS) -> list[tuple[str, str]]:
        return sorted(self._hosts.get(host, ()))

    def forget(self, host: str, queues: Sequence[QueueKey], options: Options = DEFAULTS) -> None:
        self._hosts.get(host, set()).difference_update(queues)
        for name, discipline in queues:
            self._queues.pop((_kind(discipline), name), None)

    def leave(self, queues: Sequence[QueueKey], options: Options = DEFAULTS) -> None:
        """Nothing is kept for one process."""

    def after_fork(self) -> None:
        # The parent's queues are not the child's: what it put into them nobody would get.
        self._lock = threading.Lock()
        self._queues = {}
        self._hosts = {}

    def close(self) -> None:
        """There are no connections."""


def _kind(discipline: str) -> type[_Queue]:
    return _KINDS.get(discipline, MemoryFlights)


@dataclass(frozen=True)
class MemoryBinding:
    """One queue in memory."""

    queue: _Queue

    def session(self) -> MemorySession:
        return MemorySession(self.queue)

    def asession(self) -> AsyncMemorySession:
        return AsyncMemorySession(self.queue)


class _Parking:
    """What both kinds of session share: at most one outstanding wait."""

    def __init__(self, queue: _Queue) -> None:
        self._queue = queue
        self._parked: tuple[str, Waiter] | None = None

    def _call(self, op: str, args: tuple[Any, ...]) -> Reply:
        # Nobody needs to be woken by hand: the call itself raised the signs.
        return [] if op in ("wake", "ring") else self._queue.call(op, args)

    def _begin(self, signal: str, notify: Callable[[], Any]) -> Waiter:
        if self._parked and self._parked[0] != signal:
            self._abandon()
        if self._parked is None:
            self._parked = signal, Waiter(notify)
            self._queue.park(*self._parked)
        return self._parked[1]

    def _outcome(self, waiter: Waiter) -> bool:
        if waiter.signalled:
            self._parked = None
        return waiter.signalled

    def _abandon(self) -> None:
        if self._parked:
            self._queue.unpark(*self._parked)
            self._parked = None


class MemorySession(_Parking):
    """For a thread."""

    def __init__(self, queue: _Queue) -> None:
        super().__init__(queue)
        self._event = threading.Event()
        self.found: list[Any] | None = None

    @property
    def taken(self) -> None:
        """A call and its reply are one: there is no reply that could be lost on its way."""

    def interrupted(self) -> None:
        """There is no connection."""

    def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Reply:
        return self._call(op, args)

    def park(self, signal: str, timeout: float | None) -> bool:
        if self._parked is None:
            self._event.clear()
        waiter = self._begin(signal, self._event.set)
        try:
            self._event.wait(TICK if timeout is None else min(timeout, TICK))
        except BaseException:
            self._abandon()
            raise
        return self._outcome(waiter)

    def end(self) -> None:
        self._abandon()


class AsyncMemorySession(_Parking):
    """For an asyncio task."""

    def __init__(self, queue: _Queue) -> None:
        super().__init__(queue)
        self._woken: asyncio.Future[None] | None = None

    async def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Reply:
        return self._call(op, args)

    async def park(self, signal: str, timeout: float | None) -> bool:
        loop = asyncio.get_running_loop()
        if self._parked is None or self._woken is None:
            self._woken = loop.create_future()
        woken = self._woken
        waiter = self._begin(signal, lambda: loop.call_soon_threadsafe(_wake, woken))
        try:
            await asyncio.wait({woken}, timeout=TICK if timeout is None else min(timeout, TICK))
        except BaseException:
            self._abandon()
            raise
        return self._outcome(waiter)

    async def end(self) -> None:
        self._abandon()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
