"""What an event loop has to send to a broker, in the order in which it was put.

There is one line for an event loop and a broker, over all its queues; but what waits for space in
its queue waits in a line of its own. The task that sends lives as long as there is something to
send. One that is cancelled, as ``asyncio.run`` does at its end, sends the rest first. Of a loop
that was only left it goes on when the process ends; if the loop was closed, the process sends what
was not on its way.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Protocol

from .. import lifecycle
from ..background import at_exit
from ..engines.contract.cancellation import is_unknown
from ..engines.contract.items import MOST_ITEMS
from ..engines.contract.session import Engine, Options
from ..exceptions import BrokerUnavailable, PressureError
from ..operations.batches import next_batch

#: Seconds for which a task that is cancelled sends what is left.
_LAST_SECONDS = 2.0


class Outgoing(Protocol):
    """What was put through one handle; see :class:`pressure_mp.aio.outgoing.Outgoing`."""

    @property
    def discards(self) -> int: ...

    async def send(self, batch: list[bytes], waits: bool) -> int: ...

    def send_at_end(self, batch: list[bytes]) -> int: ...

    def note_gone(self, items: Sequence[bytes]) -> None: ...

    def wait_for_space(self, items: list[bytes]) -> None: ...

    def fail(self, error: Exception, items: list[bytes]) -> None: ...

    def raise_failure(self) -> None: ...

    def tell_failure(self) -> None: ...

    async def settle(self) -> None: ...

    async def drain(self) -> bool: ...


class Line:
    """What one event loop has to send to one broker; or, of one handle, what waits for space."""

    def __init__(self, engine: Engine, waits: bool = False) -> None:
        self.engine = engine
        self._waits = waits
        self._items: deque[tuple[Outgoing, bytes]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._cancelled: asyncio.CancelledError | None = None
        self._is_over = False  # it was cancelled once more, or for too long
        self._under_way: list[bytes] = []  # sent, and nothing is known of them
        #: Those that have something to send, also elsewhere.
        self.unsent: dict[Outgoing, None] = {}
        #: Of what was put through these something could not be sent, of which nobody may know.
        self.failed: dict[Outgoing, None] = {}

    def add(self, outgoing: Outgoing, encoded: bytes) -> None:
        """One more, behind all others."""
        self._items.append((outgoing, encoded))
        self.attend()

    def attend(self) -> None:
        """Have a task send what is here; one that was cancelled may have left something."""
        if self._items and self._task is None:
            lifecycle.begin_use()
            busy.add(self)
            self._cancelled, self._is_over = None, False
            self._task = asyncio.ensure_future(self._send())

    def take_out(self, outgoing: Outgoing) -> list[bytes]:
        """What was put through one handle, and is not on its way."""
        found = [item for one, item in self._items if one is outgoing]
        self._items = deque(entry for entry in self._items if entry[0] is not outgoing)
        return found

    # Sending

    async def _send(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        timer: asyncio.TimerHandle | None = None
        try:
            while self._items and not self._is_over:
                is_sent = await self._send_next()
                if self._cancelled is not None and timer is None:
                    timer = loop.call_later(_LAST_SECONDS, task.cancel)
                    continue
                if self._cancelled is not None and self._waits and not is_sent:
                    break  # the loop ends, and there is no space
        finally:
            if timer is not None:
                timer.cancel()
            self._task = None
            if not (self._items or self.failed):
                busy.discard(self)
        if self._cancelled is not None:
            raise self._cancelled

    async def _send_next(self) -> bool:
        """Send the next batch; whether any item of it is no longer here."""
        outgoing, batch = self._next()
        discards, number, waits = outgoing.discards, 0, self._waits
        self._under_way = batch
        try:
            number = await outgoing.send(batch, waits and self._cancelled is None)
        except asyncio.CancelledError as error:  # the loop ends: what was put is sent first
            self._is_over = self._cancelled is not None or is_unknown(error)
            self._cancelled = error
            if is_unknown(error):  # to send them again could be to put them twice
                why = BrokerUnavailable("the broker did not answer while the event loop ended")
                outgoing.fail(why, batch)
                return True
            waits = True
        except Exception as error:
            outgoing.fail(error, batch)
            return True
        finally:
            self._under_way = []
        outgoing.note_gone(batch[:number])
        if outgoing.discards != discards:
            outgoing.note_gone(batch[number:])
        elif waits:
            self._put_back(outgoing, batch[number:])
        elif number < len(batch):
            outgoing.wait_for_space(batch[number:])
        return number > 0

    def _next(self) -> tuple[Outgoing, list[bytes]]:
        """The first items of one handle, as many as one call may put. They are taken out."""
        outgoing = self._items[0][0]
        run: list[bytes] = []
        for one, item in islice(self._items, MOST_ITEMS):
            if one is not outgoing:
                break
            run.append(item)
        batch = list(next_batch(run, 0, len))
        for _ in batch:
            self._items.popleft()
        return outgoing, batch

    def _put_back(self, outgoing: Outgoing, items: list[bytes]) -> None:
        self._items.extendleft((outgoing, item) for item in reversed(items))

    # The end of the process

    def leave(self) -> None:
        """The process ends: what there is to send is sent by the task, if its loop can still run;
        else here, but for what was on its way."""
        task = self._task
        if task is not None:
            at_exit.say(self.engine, partial(_go_on, task))
        if task is None or not task.get_loop().is_running():
            self._send_at_end()
        unknown = len(self._under_way)
        if self._items or unknown:
            at_exit.tell(
                f"of what was put through asyncio to {self.engine.address.url}, "
                f"{len(self._items)} items were not sent when this process ended, and of {unknown} "
                "it is not known: await close() or flush() before"
            )
        for outgoing in list(self.failed):
            outgoing.tell_failure()

    def _send_at_end(self) -> None:
        while self._items:
            outgoing, batch = self._next()
            try:
                number = outgoing.send_at_end(batch)
            except PressureError as error:
                outgoing.fail(error, batch)
                continue
            outgoing.note_gone(batch[:number])
            self._put_back(outgoing, batch[number:])
            if not number:
                break


def _go_on(task: asyncio.Task[None], options: Options) -> None:
    """Wait for a task, in whichever thread its event loop runs; here, if it runs no more. Until
    the process has to end."""
    loop = task.get_loop()
    seconds = None if options.until is None else max(options.until - time.monotonic(), 0.0)
    ending = _wait_for(task, seconds)
    with suppress(RuntimeError, concurrent.futures.TimeoutError):  # the loop is closed, or hangs
        if loop.is_running():
            asyncio.run_coroutine_threadsafe(ending, loop).result(seconds)
        else:
            loop.run_until_complete(ending)
    ending.close()


async def _wait_for(task: asyncio.Task[None], seconds: float | None) -> None:
    await asyncio.wait({task}, timeout=seconds)


_lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Line]] = (
    weakref.WeakKeyDictionary()
)
#: Those that have something to send, or a failure to tell.
busy: set[Line] = set()


def line_of(engine: Engine) -> Line:
    lines = _lines.setdefault(asyncio.get_running_loop(), {})
    found = lines.get(id(engine))
    if found is None:
        found = lines[id(engine)] = Line(engine)
    return found


async def settle(engine: Engine) -> None:
    """Wait until the broker has all that this loop put before, through any handle, as far as there
    is space for it."""
    for outgoing in list(line_of(engine).unsent):
        await outgoing.settle()


async def flush(engine: Engine) -> None:
    """Wait until the broker has all of it, and raise what went wrong with any of it."""
    line = line_of(engine)
    for outgoing in list(line.unsent):
        await outgoing.drain()
    for outgoing in list(line.failed):
        outgoing.raise_failure()


def _leave() -> None:
    for line in list(busy):
        line.leave()
    busy.clear()


def _after_fork_in_child() -> None:
    _lines.clear()
    busy.clear()


lifecycle.register("forget puts of event loops", _after_fork_in_child)
lifecycle.register("send puts of event loops", _leave)
