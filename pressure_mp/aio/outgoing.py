"""What handles of asyncio put and is not yet at the broker: a task sends it, in batches.

There is one line for an event loop and a broker, so that what a loop puts arrives in the order of
its puts, over all its queues; but what waits for space in its queue waits in a line of its own. The
task lives as long as there is something to send. One that is cancelled, as ``asyncio.run`` does at
its end, sends the rest first. Of a loop that was only left it goes on when the process ends; if the
loop was closed, the process sends what was not on its way.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from ..background import at_exit
from ..deadlines import seconds_left
from ..drivers import drive, noting
from ..effects import Operation
from ..engines import registry
from ..engines.contract.items import MOST_ITEMS
from ..engines.contract.session import Engine, Options
from ..exceptions import BrokerUnavailable, Full, PressureError
from ..operations.batches import next_batch
from ..sync.queues import Queue

#: After so many puts through a handle, whoever makes them lets others run: also what sends them.
_PUTS_IN_A_ROW = 100
#: So many bytes of items wait in a handle at most, unless it is one item.
_MOST_BYTES = 1 << 24

#: Runs an operation on a handle's queue.
Run = Callable[[Operation[int]], Coroutine[Any, Any, int]]


class Outgoing:
    """The items that were put through one handle, and are not yet sent."""

    def __init__(self, run: Run, handle: Queue[Any]) -> None:
        """The handle is open, and the event loop runs."""
        self._run = run
        self._handle = handle
        self._shared = _line_of(registry.engine(handle._address))
        #: Where it waits; another one while its queue has no space for it.
        self._line = self._shared
        self._number_put = self._number_sent = 0
        self._bytes = 0
        self._is_stuck = False  # the queue is full
        self._discards = 0
        self._changed: list[asyncio.Future[None]] = []
        self._failure: PressureError | None = None
        self._failed: list[bytes] = []

    def __len__(self) -> int:
        return self._number_put - self._number_sent

    # Putting

    async def put(self, encoded: bytes) -> None:
        """Note an item to be sent; waits while as many wait as may. Raises what went wrong."""
        if self._number_put % _PUTS_IN_A_ROW == _PUTS_IN_A_ROW - 1:
            await asyncio.sleep(0)
        self.raise_failure()
        while not self._has_room_for(encoded):
            await self._change()
            self.raise_failure()
        self._number_put += 1
        self._bytes += len(encoded)
        self._shared.unsent[self] = None
        self._line.add(self, encoded)

    def _has_room_for(self, encoded: bytes) -> bool:
        if len(self) >= self._handle._sends_ahead:
            return False
        return not self._bytes or self._bytes + len(encoded) <= _MOST_BYTES

    # Waiting

    @property
    def is_short(self) -> bool:
        """Whether its queue had no space for what is here."""
        return self._line is not self._shared

    async def settle(self) -> None:
        """Wait until nothing of what was put is here any more, or its queue has no space for it."""
        number = self._number_put
        while self._number_sent < number and not self._is_stuck:
            self._line.attend()
            await self._change()

    async def drain(self, end: float | None = None) -> bool:
        """Wait until nothing of what was put is here any more, until ``end`` on the monotonic
        clock at most; whether that is so."""
        number = self._number_put
        while self._number_sent < number:
            left = seconds_left(end)
            if left == 0:
                return False
            self._line.attend()
            await self._change(left)
        return True

    async def flush(self) -> None:
        """The same, and raise what went wrong since it was last raised."""
        await self.drain()
        self.raise_failure()

    async def make_way(self, block: bool, end: float | None) -> None:
        """Wait until the next put may go past what was put here; if the queue is full, no longer
        than that put may wait: then raises Full. Raises what went wrong."""
        if block:
            is_sent = await self.drain(end)
        else:
            await self.settle()
            is_sent = not len(self)
        if not is_sent:
            raise Full(
                f"queue {self._handle.name!r} is full, and {len(self)} items of this handle wait "
                "here to be sent"
            )
        self.raise_failure()

    async def _change(self, timeout: float | None = None) -> None:
        """Wait until something was sent, or is otherwise not as before."""
        changed = asyncio.get_running_loop().create_future()
        self._changed.append(changed)
        await asyncio.wait([changed], timeout=timeout)

    def _tell(self) -> None:
        changed, self._changed = self._changed, []
        for one in changed:
            if not (one.done() or one.get_loop().is_closed()):
                one.set_result(None)

    # What went wrong

    def raise_failure(self) -> None:
        """Raise what went wrong; ``rest`` are the items that were put and not sent, in order."""
        error, failed = self._failure, self._failed
        if error is not None:
            self._forget_failure()
            error.rest = [self._handle._codec.decode(item) for item in failed]
            raise error

    def _forget_failure(self) -> None:
        self._failure, self._failed = None, []
        self._shared.failed.pop(self, None)

    def fail(self, error: Exception, items: list[bytes]) -> None:
        """These could not be sent, and what is behind them is not."""
        if not isinstance(error, PressureError):
            raised, error = error, PressureError(f"queue {self._handle.name!r}: {error!r}")
            error.__cause__ = raised
        behind = self._line.take_out(self)
        self._failure = self._failure or error
        self._failed += [*items, *behind]
        self._shared.failed[self] = None
        busy.add(self._shared)
        self.note_gone([*items, *behind])

    def tell_failure(self) -> None:
        """The process ends, and nobody was told."""
        at_exit.tell(
            f"{len(self._failed)} items that were put on queue {self._handle.name!r} were not "
            f"sent, or it is not known: {self._failure}"
        )

    def discard(self) -> None:
        """What was put, and is not on its way, is not sent any more."""
        self._discards += 1
        self._forget_failure()
        self.note_gone(self._line.take_out(self))

    # Sending

    async def send(self, batch: list[bytes], waits: bool) -> int:
        """Send the first of a batch, as many as there is space for; returns how many."""
        sending = self._handle._operations.put_batch(batch, waits)
        return await self._run(noting(sending, self._note_waiting))

    def _note_waiting(self, waits: bool) -> None:
        self._is_stuck = waits
        self._tell()

    def send_at_end(self, batch: list[bytes]) -> int:
        """The same where the process ends, without waiting for space."""
        number, engine = 0, registry.engine(self._handle._address)

        def send(options: Options) -> None:
            nonlocal number
            binding = self._handle._bind(engine, options)
            number = drive(self._handle._operations.put_batch(batch, False), binding.session())

        at_exit.say(engine, send)
        return number

    @property
    def discards(self) -> int:
        """How often what was here was discarded."""
        return self._discards

    def note_gone(self, items: Sequence[bytes]) -> None:
        """These are no longer here."""
        self._number_sent += len(items)
        self._bytes -= sum(map(len, items))
        if not len(self):
            self._shared.unsent.pop(self, None)
            self._line = self._shared
        self._tell()

    def wait_for_space(self, items: list[bytes]) -> None:
        """The queue has none for these and what is behind them: they are no longer in the way of
        other queues."""
        behind = self._line.take_out(self)
        self._line = _Line(self._shared.engine, waits=True)
        for item in (*items, *behind):
            self._line.add(self, item)
        self._tell()


class _Line:
    """What one event loop has to send to one broker; or, of one handle, what waits for space."""

    def __init__(self, engine: Engine, waits: bool = False) -> None:
        self.engine = engine
        self._waits = waits
        self._items: deque[tuple[Outgoing, bytes]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._cancelled: asyncio.CancelledError | None = None
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
            at_exit.call_at_end(_leave, priority=20)
            busy.add(self)
            self._cancelled = None
            self._task = asyncio.ensure_future(self._send())

    def take_out(self, outgoing: Outgoing) -> list[bytes]:
        """What was put through one handle, and is not on its way."""
        found = [item for one, item in self._items if one is outgoing]
        self._items = deque(entry for entry in self._items if entry[0] is not outgoing)
        return found

    # Sending

    async def _send(self) -> None:
        try:
            while self._items:
                is_sent = await self._send_next()
                if self._cancelled is not None and self._waits and not is_sent:
                    break  # the loop ends, and there is no space
        finally:
            self._task = None
            if not (self._items or self.failed):
                busy.discard(self)
        if self._cancelled is not None:
            raise self._cancelled

    async def _send_next(self) -> bool:
        """Send the next batch; whether any item of it is no longer here."""
        outgoing, batch = self._next()
        discards, number, waits = outgoing.discards, 0, self._waits
        before = _times_cancelled()
        self._under_way = batch
        try:
            number = await outgoing.send(batch, waits and self._cancelled is None)
        except asyncio.CancelledError as error:  # the loop ends: what was put is sent first
            self._cancelled = error
            if _times_cancelled() - before > 1:  # who is cancelled once has done nothing
                why = BrokerUnavailable("the task that sent them was cancelled more than once")
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


def _times_cancelled() -> int:
    """How often the running task was; before Python 3.11 that is not known."""
    task: Any = asyncio.current_task()
    return task.cancelling() if sys.version_info >= (3, 11) else 0


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
#: Those that have something to send, or a failure to tell.
busy: set[_Line] = set()


def _line_of(engine: Engine) -> _Line:
    lines = _lines.setdefault(asyncio.get_running_loop(), {})
    found = lines.get(id(engine))
    if found is None:
        found = lines[id(engine)] = _Line(engine)
    return found


async def settle(engine: Engine) -> None:
    """Wait until the broker has all that this loop put before, through any handle, as far as there
    is space for it."""
    for outgoing in list(_line_of(engine).unsent):
        await outgoing.settle()


async def flush(engine: Engine) -> None:
    """Wait until the broker has all of it, and raise what went wrong with any of it."""
    line = _line_of(engine)
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


os.register_at_fork(after_in_child=_after_fork_in_child)
