"""Read ahead, unasked, for one event loop of the only process that gets from an anonymous queue.

It drives a :class:`~pressure_mp.buffering.window.Window`, as
:mod:`pressure_mp.buffering.read_ahead` does for threads. Nothing here waits for an item. Between
taking an item out and handing it out nothing suspends, so none is handed out to a cancelled task.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

from .. import lifecycle
from ..background import at_exit
from ..buffering.pace import Pace
from ..buffering.window import RETRY, Window
from ..drivers import ending
from ..effects import Operation
from ..encoding.unsigned_items import mark_each
from ..engines.contract.items import Taken
from ..engines.contract.session import ONE_TRY
from ..exceptions import BrokerUnavailable, PressureError
from ..handles.objects import ObjectAttachment
from ..identity.client import reader
from ..identity.hand_outs import HandOuts

Run = Callable[[Operation[Any]], Coroutine[Any, Any, Any]]


class DirectGet:
    """Where nothing is read ahead in an event loop."""

    def take(self) -> bytes | None:
        """Take the next item that is here, if one may be handed out."""
        return None

    async def next(self) -> bytes | None:
        """Take the next item; read ahead if there is none here. Returns None when the broker is to
        be asked for one: then nothing is reserved here."""
        return None

    async def give_back(self) -> None:
        """Give up the reservation, so that any consumer can take the items."""


class ReadAhead(DirectGet):
    """Hands out the items that are reserved for one handle in one event loop."""

    def __init__(self, run: Run, queue: ObjectAttachment) -> None:
        """``run`` runs an operation on the queue, which is open when :meth:`next` is called."""
        self._run = run
        self._queue = queue
        self.window: Window[bytes] = Window(Pace(), alone=True)
        self.take = self.window.take  # type: ignore[method-assign]
        self._lock = asyncio.Lock()
        self._hand_outs: HandOuts | None = None
        self._ending: asyncio.Task[None] | None = None

    async def next(self) -> bytes | None:
        window = self.window
        while (item := window.take()) is None:
            while window.left:
                late = window.left.pop()
                try:
                    async with self._lock:
                        await self._end()
                except BaseException:
                    window.left.append(late)
                    raise
                if window.counts(late[1]):
                    return late[0]
            number = window.pace.next_number(window.place)
            async with self._lock:
                if window.is_ready(monotonic()):
                    continue  # another task was faster
                if number == 1:
                    await self._try_to_end()
                    return None
                try:
                    if window.must_end(monotonic()):
                        await self._end()
                    if not await self._reserve(number):
                        return None
                except BrokerUnavailable:  # to get one tries for longer
                    return None
        return item

    async def _reserve(self, number: int) -> bool:
        self._prepare()
        request = self.window.next_request(number)
        self._plan_end()
        reply = await self._once(self._queue.operations.prefetch(request))
        items = mark_each(reply.items) if isinstance(reply, Taken) else []
        return self.window.feed(reply, items, self._queue.options.lease)

    def _prepare(self) -> None:
        self._queue.codec.prepare()  # nothing is taken out that this handle has no key for
        if self._hand_outs is None:
            lifecycle.begin_use()
            self.window.reader = reader()
            self._hand_outs = HandOuts(self.window.reader)
            self.window.cell = self._hand_outs.cell
            _all.add(self)

    async def _once(self, operation: Operation[Any]) -> Any:
        """Run an operation that loses nothing when the broker does not answer."""
        return await self._run(ending(operation, ONE_TRY))

    # Ending the reservation

    async def give_back(self) -> None:
        if self.window.holds:
            self.window.pace.share()
            async with self._lock:
                await self._try_to_end()

    async def _try_to_end(self) -> None:
        try:
            await self._end()
        except PressureError:
            self.window.due = monotonic() + RETRY

    async def _end(self) -> None:
        if self.window.holds:
            await self._once(self.window.end())

    def _plan_end(self) -> None:
        """See to it that the reservation ends in time."""
        if self._ending is None or self._ending.done():
            self._ending = asyncio.ensure_future(self._end_in_time())

    async def _end_in_time(self) -> None:
        window = self.window
        try:
            while window.holds:
                await asyncio.sleep(max(window.due - monotonic(), 0.0))
                async with self._lock:
                    if monotonic() >= window.due:
                        await self._try_to_end()
        except asyncio.CancelledError:  # the loop ends
            await self._try_to_end()
            raise

    def leave(self) -> None:
        """End the reservation with the process."""
        lease, window = self._queue.here.lease, self.window
        if window.holds:
            try:
                at_exit.say(lease.engine, lambda options: lease.run_within(options, window.end()))
            except PressureError:
                pass  # other processes see that this one has ended
        if not window.holds and self._hand_outs is not None:
            self._hand_outs.end()


_all: weakref.WeakSet[ReadAhead] = weakref.WeakSet()


def _end() -> None:
    for reading in list(_all):
        reading.leave()


lifecycle.register("forget what event loops read ahead", _all.clear)
lifecycle.register("give back what event loops read ahead", _end)
