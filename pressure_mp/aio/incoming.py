"""What the only process that gets from an anonymous queue reads ahead, in one event loop.

It is what :mod:`pressure_mp.buffering.reserving` is for threads, on the same requests: items are
reserved, and stay queued, until the broker is told what was handed out. Nothing here waits for an
item. Between taking one and handing it out nothing suspends, so none is handed out to a task that
was cancelled.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

from .. import lifecycle
from ..background import at_exit
from ..buffering.pace import Pace
from ..buffering.reservation import KEPT, RETRY
from ..drivers import ending
from ..effects import Operation
from ..engines.contract.items import Reserved
from ..engines.contract.session import ONE_TRY, Options
from ..exceptions import BrokerUnavailable, PressureError
from ..handles.objects import ObjectAttachment
from ..identity.client import reader
from ..identity.hand_outs import HandOuts

#: Runs an operation on a handle's queue.
Run = Callable[[Operation[Any]], Coroutine[Any, Any, Any]]


class Reserving:
    """Items that are reserved for one handle in one event loop: queued, and here too."""

    def __init__(self, run: Run, queue: ObjectAttachment) -> None:
        """The handle is open, and the event loop runs."""
        self._run = run
        self._queue = queue
        self._ahead: deque[bytes] = deque()
        self._pace = Pace()
        self._lock = asyncio.Lock()
        self._reader = ""
        self._hand_outs: HandOuts | None = None
        self._cell = memoryview(bytearray(8)).cast("Q")
        self._call = 0
        self._read = 0  # how many items were ever read, without those that went back
        self._back = 0  # how many of these were here, and are not handed out
        #: What was taken out after ``_until``, each with what ``_cell`` was.
        self._late: list[tuple[int, bytes]] = []
        self._lost: list[tuple[int, int]] = []  # from one place to another, others have them
        self._holds = False  # whether the broker may have reserved anything
        #: On the monotonic clock: until when what is here may be handed out, and when it goes back.
        self._until = self._due = 0.0
        self._watcher: asyncio.Task[None] | None = None

    def take(self) -> bytes | None:
        """The next item that is here, if any may be handed out."""
        if not self._ahead or monotonic() >= self._until:
            return None
        item = self._ahead.popleft()
        self._cell[0] += 1
        if monotonic() < self._until:
            return item
        self._late.append((self._cell[0] - 1, item))
        return None

    async def next(self) -> bytes | None:
        """The next item; reads ahead if there is none here. None when the broker is to be asked for
        one: then nothing is reserved here."""
        while (item := self.take()) is None:
            while self._late:
                place, item = self._late.pop()
                if await self._counts(place, item):
                    return item
            number = self._pace.next_number(self._cell[0])
            async with self._lock:
                if self._ahead and monotonic() < self._until:
                    continue  # another task was faster
                if number == 1:
                    await self._try_to_end()
                    return None
                try:
                    if self._holds and monotonic() >= self._until:  # others may have ended it
                        await self._end()
                    found = await self._reserve(number)
                except BrokerUnavailable:  # to get one tries for longer
                    return None
                if not found:
                    return None
        return item

    async def _counts(self, place: int, item: bytes) -> bool:
        """Whether an item that was taken out here too late counts as handed out. This process was
        stopped meanwhile: others may have ended the reservation."""
        try:
            async with self._lock:
                if self._holds:
                    await self._end()
        except BaseException:
            self._late.append((place, item))
            raise
        return not any(first <= place < end for first, end in self._lost)

    async def _reserve(self, number: int) -> bool:
        self._prepare()
        handed, asked = self._drain(), monotonic()
        self._call += 1
        self._holds = True
        self._watch()
        operations = self._queue.operations
        reply = await self._once(operations.reserve(self._reader, self._call, handed, 0, number))
        if not isinstance(reply, Reserved) or not reply.items:
            if isinstance(reply, Reserved):
                self._pace.note(0)
            else:
                self._pace.share()
            self._holds, self._read, self._back = False, handed, 0
            return False
        self._pace.note(len(reply.items))
        self._read, self._back = handed + len(reply.items), 0
        self._ahead.extend(reply.items)
        # The broker keeps them for a lease from when it was asked.
        self._due, self._until = monotonic() + KEPT, asked + self._queue.options.lease / 3000
        return True

    def _prepare(self) -> None:
        self._queue.codec.prepare()  # nothing is taken out that this handle has no key for
        if self._hand_outs is None:
            lifecycle.begin_use()
            self._reader = reader()
            self._hand_outs = HandOuts(self._reader)
            self._cell = self._hand_outs.cell
            _all.add(self)

    def _drain(self) -> int:
        """Nothing that is here is handed out any more; returns how many ever were."""
        self._until = 0.0
        self._back += len(self._ahead)
        self._ahead.clear()
        return self._read - self._back

    async def _once(self, operation: Operation[Any]) -> Any:
        """Nothing is lost when the broker cannot be asked."""
        return await self._run(ending(operation, ONE_TRY))

    # Ending a reservation

    async def give_back(self) -> None:
        """Somebody here is about to look at all that are queued: what is here is for anybody."""
        if self._holds:
            self._pace.share()
            async with self._lock:
                await self._try_to_end()

    async def _try_to_end(self) -> None:
        if not self._holds:
            return
        try:
            await self._end()
        except PressureError:
            self._due = monotonic() + RETRY

    async def _end(self) -> None:
        handed = self._drain()
        settled = await self._once(self._ending(handed))
        if settled < handed:
            self._lost.append((settled, handed))
        self._holds, self._read, self._back = False, handed, 0

    def _ending(self, handed: int) -> Operation[int]:
        return self._queue.operations.end_reservation(self._reader, self._call, handed)

    def _watch(self) -> None:
        """See to it that the reservation ends in time."""
        self._due = monotonic() + KEPT
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.ensure_future(self._end_in_time())

    async def _end_in_time(self) -> None:
        try:
            while self._holds:
                await asyncio.sleep(max(self._due - monotonic(), 0.0))
                async with self._lock:
                    if monotonic() >= self._due:
                        await self._try_to_end()
        except asyncio.CancelledError:  # the loop ends
            await self._try_to_end()
            raise

    def leave(self) -> None:
        """The process ends."""
        lease = self._queue.here.lease
        if self._holds:

            def say(options: Options) -> None:
                lease.run_within(options, self._ending(self._drain()))
                self._holds = False

            try:
                at_exit.say(lease.engine, say)
            except PressureError:
                pass  # others see that this process has ended
        if not self._holds and self._hand_outs is not None:
            self._hand_outs.end()


_all: weakref.WeakSet[Reserving] = weakref.WeakSet()


def _end() -> None:
    for reserving in list(_all):
        reserving.leave()


lifecycle.register("forget what event loops read ahead", _all.clear)
lifecycle.register("give back what event loops read ahead", _end)
