"""Clients whose sessions go on in steps: so that a test says when each client calls.

A client is a thread with an event loop that stands still between two steps. Of an operation that
waits, only its place in line goes on then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pressure_mp.engines.contract.replies import InUse, Later, NoItem, NoSpace, Unfinished

#: Seconds until one must be served that can be.
SOON = 10.0


class Client:
    """A thread, and so an id of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._loop = self.do(asyncio.new_event_loop)

    def do(self, call: Callable[..., Any], *args: Any) -> Any:
        """The value of ``call(*args)``, which its thread calls."""
        return self._thread.submit(call, *args).result()

    def run(self, begin: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Any:
        """The value of ``await begin(*args)`` in its loop."""
        return self.do(lambda: self._loop.run_until_complete(begin(*args)))

    def end(self) -> None:
        """Cancel what still waits; no loop and no thread is left."""
        self.run(self._cancel_all)
        self.run(self._loop.shutdown_asyncgens)  # which closes the loop's connections
        self.do(self._loop.close)
        self._thread.shutdown()

    @staticmethod
    async def _cancel_all() -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


def call_once(binding: Any, request: Any) -> Any:
    """The reply to a request, over a session for threads."""
    session = binding.session()
    try:
        return session.call(request)
    finally:
        session.end()


class Half:
    """What one engine does of an operation that may wait."""

    def __init__(self, client: Client, binding: Any) -> None:
        self._client = client
        self._session = client.run(self._begin, binding)
        self._wait: asyncio.Task[bool] | None = None

    @staticmethod
    async def _begin(binding: Any) -> Any:
        return binding.asession()

    def call(self, request: Any) -> Any:
        """The reply."""
        return self._client.run(self._session.call, request)

    def stand(self, later: Later, stands: Callable[[], bool]) -> None:
        """Begin to wait, and let that go on until the client stands in line, or may be served."""
        self._client.run(self._stand, later, stands)

    async def _stand(self, later: Later, stands: Callable[[], bool]) -> None:
        may_be_served = False
        while not (may_be_served or stands()):
            if self._wait is None:
                self._wait = asyncio.ensure_future(self._session.wait(later, None))
            await asyncio.sleep(0.001)
            if self._wait.done() and not self._wait.result():
                self._wait = None
            may_be_served = self._wait is not None and self._wait.done()

    def wait(self, later: Later, timeout: float | None = None) -> bool:
        """Whether the client may be served. That is known within a tick."""
        return bool(self._client.run(self._go_on_waiting, later, timeout))

    async def _go_on_waiting(self, later: Later, timeout: float | None) -> bool:
        wait, self._wait = self._wait, None
        return await (wait or self._session.wait(later, timeout))

    def end(self) -> None:
        """The operation is over; what it waits for comes too late."""
        self._client.run(self._end)

    async def _end(self) -> None:
        if self._wait is not None:
            self._wait.cancel()
            await asyncio.wait([self._wait])
        await self._session.end()


class Pair:
    """An operation that may wait, on the engine that specifies and on one that is compared."""

    def __init__(self, client: Client, bindings: Iterable[Any], request: Any) -> None:
        self.request = request
        self._ours, self._theirs = (Half(client, binding) for binding in bindings)
        self._later: tuple[Any, Any] | None = None

    def call(self, in_vain: bool, has_all: bool) -> tuple[Any, Any]:
        """Both replies. ``in_vain``: the time is up, the session leaves the line. ``has_all``:
        there are items, or space, for all waiters, so that a waiter that was not told may be
        served too."""
        request, before = self.request, self._later
        if in_vain:
            request = request._replace(waits=False)
        may_be_served = before is None or has_all or self.may_be_served()
        mine = self._ours.call(request)
        assert may_be_served or in_vain or is_later(mine), "a waiter was served without a wake-up"
        if before is not None:
            self._theirs.wait(before[1])
        other = self._theirs.call(request)
        if before is not None and not in_vain:
            if not is_later(mine):
                other = self._serve(other)
            elif has_all and not is_later(other):
                # A server serves a waiter that looks again, which in memory keeps its place.
                mine = self._ours.call(request._replace(waits=False))
        self._later = (mine, other)
        return mine, other

    def _serve(self, reply: Any) -> Any:
        """The reply that serves the other engine's client, as ours was served: only a wait may tell
        it that it is the next."""
        deadline = time.monotonic() + SOON
        while is_later(reply):
            assert time.monotonic() < deadline, f"not served within {SOON} s: {self.request}"
            self._theirs.wait(reply)
            reply = self._theirs.call(self.request)
        return reply

    def stand(self, stands: Callable[[], bool]) -> None:
        """Wait; ``stands`` says whether the other engine knows of it."""
        assert self._later is not None
        self._theirs.stand(self._later[1], stands)

    def may_be_served(self) -> bool:
        """Whether the specification says so."""
        assert self._later is not None
        return self._ours.wait(self._later[0], 0)

    def end(self) -> None:
        self._ours.end()
        self._theirs.end()


def is_later(reply: Any) -> bool:
    """Whether the caller was not served now, and could wait."""
    return isinstance(reply, NoSpace | NoItem | InUse | Unfinished)
