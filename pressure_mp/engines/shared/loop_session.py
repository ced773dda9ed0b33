"""The session of an asyncio task: requests in shared memory that take no time are done in the event
loop, and all others in a thread. A task that waits needs no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from ...off_loop import off_loop
from ..cancelled_calls import outcome_first
from ..contract.items import Acknowledge, EndPrefetch, Prefetch, Put, SetAside, Take
from ..contract.queues import CountDone, GetLength, Join
from ..contract.replies import InUse, Later
from ..contract.session import AsyncSession
from ..lines import MAY_WAIT, Place, line_of
from . import loop_waits
from .items import CHECK, MOMENT, MOVE, latest, shorter
from .locks import BUSY
from .sessions import Calls, Does
from .shared_items import SharedItems
from .shared_queue import SharedQueue

T = TypeVar("T")

#: Seconds until the next try when others have had the lock for longer than :data:`MOMENT`, which is
#: rare: each try blocks the event loop for so long.
_PAUSE = 0.02


class SharedLoopSession(Calls):
    """For an asyncio task. The tasks of a loop that wait for the same are served in the order in
    which they came; the first of them waits for other processes."""

    __slots__ = ("_below", "_place")

    def __init__(self, binding: SharedQueue) -> None:
        super().__init__(binding)
        self._below: AsyncSession | None = None
        self._place: Place | None = None

    @property
    def found(self) -> list[Any] | None:
        """See :class:`AsyncSession`. In shared memory no task is cancelled between a take and its
        end, so only the session at the broker needs them."""
        return None if self._below is None else self._below.found

    @found.setter
    def found(self, found: list[Any] | None) -> None:
        if self._below is not None:
            self._below.found = found

    async def call(self, request: Any, end: float | None = None) -> Any:
        line = line_of(request) if self._binding.are_here else None
        place = self._place
        if line is None:
            if place is not None and (type(request) in MAY_WAIT or not self._binding.are_here):
                place.leave()
            if self._is_to_yield(request):
                await asyncio.sleep(0)
            return await self._call(request, end)
        what, later = line
        if place is None or place.is_left:
            waits = loop_waits.of_loop()
            lines, key, yields = waits.lines, (self._binding.name, what), waits.is_to_yield()
            if key not in lines and not yields and not self._is_to_look(request):
                reply = await self._call(request, end)
                if self._is_here and isinstance(reply, Later):
                    self._place = lines.join(key, None)
                return reply
            place = self._place = lines.join(key, None)
            if yields:
                await asyncio.sleep(0)
        if not place.has_turn:
            return later
        reply = await self._call(request, end)
        if not self._is_here or (type(request) is Join and not isinstance(reply, Later)):
            place.clear()
        elif not isinstance(reply, Later):
            place.leave()
        return reply

    async def _call(self, request: Any, end: float | None) -> Any:
        items, kind = self._binding.items, type(request)
        if items is not None and items.are_here:
            reply = MOVE
            if self._is_to_look(request):
                if items.ring.has_limits:  # the broker may have to set some aside
                    await self._move(items.requeue_lost)
                else:
                    items.requeue_lost()
            if kind is Take or kind is Put:
                reply = await self._take_or_put(items, request, end)
            elif kind in _AT_ONCE:
                reply = await self._call_at_once(_AT_ONCE[kind], items, request)
            if reply is not MOVE:
                self._is_here = True
                return reply
        return await self._call_elsewhere(request, end)

    def _is_to_yield(self, request: Any) -> bool:
        """Whether a request that does not wait is to let other tasks run before: so does each that
        goes on to read ahead, as there are many items in one."""
        items = self._binding.items
        if items is None or not items.are_here:
            return False
        if type(request) is Prefetch:
            return items.ring.is_reserved
        return type(request) in MAY_WAIT and loop_waits.of_loop().is_to_yield()

    def _is_to_look(self, request: Any) -> bool:
        """Whether the items of processes that have ended are to be requeued before this request."""
        items = self._binding.items
        takes_held = type(request) is Take and request.hold is not None
        return (takes_held or type(request) is Join) and items is not None and items.is_to_look

    async def _take_or_put(self, items: SharedItems, request: Take | Put, end: float | None) -> Any:
        until = latest(request.waits, end)
        while True:
            soon = monotonic() + MOMENT
            if isinstance(request, Put):
                reply = items.put(request, self, soon)
            else:
                reply = items.take_at_once(request, self, None)
                if reply is MOVE:
                    reply = items.take_now(request, self, soon)
            is_late = until is not None and monotonic() > until
            if type(reply) is not InUse or request.waits or is_late:
                return reply
            await self._wait_here(items, reply, CHECK)

    async def _call_at_once(self, does: Does, items: SharedItems, request: Any) -> Any:
        reply = does(items, request, self, monotonic() + MOMENT)
        if reply is BUSY:
            reply = await self._change(partial(does, items, request, self, None))
        return reply

    async def _ask(self, request: Any, end: float | None) -> Any:
        if self._below is None:
            self._below = self._binding.below.asession()
        asking = self._below.call(request, end)
        if type(request) is SetAside:  # of an item that was taken here: it goes nowhere else
            return await outcome_first(asyncio.ensure_future(asking))
        return await asking

    async def _change(self, function: Callable[[], T]) -> T:
        return await outcome_first(asyncio.ensure_future(off_loop(function)))

    async def _move(self, function: Callable[[], T]) -> T:
        return await off_loop(function)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        place, items = self._place, self._binding.items
        if place is not None and not (place.is_left or place.has_turn):
            return await place.wait(timeout)
        if self._is_here and items is not None:
            return await self._wait_here(items, later, timeout)
        if self._below is None:
            return True
        return await self._below.wait(later, timeout)

    async def _wait_here(self, items: SharedItems, later: Later, timeout: float | None) -> bool:
        awaited = items.awaited(later)
        if awaited is None:
            await asyncio.sleep(shorter(timeout, _PAUSE))
            return True
        sign, is_over, limit = awaited
        waits = loop_waits.of_loop()
        woken = await waits.wait(items.ring, sign, is_over, shorter(timeout, limit))
        if woken is None:  # a loop can only wait at the broker
            await self._move(self._binding.move_to_broker)
        return woken is not False

    async def end(self) -> None:
        try:
            if self._below is not None:
                await self._below.end()
        finally:
            if self._place is not None:
                self._place.leave()


#: The functions that do requests in the event loop, apart from :class:`Take` and :class:`Put`.
_AT_ONCE: dict[type, Does] = {
    Acknowledge: lambda items, request, session, end: items.acknowledge(
        request.owner, request.number, end
    ),
    Prefetch: lambda items, request, session, end: items.prefetch(request, end),
    EndPrefetch: lambda items, request, session, end: items.end_prefetch(request, end),
    CountDone: lambda items, request, session, end: items.count_done(end=end),
    GetLength: lambda items, request, session, end: items.length(MOMENT),
    Join: lambda items, request, session, end: items.join(),
}
