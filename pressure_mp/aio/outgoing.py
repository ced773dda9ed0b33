"""What handles of asyncio put and is not yet at the broker: a task sends it, in batches.

There is one line for an event loop and a broker, so that what a loop puts arrives in the order of
its puts, over all its queues. The task lives as long as there is something to send. One that is
cancelled, as ``asyncio.run`` does at its end, sends the rest first. Of a loop that was only left it
goes on when the process ends; if the loop was closed, the process sends what was not on its way.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from ..background import at_exit
from ..drivers import drive
from ..effects import Operation
from ..engines import registry
from ..engines.contract.cancellation import is_unknown
from ..engines.contract.items import MOST_ITEMS
from ..engines.contract.session import Engine, Options
from ..exceptions import BrokerUnavailable, PressureError
from ..operations.batches import next_batch
from ..sync.queues import Queue

#: After so many puts through a handle, whoever makes them lets others run: also what sends them.
_PUTS_IN_A_ROW = 100

#: Seconds for which a task that is cancelled sends what is left.
_LAST_SECONDS = 2.0

#: Runs an operation on a handle's queue.
Run = Callable[[Operation[int]], Coroutine[Any, Any, int]]


class Outgoing:
    """The items that were put through one handle, and are not yet sent."""

    def __init__(self, run: Run, handle: Queue[Any]) -> None:
        """The handle is open, and the event loop runs."""
        self._run = run
        self._handle = handle
        self._line = _line_of(registry.engine(handle._address))
        self._number_put = 0
        #: How many are no longer here.
        self.number_sent = 0
        self._failure: PressureError | None = None
        self._failed: list[bytes] = []

    def __len__(self) -> int:
        return self._number_put - self.number_sent

    async def put(self, encoded: bytes) -> None:
        """Note an item to be sent; waits while as many wait as may. Raises what went wrong."""
        self.raise_failure()
        while len(self) >= self._handle._sends_ahead:
            await self._line.progress()
            self.raise_failure()
        self._number_put += 1
        self._line.add(self, encoded)
        if self._number_put % _PUTS_IN_A_ROW == 0:
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Wait until nothing of what was put is here any more."""
        number = self._number_put
        while self.number_sent < number:
            await self._line.progress()

    async def flush(self) -> None:
        """The same, and raise what went wrong since it was last raised."""
        await self.settle()
        self.raise_failure()

    def raise_failure(self) -> None:
        """Raise what went wrong; ``rest`` are the items that were put and not sent, in order."""
        error, self._failure = self._failure, None
        self._line.failed.pop(self, None)
        if error is not None:
            failed, self._failed = self._failed, []
            error.rest = [self._handle._codec.decode(item) for item in failed]
            raise error

    def discard(self) -> None:
        """What was put is not sent any more."""
        self._line.drop(self)

    async def send(self, batch: list[bytes]) -> int:
        """Send the first of a batch, as many as there is space for; returns how many."""
        return await self._run(self._handle._operations.put_batch(batch, True))

    def send_at_end(self, batch: list[bytes], options: Options) -> int:
        """The same where the process ends, without waiting for space."""
        binding = self._handle._bind(registry.engine(self._handle._address), options)
        return drive(self._handle._operations.put_batch(batch, False), binding.session())

    def fail(self, error: PressureError, items: list[bytes]) -> None:
        """These could not be sent."""
        self._failure = self._failure or error
        self._failed += items
        self._line.failed[self] = None


class _Line:
    """What one event loop has to send to one broker."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._items: deque[tuple[Outgoing, bytes]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._under_way = 0  # of the first items, sent, and nothing is known of them
        #: Of what was put through these something could not be sent, of which nobody may know.
        self.failed: dict[Outgoing, None] = {}

    def add(self, outgoing: Outgoing, encoded: bytes) -> None:
        """One more, behind all others."""
        self._items.append((outgoing, encoded))
        if self._task is None:
            at_exit.call_at_end(_leave, priority=20)
            _busy.add(self)
            self._task = asyncio.ensure_future(self._send())

    def drop(self, outgoing: Outgoing) -> list[bytes]:
        """Nothing that was put through a handle is sent any more; returns what that was."""
        dropped = [item for one, item in self._items if one is outgoing]
        self._items = deque(entry for entry in self._items if entry[0] is not outgoing)
        outgoing.number_sent += len(dropped)
        self._tell()
        return dropped

    async def progress(self) -> None:
        """Wait until something was sent."""
        told = asyncio.get_running_loop().create_future()
        self._waiting.append(told)
        await told

    async def flush(self) -> None:
        """Wait until nothing of what was put is here any more, and raise what went wrong."""
        for outgoing in dict(self._items):
            await outgoing.settle()
        for outgoing in list(self.failed):
            outgoing.raise_failure()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            if not told.done():
                told.set_result(None)

    async def _send(self) -> None:
        cancelled = False
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        timer: asyncio.TimerHandle | None = None
        try:
            while self._items:
                try:
                    await self._send_next()
                except asyncio.CancelledError as error:  # the loop ends: this is sent first
                    if cancelled or is_unknown(error):  # the broker does not answer
                        break
                    cancelled, timer = True, loop.call_later(_LAST_SECONDS, task.cancel)
        finally:
            if timer is not None:
                timer.cancel()
            self._task = None
            if not self._items:
                _busy.discard(self)
        if cancelled or self._items:
            raise asyncio.CancelledError

    async def _send_next(self) -> None:
        outgoing, batch = self._next()
        try:
            self._under_way = len(batch)
            number = await outgoing.send(batch)
        except PressureError as error:
            outgoing.fail(error, self.drop(outgoing))
        except asyncio.CancelledError as error:
            if is_unknown(error):  # to send them again could be to put them twice
                why = BrokerUnavailable("the broker did not answer at the end of the event loop")
                outgoing.fail(why, self.drop(outgoing))
            raise
        else:
            self._sent(outgoing, number)
        finally:
            self._under_way = 0

    def _next(self) -> tuple[Outgoing, list[bytes]]:
        """The first items of one handle, as many as one call may put."""
        outgoing = self._items[0][0]
        run: list[bytes] = []
        for one, item in islice(self._items, MOST_ITEMS):
            if one is not outgoing:
                break
            run.append(item)
        return outgoing, list(next_batch(run, 0, len))

    def _sent(self, outgoing: Outgoing, number: int) -> None:
        number = min(number, len(self._items))  # some may have been dropped meanwhile
        for _ in range(number):
            self._items.popleft()
        outgoing.number_sent += number
        self._tell()

    def leave(self) -> None:
        """The process ends: what there is to send is sent by the task, if its loop can still run;
        else here, but for what was on its way."""
        task = self._task
        if task is not None:
            at_exit.say(self.engine, partial(_go_on, task))
            if task.get_loop().is_running():
                if self._items:
                    self._tell_what_is_left(0)
                return
        unknown = self._under_way
        for _ in range(min(unknown, len(self._items))):
            self._items.popleft()
        while self._items:
            outgoing, batch = self._next()
            number = self._send_at_end(outgoing, batch)
            self._sent(outgoing, number)
            if not number:
                break
        if self._items or unknown:
            self._tell_what_is_left(unknown)

    def _send_at_end(self, outgoing: Outgoing, batch: list[bytes]) -> int:
        number = 0

        def send(options: Options) -> None:
            nonlocal number
            number = outgoing.send_at_end(batch, options)

        at_exit.say(self.engine, send)
        return number

    def _tell_what_is_left(self, unknown: int) -> None:
        at_exit.tell(
            f"of what was put through asyncio to {self.engine.address.url}, "
            f"{len(self._items)} items were not sent when this process ended, and of {unknown} "
            "it is not known: await close() or flush() before"
        )


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


_lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, _Line]] = (
    weakref.WeakKeyDictionary()
)
#: Those that have something to send.
_busy: set[_Line] = set()


def _line_of(engine: Engine) -> _Line:
    lines = _lines.setdefault(asyncio.get_running_loop(), {})
    found = lines.get(id(engine))
    if found is None:
        found = lines[id(engine)] = _Line(engine)
    return found


async def flush(engine: Engine) -> None:
    """Wait until the broker has all that this loop put before, through any handle, and raise what
    went wrong with that."""
    line = _lines.get(asyncio.get_running_loop(), {}).get(id(engine))
    if line is not None:
        await line.flush()


def _leave() -> None:
    for line in list(_busy):
        line.leave()
    _busy.clear()


def _after_fork_in_child() -> None:
    _lines.clear()
    _busy.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
