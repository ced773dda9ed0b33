"""Queues in this process's memory: for threads and tasks, and the specification of every engine.

Each operation is written here as plainly as it can be; tests hold the other engines against it.
A role's token is modelled as on a broker: free, held by one who waits, or promised to the first
in line. There are no foreign clients and no leases here: nobody dies alone in one process.
"""

from __future__ import annotations

import asyncio
import collections
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..config import Address
from ..effects import (
    BUSY,
    CLOSED,
    DONE,
    EMPTY,
    EXCESS,
    EXISTS,
    FULL,
    MISMATCH,
    MISSING,
    NOW,
    TICK,
    UNFINISHED,
    WAIT,
    Reply,
)


class Waiter:
    """One parked client. ``notify`` is safe from any thread."""

    def __init__(self, notify: Callable[[], Any]) -> None:
        self.notify = notify
        self.signalled = False


@dataclass
class Role:
    """The producer's or the consumer's token."""

    name: str
    holder: str | None = None  # the ticket of the operation that waits with it
    promised: bool = False  # the first in line was told to come for it
    line: collections.deque[Waiter] = field(default_factory=collections.deque)

    def standing(self, turn: str, ticket: str) -> str:
        """Where the token is, as the caller sees it: free, mine, granted or ours."""
        if turn == self.name and self.promised:
            return "granted"
        if self.holder == ticket:
            return "mine"
        return "ours" if self.promised or self.holder is not None else "free"

    def hold(self, ticket: str) -> None:
        self.holder, self.promised = ticket, False

    def give_back(self, standing: str) -> None:
        if standing in ("mine", "granted"):
            self.holder, self.promised = None, False
            self.grant()

    def grant(self) -> None:
        """Promise a free token to the first in line."""
        if self.line and self.holder is None and not self.promised:
            self.promised = True
            _signal(self.line.popleft())


def _signal(waiter: Waiter) -> None:
    waiter.signalled = True
    waiter.notify()


@dataclass
class FifoState:
    """Everything a broker keeps of one FIFO queue."""

    bound: int
    discipline: str
    format: str
    items: collections.deque[bytes] = field(default_factory=collections.deque)
    closed: bool = False
    producer_id: bytes | None = None
    consumer_id: bytes | None = None
    produced: list[int] = field(default_factory=lambda: [0, 0])
    consumed: list[int] = field(default_factory=lambda: [0, 0])
    done: int = 0
    rejected: list[bytes] = field(default_factory=list)
    users: set[str] = field(default_factory=set)

    @property
    def unfinished(self) -> int:
        return max(self.produced[0], self.consumed[0]) - self.done

    @property
    def has_room(self) -> bool:
        return not 0 < self.bound <= len(self.items)


class MemoryFifo:
    """The FIFO queue of one name: every operation, and what clients wait for."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._state: FifoState | None = None
        self._producer = Role("producer")
        self._consumer = Role("consumer")
        self._watchers: dict[str, list[Waiter]] = {"item": [], "space": [], "finished": []}

    def call(self, op: str, args: tuple[Any, ...]) -> Reply:
        """Do one operation, atomically."""
        with self._lock:
            reply: Reply = getattr(self, f"_{op}")(*args)
            self._raise_signs()
        return reply

    def park(self, signal: str, waiter: Waiter) -> None:
        """Add a waiter; it is notified at once when its sign is up."""
        with self._lock:
            role = self._role(signal)
            if role is None:
                self._watchers[signal].append(waiter)
                self._raise_signs()
            else:
                role.line.append(waiter)
                role.grant()

    def unpark(self, signal: str, waiter: Waiter) -> None:
        """Take a waiter away; a role that was granted to it goes to the next."""
        with self._lock:
            role = self._role(signal)
            if role is None:
                if waiter in self._watchers[signal]:
                    self._watchers[signal].remove(waiter)
            elif waiter.signalled:
                role.give_back(role.standing(signal, ""))
            else:
                role.line.remove(waiter)

    def _role(self, signal: str) -> Role | None:
        return {"producer": self._producer, "consumer": self._consumer}.get(signal)

    def _raise_signs(self) -> None:
        state = self._state
        up = {
            "item": state is None or state.closed or bool(state.items),
            "space": state is None or state.closed or state.has_room,
            "finished": state is None or state.unfinished <= 0,
        }
        for signal, waiters in self._watchers.items():
            if up[signal]:
                for waiter in waiters:
                    _signal(waiter)
                waiters.clear()

    def _open(self, how: str, maxsize: int, discipline: str, format: str, user: str) -> Reply:
        state, created = self._state, 0
        if state is not None:
            if how == "create":
                return [EXISTS, state.bound]
            if state.discipline != discipline:
                return [MISMATCH, b"discipline", state.discipline.encode()]
            if state.format != format:
                return [MISMATCH, b"format", state.format.encode()]
            if maxsize not in (0, state.bound):
                return [MISMATCH, b"maxsize", b"%d" % state.bound]
        elif how == "attach":
            return [MISSING]
        else:
            state, created = FifoState(maxsize, discipline, format), 1
            self._state = state
        if user:
            state.users.add(user)
        return [DONE, state.bound, created]

    def _exists(self) -> Reply:
        return [DONE, int(self._state is not None)]

    def _length(self) -> Reply:
        return [DONE, len(self._state.items)] if self._state else [MISSING]

    def _closed(self) -> Reply:
        return [DONE, int(self._state.closed)] if self._state else [MISSING]

    def _put(
        self,
        item: bytes,
        overfill: int,
        client: str,
        ticket: str,
        mode: bytes,
        turn: str,
        lease: int,
    ) -> Reply:
        state, role = self._state, self._producer
        standing = role.standing(turn, ticket)
        if state is None or state.closed:
            role.give_back(standing)
            return [MISSING] if state is None else [CLOSED]
        if standing == "ours" and mode == WAIT:
            return [BUSY, b"producer"]
        if not overfill and not state.has_room:
            if standing == "ours":
                return [BUSY, b"producer"]
            self._pause(role, standing, mode, ticket)
            return [FULL, b"space"]
        state.items.append(item)
        state.produced[0] += 1
        state.produced[1] += len(item)
        state.producer_id = client.encode()
        role.give_back(standing)
        return [DONE]

    def _get(self, client: str, ticket: str, mode: bytes, turn: str, lease: int) -> Reply:
        state, role = self._state, self._consumer
        standing = role.standing(turn, ticket)
        if state is None or (state.closed and not state.items):
            role.give_back(standing)
            return [MISSING] if state is None else [CLOSED]
        if standing == "ours" and (mode == WAIT or not state.items):
            return [BUSY, b"consumer"]
        if not state.items:
            self._pause(role, standing, mode, ticket)
            return [EMPTY, b"item"]
        item = state.items.popleft()
        state.consumed[0] += 1
        state.consumed[1] += len(item)
        state.consumer_id = client.encode()
        role.give_back(standing)
        return [DONE, item]

    @staticmethod
    def _pause(role: Role, standing: str, mode: bytes, ticket: str) -> None:
        if mode == NOW:
            role.give_back(standing)
        else:
            role.hold(ticket)

    def _close(
        self,
        once: int,
        immediate: int,
        client: str,
        ticket: str,
        mode: bytes,
        turn: str,
        lease: int,
    ) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        if state.closed and once:
            return [CLOSED]
        if not state.closed:
            state.closed = True
            state.producer_id = client.encode()
        if immediate:
            state.done += len(state.items)
            state.items.clear()
        return [DONE, b"", b""]

    def _delete(self, client: str, ticket: str, mode: bytes, turn: str, lease: int) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state = None
        for role in (self._producer, self._consumer):
            role.holder, role.promised = None, False
            role.grant()
        return [DONE, b"", b""]

    def _release(self, ticket: str, turn: str) -> Reply:
        for role in (self._producer, self._consumer):
            role.give_back(role.standing(turn, ticket))
        return [DONE]

    def _stats(self) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        return [
            DONE,
            state.bound,
            len(state.items),
            int(state.closed),
            *state.produced,
            *state.consumed,
            state.unfinished,
            len(state.rejected),
            state.producer_id,
            state.consumer_id,
        ]

    def _set_bound(self, maxsize: int) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state.bound = maxsize
        return [DONE]

    def _task_done(self) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        if state.unfinished <= 0:
            return [EXCESS]
        state.done += 1
        return [DONE, state.unfinished]

    def _join(self) -> Reply:
        if self._state is None:
            return [MISSING]
        return [UNFINISHED, b"finished"] if self._state.unfinished > 0 else [DONE]

    def _reject(self, item: bytes) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state.rejected.append(item)
        self._state.done += 1
        return [DONE]

    def _rejected(self, limit: int) -> Reply:
        return [DONE, self._state.rejected[:limit]] if self._state else [MISSING]

    def _enlist(self, user: str) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state.users.add(user)
        return [DONE]

    def _users(self) -> Reply:
        return [DONE, [u.encode() for u in self._state.users]] if self._state else [MISSING]

    def _dismiss(self, *users: str) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state.users.difference_update(users)
        left = len(self._state.users)
        if not left:
            self._delete("", "", NOW, "", 0)
        return [DONE, left]


_DISCIPLINES = {"fifo": MemoryFifo}


class MemoryEngine:
    """The queues of one ``memory://`` address in this process."""

    def __init__(self, address: Address) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, MemoryFifo] = {}
        self._hosts: dict[str, set[str]] = {}

    def bind(self, name: str, discipline: str) -> MemoryBinding:
        with self._lock:
            queue = self._queues.get(name)
            if queue is None:
                queue = self._queues[name] = _DISCIPLINES[discipline](threading.Lock())
        return MemoryBinding(queue)

    def remember(self, host: str, name: str) -> None:
        self._hosts.setdefault(host, set()).add(name)

    def remembered(self, host: str) -> list[str]:
        return sorted(self._hosts.get(host, ()))

    def forget(self, host: str, name: str) -> None:
        self._hosts.get(host, set()).discard(name)
        self._queues.pop(name, None)

    def after_fork(self) -> None:
        # The parent's queues are not the child's: what it put into them nobody would get.
        self._lock = threading.Lock()
        self._queues = {}
        self._hosts = {}

    def close(self) -> None:
        """There are no connections."""


@dataclass(frozen=True)
class MemoryBinding:
    """One queue in memory."""

    queue: MemoryFifo

    def session(self) -> MemorySession:
        return MemorySession(self.queue)

    def asession(self) -> AsyncMemorySession:
        return AsyncMemorySession(self.queue)


class _Parking:
    """What both kinds of session share: at most one outstanding wait."""

    def __init__(self, queue: MemoryFifo) -> None:
        self._queue = queue
        self._parked: tuple[str, Waiter] | None = None

    def _call(self, op: str, args: tuple[Any, ...]) -> Reply:
        # Nobody needs to be woken by hand: the call itself raised the signs.
        return [] if op == "wake" else self._queue.call(op, args)

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

    def __init__(self, queue: MemoryFifo) -> None:
        super().__init__(queue)
        self._event = threading.Event()

    def call(self, op: str, args: tuple[Any, ...]) -> Reply:
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

    def __init__(self, queue: MemoryFifo) -> None:
        super().__init__(queue)
        self._woken: asyncio.Future[None] | None = None

    async def call(self, op: str, args: tuple[Any, ...]) -> Reply:
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
