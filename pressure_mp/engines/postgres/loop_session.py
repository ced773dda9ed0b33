"""The session of an asyncio task: operations that wait do so in a line of their loop first, and a
cancelled operation takes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from ...exceptions import PressureError
from ..bells import LoopBell
from ..cancelled_calls import UndoneTake, outcome_first, postponed, to_its_end
from ..closed_loops import give_back
from ..contract.items import Put, Take, TakeBack, Taken
from ..contract.queues import Join
from ..contract.replies import Later
from ..contract.requests import Request
from ..contract.session import ONE_TRY
from ..contract.tasks import TakenTasks, TakeTasks
from ..lines import LARGE, MAY_WAIT, Place, line_of
from .binding import Binding
from .loop_pool import LoopPool, Together
from .session import LAST_WORDS, BaseSession, PostgresSession
from .wire import Row


class AsyncPostgresSession(BaseSession):
    """The session of an asyncio task."""

    _pool: LoopPool

    def __init__(self, binding: Binding, pool: LoopPool) -> None:
        super().__init__(binding, pool, LoopBell())
        self._place: Place | None = None

    async def call(self, request: Request, end: float | None = None) -> Any:
        self._pool.loop.note(self)
        try:
            reply = await self._call_in_turn(request, end)
            if isinstance(reply, (Taken, TakenTasks)):
                postponed.check()  # a cancelled task does not get the reply
            return reply
        except asyncio.CancelledError as error:
            self.interrupted()
            found = await self._put_back(request)
            if found is None:
                raise
            postponed.add(error)
            return found

    async def _call_in_turn(self, request: Request, end: float | None) -> Any:
        line = line_of(request)
        place = self._place
        if line is None or (self._placed and place is None):  # it has its own place at the server
            reply = await self._call(request, end)
            if place is not None and type(request) in MAY_WAIT:
                place.leave()
            return reply
        what, later = line
        enough = self.binding.tries.get(type(request))
        if place is None or place.is_left:
            key = (self.binding.name, self.binding.discipline, what)
            place = self._place = self._pool.lines.join(key, enough, self._is_alone(request))
        if not (place.asks or place.has_turn):
            return later
        asks, is_first_call = place.asks, not self._placed
        if place.together is None:
            reply = await self._call(request, end)
        else:
            assert isinstance(request, (Put, Take, TakeTasks))
            reply = await self._call_together(request._replace(waits=False), end, place.together)
        is_served = not isinstance(reply, Later)
        if enough is not None and is_first_call:
            enough.note(is_served)
        if is_served and isinstance(request, Join):
            place.clear()
        elif is_served:
            place.leave()
        elif asks:
            place.was_refused()
        return reply

    async def _call_together(self, request: Request, end: float | None, key: Hashable) -> Any:
        self._calls = Together(self._pool, key)
        try:
            return await self._call(request, end)
        finally:
            self._calls = self._pool

    async def _flush(self, *args: Any) -> list[Row]:
        """Wait for the disk although the caller is cancelled meanwhile: the call itself is done."""
        return await outcome_first(self._pool.begin(super()._flush(*args)))

    def _is_alone(self, request: Request) -> bool:
        """Tell whether a call is made alone: calls that are made together are all as durable as one
        of them needs."""
        if not isinstance(request, Put):
            return False
        return self.binding.options.durability is not None or sum(map(len, request.items)) >= LARGE

    async def wait(self, later: Later, timeout: float | None) -> bool:
        place = self._place
        if place is not None and not (place.is_left or place.has_turn):
            return await place.wait(timeout)
        if not self._placed:  # it is its turn, and only a call begins a wait
            return True
        return await self._wait(later, timeout)

    async def end(self) -> None:
        if not self._pool.loop.is_running:
            self.leave_behind()
            return
        self._pool.loop.forget(self)
        try:
            if self._placed:
                await to_its_end(self._end())
            else:
                await self._end()  # never suspends: an operation with a reply is not cancelled here
        finally:
            if self._place is not None:
                self._place.leave()

    def leave_behind(self) -> None:
        """Have a thread give everything back: the loop was closed, or this operation's task is
        garbage, so nothing can be awaited."""
        self._pool.loop.forget(self)
        self.binding.listener.forget(self._ticket)
        placed, self._placed = self._placed, False
        taken, self._taken = self._taken, None
        if (placed or taken is not None) and not self._pool.loop.is_parents:
            session = PostgresSession(self.binding, self.binding.thread_pool)
            give_back(partial(_give_back, session, self._ticket if placed else "", taken))

    async def _wait_for(self, starting: Future[int | None], seconds: float) -> None:
        waiting = asyncio.wrap_future(starting)
        try:
            await asyncio.wait((waiting,), timeout=seconds)
        finally:
            waiting.cancel()

    async def _put_back(self, request: Request) -> Taken | None:
        """Give taken items back that no caller has, or return them if the task has them after
        all."""
        taken = self._taken
        if taken is None or self.found is not None:
            self._taken = None
            return None
        undone = UndoneTake(request, partial(self._take_back, taken))
        with suppress(asyncio.CancelledError):  # it was cancelled before, too
            await to_its_end(undone.run())
        found = undone.end()
        if found is None:
            self._taken = None
        return found

    async def _take_back(self, taken: tuple[str, int], if_open: bool) -> Any:
        with suppress(PressureError):  # the caller gets the cancellation instead
            return await self._call(TakeBack(taken, if_open), time.monotonic() + LAST_WORDS)


def _give_back(session: PostgresSession, place: str, taken: tuple[str, int] | None) -> None:
    """Give back what one operation held, by a session for a thread; ``place`` is its ticket, empty
    if it had no place in line."""
    try:
        if taken is not None:
            session.call(TakeBack(taken), ONE_TRY)
    except PressureError:
        pass  # the end of its lease gives it back
    finally:
        session.take_over(place)
        session.end()
