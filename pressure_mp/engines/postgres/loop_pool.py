"""The connections of one event loop, and the lines of its operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Hashable, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeVar

from ...exceptions import BrokerUnavailable, PressureError
from ...off_loop import begin_later, prepare_loop
from ..cancelled_calls import outcome_first, postponed
from ..closed_loops import OwnLoop
from ..lines import Lines
from .address import PostgresAddress
from .pool import Pool
from .statements import Statement
from .wire import LoopWire, Row, Wire

T = TypeVar("T")

#: The most connections of one loop: with the connection of the listener and that of the thread that
#: renews leases, a process with one event loop has four.
_MOST = 2


class LoopPool(Pool):
    """The connections of one event loop, which are closed when the loop ends."""

    kind_of_wire = LoopWire

    def __init__(self, address: PostgresAddress) -> None:
        super().__init__(address)
        #: The loop, and its operations that may have a place in line, or have taken something.
        self.loop = OwnLoop()
        #: The lines of operations, of which the first waits at the server.
        self.lines = Lines()
        self._gathered: dict[Hashable, list[_Call]] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._gate = asyncio.Semaphore(_MOST)
        self._guard: AsyncGenerator[None, None] | None = None

    async def execute(
        self, statement: Statement, params: Sequence[bytes | None], timeout: float | None
    ) -> list[Row]:
        postponed.check()
        async with self._gate:
            return await super().execute(statement, params, timeout)

    async def connect(self, timeout: float | None, conninfo: str | None = None) -> Wire:
        if self._guard is None:
            self._guard = self._closing()
            await anext(self._guard)
        prepare_loop()
        return await super().connect(timeout, conninfo)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def after_fork(self) -> None:
        self.loop.after_fork()
        self.abandon()

    async def _closing(self) -> AsyncGenerator[None, None]:
        """Close the connections at the end of the loop, which closes its unfinished generators
        last."""
        try:
            yield
        finally:
            for wire in list(self._all):
                wire.close()

    # Together

    def gather(self, key: Hashable, call: _Call) -> None:
        """Make a call in one transaction with all calls of this key in the same round of the
        loop."""
        if key not in self._gathered:
            self._gathered[key] = []
            self.begin(self._run(key))
        self._gathered[key].append(call)

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin work in a task of its own, which is not cancelled with a caller."""
        task = begin_later(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _run(self, key: Hashable) -> None:
        calls = self._gathered.pop(key)
        try:
            async with self._gate:
                await self._make(calls)
        finally:  # unless this was cancelled, each call has its reply
            for call in calls:
                call.rows.cancel()

    async def _make(self, calls: list[_Call]) -> None:
        limits = [call.timeout for call in calls if call.timeout is not None]
        timeout = min(limits, default=None)
        asked = [(call.statement, call.params) for call in calls]
        try:
            replies = await self._over_one(
                lambda wire: wire.execute_together(asked, timeout), timeout
            )
        except BrokerUnavailable as error:
            for call in calls:
                call.fail(copy(error))
        except PressureError as error:
            if len(calls) == 1:
                calls[0].fail(error)
                return
            for call in calls:  # one call failed, and none was done
                await self._make([call])
        else:
            for call, rows in zip(calls, replies, strict=True):
                call.reply(rows)


class Together:
    """The connections of a loop, for calls that may be made together with others."""

    def __init__(self, pool: LoopPool, key: Hashable) -> None:
        self._pool = pool
        self._key = key
        self.sleep = pool.sleep

    @property
    def was_connected(self) -> bool:
        return self._pool.was_connected

    async def execute(
        self, statement: Statement, params: Sequence[bytes | None], timeout: float | None
    ) -> list[Row]:
        postponed.check()
        call = _Call(statement, params, timeout, asyncio.get_running_loop().create_future())
        self._pool.gather(self._key, call)
        return await outcome_first(call.rows, timeout)


class _Call(NamedTuple):
    statement: Statement
    params: Sequence[bytes | None]
    timeout: float | None
    rows: asyncio.Future[list[Row]]

    def reply(self, rows: list[Row]) -> None:
        if not self.rows.done():
            self.rows.set_result(rows)

    def fail(self, error: PressureError) -> None:
        if not self.rows.done():
            self.rows.set_exception(error)
