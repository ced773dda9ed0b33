"""What one handle of asyncio put, and is not yet at the broker: see :mod:`.sending`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ..background import at_exit
from ..deadlines import seconds_left
from ..drivers import drive, noting
from ..effects import Operation
from ..engines import registry
from ..engines.contract.items import Added
from ..engines.contract.session import Options
from ..exceptions import Full, PressureError
from ..handles.objects import ObjectAttachment
from .sending import Line, busy, line_of

#: After so many puts through a handle, whoever makes them lets others run: also what sends them.
_PUTS_IN_A_ROW = 100
#: So many bytes of items wait in a handle at most, unless it is one item.
_MOST_BYTES = 1 << 24

#: Runs an operation on a handle's queue.
Run = Callable[[Operation[Added]], Coroutine[Any, Any, Added]]


class Outgoing:
    """The items that were put through one handle, and are not yet sent."""

    def __init__(self, run: Run, queue: ObjectAttachment) -> None:
        """The handle is open, and the event loop runs."""
        self._run = run
        self._queue = queue
        self._shared = line_of(registry.engine(queue.address))
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
        if len(self) >= self._queue.buffering.puts:
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
                f"queue {self._queue.name!r} is full, and {len(self)} items of this handle wait "
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
            error.rest = [self._queue.codec.decode(item) for item in failed]
            raise error

    def _forget_failure(self) -> None:
        self._failure, self._failed = None, []
        self._shared.failed.pop(self, None)

    def fail(self, error: Exception, items: list[bytes]) -> None:
        """These could not be sent, and what is behind them is not."""
        if not isinstance(error, PressureError):
            raised, error = error, PressureError(f"queue {self._queue.name!r}: {error!r}")
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
            f"{len(self._failed)} items that were put on queue {self._queue.name!r} were not "
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
        sending = self._queue.operations.put_batch(batch, waits)
        return (await self._run(noting(sending, self._note_waiting))).number

    def _note_waiting(self, waits: bool) -> None:
        self._is_stuck = waits
        self._tell()

    def send_at_end(self, batch: list[bytes]) -> int:
        """The same where the process ends, without waiting for space."""
        number, engine = 0, registry.engine(self._queue.address)

        def send(options: Options) -> None:
            nonlocal number
            binding = self._queue.bind(engine, options)
            sending = self._queue.operations.put_batch(batch, False)
            number = drive(sending, binding.session()).number

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
        self._line = Line(self._shared.engine, waits=True)
        for item in (*items, *behind):
            self._line.add(self, item)
        self._tell()
