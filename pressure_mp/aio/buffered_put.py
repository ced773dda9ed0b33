"""Put into a buffer in asyncio, and send it in a task.

There is one sender for an event loop and a broker, over all its queues. A queue that is full has a
sender of its own. The task lives as long as there is something to send. A cancelled task, as at the
end of ``asyncio.run``, sends the rest first. The task of a loop that was only left goes on when the
process ends; if the loop was closed, the process sends the items that were not on their way.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import time
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from .. import lifecycle
from ..background import at_exit
from ..buffering.at_once import PutsAtOnce
from ..buffering.outbox import Outbox, Pending, Run
from ..deadlines import seconds_left
from ..drivers import drive, noting
from ..effects import Operation
from ..engines import registry
from ..engines.contract.cancellation import is_unknown
from ..engines.contract.items import Added
from ..engines.contract.session import Engine, Options
from ..exceptions import BrokerUnavailable, PressureError
from ..handles.objects import ObjectAttachment
from ..off_loop import begin_later

#: After so many puts through a handle, a put lets other tasks run: also the task that sends.
_PUTS_IN_A_ROW = 100
#: Seconds for which a cancelled task still sends items.
_LAST_SECONDS = 2.0

#: Runs an operation on a handle's queue.
RunPut = Callable[[Operation[Added]], Coroutine[Any, Any, Added]]


class DirectPut:
    """Where nothing is buffered in an event loop."""

    #: Whether the queue's bound is to be looked up before a put is buffered.
    is_unsure = True

    def __len__(self) -> int:
        """Count the items that wait here to be sent."""
        return 0

    async def settle(self) -> None:
        """Wait until the broker has the items, as far as there is space."""

    async def flush(self) -> None:
        """Wait until the broker has the items. Raises what went wrong since the last call."""

    async def make_way(self, block: bool, end: float | None) -> None:
        """Wait until the next put may go past the items; if the queue is full, until ``end``. Then
        raises Full; and as :meth:`flush`."""

    def discard(self) -> None:
        """Drop the items that are not on their way."""


class BufferedPut(DirectPut):
    """Appends items to a :class:`~pressure_mp.buffering.outbox.Pending`, which a
    :class:`LoopSender` sends."""

    def __init__(self, run: RunPut, queue: ObjectAttachment) -> None:
        """Begin for an open handle to a queue without a bound, in a running event loop."""
        self._run = run
        self._queue = queue
        self._home = sender_of(registry.engine(queue.address))
        self.pending = Pending(queue.name, queue.buffering.puts, self._home)
        self.pending.looked(math.inf)
        self._changed: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self.pending.items)

    @property
    def is_unsure(self) -> bool:  # type: ignore[override]
        """Whether the queue had no space for the items: it has a bound now."""
        return self.pending.outbox is not self._home

    # Putting

    async def put(self, encoded: bytes) -> None:
        """Append an item, or add it at once to a queue in shared memory; wait while as many items
        wait as may. Raises what went wrong."""
        pending = self.pending
        if pending.number_put % _PUTS_IN_A_ROW == _PUTS_IN_A_ROW - 1:
            await asyncio.sleep(0)
        self.raise_failure()
        rests = not pending.items and self._home.rests and pending.outbox is self._home
        if rests and self._home.at_once.put(self._queue, encoded):
            pending.number_sent += 1
            return
        while pending.is_crowded(len(encoded)):
            await self._change()
            self.raise_failure()
        pending.may_add(len(encoded))
        pending.items.append(encoded)
        self._home.unsent[self] = None
        if pending.outbox.last is not pending:
            pending.outbox.line_up(self)

    # Waiting

    async def settle(self) -> None:
        pending = self.pending
        if not pending.items:
            self._home.at_once.note_get()
        number = pending.number_put
        while (pending.number_sent < number or self._is_under_way) and not pending.is_stuck:
            pending.outbox.attend()
            await self._change()

    async def drain(self, end: float | None = None) -> bool:
        """Wait until the items have left, until ``end`` on the monotonic clock at most; whether
        they have."""
        pending = self.pending
        number = pending.number_put
        while pending.number_sent < number or self._is_under_way:
            left = seconds_left(end)
            if left == 0:
                return False
            pending.outbox.attend()
            await self._change(left)
        return True

    @property
    def _is_under_way(self) -> bool:
        """Whether a batch was sent whose reply did not come yet; also if it was discarded since."""
        under_way = self.pending.outbox.under_way
        return under_way is not None and under_way[0] is self

    async def flush(self) -> None:
        await self.drain()
        self.raise_failure()

    async def make_way(self, block: bool, end: float | None) -> None:
        if block:
            is_sent = await self.drain(end)
        else:
            await self.settle()
            is_sent = not len(self)
        if not is_sent:
            raise self.pending.full()
        self.raise_failure()

    async def _change(self, timeout: float | None = None) -> None:
        """Wait until something was sent, or is otherwise not as before."""
        changed = asyncio.get_running_loop().create_future()
        self._changed.append(changed)
        await asyncio.wait([changed], timeout=timeout)

    def tell(self) -> None:
        """Wake the tasks that wait for a change."""
        if not len(self) and not self._is_under_way:
            self._home.unsent.pop(self, None)
        changed, self._changed = self._changed, []
        for one in changed:
            if not (one.done() or one.get_loop().is_closed()):
                one.set_result(None)

    # Errors

    def raise_failure(self) -> None:
        """Raise what went wrong; ``rest`` has the items that were put and not sent, in order."""
        if not self.pending.has_failed:
            return
        self._home.failed.pop(self, None)
        error, failed = self.pending.take_failure()
        if error is not None:
            self.pending.looked(math.inf)
            error.rest = [self._queue.codec.decode(item) for item in failed]
            raise error

    def fail(self, items: list[bytes], error: Exception) -> None:
        """Note that these items, and so the items behind them, could not be sent."""
        if self.pending.fail(items, error):
            self._home.failed[self] = None
            busy.add(self._home)

    def tell_failure(self) -> None:
        """Say in an ending process what no call was told."""
        at_exit.tell(self.pending.left_behind())

    def discard(self) -> None:
        self.pending.discard()
        self.pending.looked(math.inf)
        self._home.failed.pop(self, None)
        self.tell()

    # Sending

    async def send(self, batch: list[bytes], waits: bool) -> int:
        """Send the first of a batch, as many as there is space for; returns how many."""
        sending = self._queue.operations.put_batch(batch, waits)
        return (await self._run(noting(sending, self._note_waiting))).number

    def _note_waiting(self, waits: bool) -> None:
        self.pending.note_waiting(waits)
        self.tell()

    def sent(self, items: list[bytes], number: int) -> None:
        """Note that the broker has the first of these items."""
        self.pending.sent(items, number)
        self.tell()

    def send_at_end(self, batch: list[bytes]) -> int:
        """Send a batch where the process ends, without waiting for space; returns how many."""
        number, engine = 0, registry.engine(self._queue.address)

        def send(options: Options) -> None:
            nonlocal number
            binding = self._queue.bind(engine, options)
            sending = self._queue.operations.put_batch(batch, False)
            number = drive(sending, binding.session()).number

        at_exit.say(engine, send)
        return number


class LoopSender(Outbox):
    """Sends the items of an outbox, in a task of one event loop."""

    def __init__(self, engine: Engine, is_apart: bool = False) -> None:
        super().__init__(is_apart)
        self.engine = engine
        self.at_once = PutsAtOnce()
        self._task: asyncio.Task[None] | None = None
        self._cancelled: asyncio.CancelledError | None = None
        self._gives_up = False  # it was cancelled once more, or for too long
        #: The batch that was sent, and of which nothing is known.
        self.under_way: tuple[BufferedPut, list[bytes], int] | None = None
        #: The handles that have something to send, also where it waits for space.
        self.unsent: dict[BufferedPut, None] = {}
        #: The handles with an error of which no call was told.
        self.failed: dict[BufferedPut, None] = {}

    @property
    def rests(self) -> bool:
        """Whether all that was put has left."""
        return self._task is None and not self.has_more

    def line_up(self, puts: BufferedPut) -> None:
        """Send the items that a handle appended, after all items that were put before."""
        self.add_run(puts.pending, puts)
        self.last = puts.pending
        self.attend()

    def attend(self) -> None:
        """Have a task send the items; a cancelled task may have left some."""
        if self.has_more and self._task is None:
            lifecycle.begin_use()
            busy.add(self)
            self._cancelled, self._gives_up = None, False
            self._task = begin_later(self._send())

    # Sending

    async def _send(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        timer: asyncio.TimerHandle | None = None
        try:
            while not self._gives_up and (run := self.next_run()) is not None:
                is_sent = await self._send_next(run)
                if self._cancelled is not None and timer is None:
                    timer = loop.call_later(_LAST_SECONDS, task.cancel)
                    continue
                if self._cancelled is not None and self.is_apart and not is_sent:
                    break  # the loop ends, and there is no space
        finally:
            if timer is not None:
                timer.cancel()
            self._task = None
            if not self.rest():
                self.last = None  # the next put has another task send
            elif not self.failed:
                busy.discard(self)
        if self._cancelled is not None:
            raise self._cancelled

    async def _send_next(self, run: Run) -> bool:
        """Send the next batch; whether any item of it has left."""
        puts: BufferedPut = run.owner
        items, batch = run.pending.items, run.next_batch()
        self.under_way = puts, items, len(batch)
        try:
            number = await puts.send(batch, self.is_apart and self._cancelled is None)
        except asyncio.CancelledError as error:  # the loop ends: what was put is sent first
            self._gives_up = self._cancelled is not None or is_unknown(error)
            self._cancelled = error
            if is_unknown(error):  # to send them again could be to put them twice
                why = BrokerUnavailable("the broker did not answer while the event loop ended")
                puts.fail(items, why)
                return True
            return False
        except Exception as error:
            puts.fail(items, error)
            return True
        finally:
            self.under_way = None
            puts.tell()
        puts.sent(items, number)
        is_full = number < len(batch) and items is run.pending.items
        if is_full and not self.is_apart:
            apart = LoopSender(self.engine, is_apart=True)
            self.set_apart(run.pending, apart)
            apart.line_up(puts)
            puts.tell()
        return number > 0

    # The end of the process

    def leave(self) -> None:
        """The process ends: the task sends what there is, if its loop can still run; else this
        does, but not what was on its way."""
        task, unknown = self._task, 0
        if task is not None:
            at_exit.say(self.engine, partial(_go_on, task))
        if self.under_way is not None:
            puts, items, unknown = self.under_way
            puts.sent(items, unknown)
        if task is None or not task.get_loop().is_running():
            self._send_at_end()
        left = sum(len(puts.pending.items) for puts in self._mine)
        if left or unknown:
            at_exit.tell(
                f"of what was put through asyncio to {self.engine.address.url}, "
                f"{left} items were not sent when this process ended, and of {unknown} "
                "it is not known: await close() or flush() before"
            )
        for puts in list(self.failed):
            puts.tell_failure()

    @property
    def _mine(self) -> list[BufferedPut]:
        return [puts for puts in self.owners if puts.pending.outbox is self]

    def _send_at_end(self) -> None:
        while (run := self.next_run()) is not None:
            puts, items = run.owner, run.pending.items
            try:
                number = puts.send_at_end(run.next_batch())
            except PressureError as error:
                puts.fail(items, error)
                continue
            puts.sent(items, number)
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


_senders: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, LoopSender]] = (
    weakref.WeakKeyDictionary()
)
#: The senders that have something to send, or a failure to tell.
busy: set[LoopSender] = set()


def sender_of(engine: Engine) -> LoopSender:
    """The sender of the running event loop to a broker."""
    senders = _senders.setdefault(asyncio.get_running_loop(), {})
    found = senders.get(id(engine))
    if found is None:
        found = senders[id(engine)] = LoopSender(engine)
    return found


async def settle(engine: Engine) -> None:
    """Wait until the broker has all that this loop put before, through any handle, as far as there
    is space for it."""
    for puts in list(sender_of(engine).unsent):
        await puts.settle()


async def flush(engine: Engine, acknowledged: str | None = None) -> None:
    """Wait until the broker has all of it, and raise the error of a failed put; with the queue
    ``acknowledged``, only an error that keeps back its acknowledgements."""
    sender = sender_of(engine)
    for puts in list(sender.unsent):
        await puts.drain()
    for puts in list(sender.failed):
        if acknowledged is None or puts.pending.keeps_back(acknowledged):
            puts.raise_failure()


def _leave() -> None:
    for sender in list(busy):
        sender.leave()
    busy.clear()


def _after_fork_in_child() -> None:
    _senders.clear()
    busy.clear()


lifecycle.register("forget puts of event loops", _after_fork_in_child)
lifecycle.register("send puts of event loops", _leave)
