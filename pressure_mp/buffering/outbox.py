"""The items that were put and are not at the broker: the books of it, for threads and asyncio.

Nothing here does I/O, waits or locks. A thread or an asyncio task sends what an :class:`Outbox`
says; threads call under a lock, except where a put appends an item.
"""

from __future__ import annotations

import math
from collections import deque
from enum import Enum
from typing import Any

from ..exceptions import Full, PressureError, ShutDown
from ..operations.batches import next_batch
from ..states import Transition

#: Only items of so many bytes are counted in bytes; and so many bytes, or one item, may wait.
SMALL = 1 << 13
MOST_BYTES = 1 << 24


class Intake(str, Enum):
    """Tell where the next put sends its item."""

    #: Look first how much space the queue has.
    LOOK = "look"
    #: Add it, if there is room.
    OPEN = "open"
    #: Send it to the broker at once, and say what the broker says.
    OFF = "off"


class Flow(str, Enum):
    """Tell whether the waiting items can be sent."""

    MOVING = "moving"
    #: The queue has no space for the next item.
    STUCK = "stuck"
    #: An item was refused, of which no call was told. None waits.
    FAILED = "failed"


class Event(str, Enum):
    """Name an event in the life of a handle's items."""

    LOOKED = "the queue's space is known"
    FORGOT = "the queue's space may have changed"
    FULL = "the broker has no space for the next item"
    SENT = "the broker has some items, or has space again"
    REFUSED = "an item could not be sent"
    TOLD = "a call raised the error, or the items were discarded"
    TURNED_OFF = "the handle was closed, the queue shut down, or the process ends"


#: Every way there is. An event that is missing for a state does not change it.
TRANSITIONS = (
    Transition(Intake.LOOK, Intake.OPEN, Event.LOOKED),
    Transition(Intake.OPEN, Intake.LOOK, Event.FORGOT),
    Transition(Intake.OPEN, Intake.LOOK, Event.REFUSED),
    Transition(Intake.LOOK, Intake.OFF, Event.TURNED_OFF),
    Transition(Intake.OPEN, Intake.OFF, Event.TURNED_OFF),
    Transition(Flow.MOVING, Flow.STUCK, Event.FULL),
    Transition(Flow.STUCK, Flow.MOVING, Event.SENT),
    Transition(Flow.MOVING, Flow.FAILED, Event.REFUSED),
    Transition(Flow.STUCK, Flow.FAILED, Event.REFUSED),
    Transition(Flow.FAILED, Flow.MOVING, Event.TOLD),
)
_AFTER: dict[tuple[str, str], Any] = {
    (before, event): after for before, after, event, _ in TRANSITIONS
}


class Pending:
    """The items that were put through one handle, in order; they leave when the broker has them.

    ``limit`` is how many items may wait now: a put that finds fewer appends its item and looks no
    further. It is 0 unless the intake is open. ``room`` is how many items the queue had space for
    when it was last looked at, less the items that were sent since: so a put on a bounded queue
    waits, or is refused, as it would without a buffer.
    """

    def __init__(self, queue: str, size: int, outbox: Outbox) -> None:
        self.queue = queue
        self._size = size
        self.home: Any = outbox  # with the methods of its driver
        self.reset()

    def reset(self) -> None:
        """Begin: nothing was put."""
        self.items: list[bytes] = []
        self.limit = 0
        self.intake, self.flow = Intake.LOOK, Flow.MOVING
        #: Sends these items; another outbox while the queue is full.
        self.outbox = self.home
        #: How many items are no longer here.
        self.number_sent = 0
        self._room = 0.0
        self._bytes = 0  # of the items that are not small
        self._failure: PressureError | None = None
        self._failed: list[bytes] = []

    def _go(self, event: Event) -> None:
        self.flow = _AFTER.get((self.flow, event), self.flow)
        self.intake = _AFTER.get((self.intake, event), self.intake)
        self._set_limit()

    def _set_limit(self) -> None:
        # What waits here has its place in the queue already.
        is_open = self.intake is Intake.OPEN
        self.limit = int(min(self._size, self._room)) if is_open else 0

    @property
    def number_put(self) -> int:
        """How many items there ever were."""
        return self.number_sent + len(self.items)

    @property
    def was_used(self) -> bool:
        """Whether anything was ever put here."""
        return bool(self.number_sent or self.items)

    @property
    def is_stuck(self) -> bool:
        """Whether the queue has no space for the next item."""
        return self.flow is Flow.STUCK

    @property
    def is_off(self) -> bool:
        """Whether puts go to the broker at once."""
        return self.intake is Intake.OFF

    @property
    def has_failed(self) -> bool:
        """Whether there is an error of which no call was told."""
        return self.flow is Flow.FAILED

    # Putting

    def looked(self, space: float) -> None:
        """Note how many items the queue has space for."""
        self._room = space
        self._go(Event.LOOKED)

    def forget_space(self) -> None:
        """Have the next put look: other clients put and got, or the bound was changed."""
        self._go(Event.FORGOT)

    def may_add(self, size: int) -> bool:
        """Whether an item of so many bytes may wait here; then it is counted."""
        if size < SMALL:
            return True
        if self._bytes and self._bytes + size > MOST_BYTES:
            return False
        self._bytes += size
        return True

    def is_crowded(self, size: int) -> bool:
        """Whether an item of so many bytes must wait until others were sent. So it is not where the
        put has to look first, or where only the queue's space is missing."""
        if self.limit == 0:
            return False
        if self.limit == self._size <= len(self.items):
            return True
        return size >= SMALL and bool(self._bytes) and self._bytes + size > MOST_BYTES

    @property
    def has_room(self) -> bool:
        """Whether one more item may wait here."""
        return len(self.items) < self.limit

    @property
    def may_have_room(self) -> bool:
        """Whether a put may wait for room here, and not for the queue's space."""
        return self.limit > 0 and (self.limit == self._size or self.has_room)

    def turn_off(self) -> None:
        """Send each put to the broker at once from now on."""
        self._go(Event.TURNED_OFF)

    # Sending

    def sent(self, items: list[bytes], number: int) -> None:
        """Note that the broker has the first of these ``items``."""
        if items is not self.items:
            return  # they were discarded meanwhile
        self._room -= number
        if self._bytes:
            self._bytes -= sum(len(item) for item in items[:number] if len(item) >= SMALL)
        self.number_sent += number
        if self.flow is Flow.STUCK:
            self._go(Event.SENT)
        self._set_limit()
        del items[:number]
        if not items:
            self._bytes = 0  # a put may have been interrupted after it counted its item

    def note_waiting(self, waits: bool) -> None:
        """Note that the next item waits for space in the queue, or does so no longer."""
        self._go(Event.FULL if waits else Event.SENT)

    def fail(self, items: list[bytes], error: Exception) -> bool:
        """Send none of these ``items``: the next call raises the error. False if they were
        discarded meanwhile. An item that a thread adds at this moment is sent in its turn."""
        if items is not self.items:
            return False
        if not isinstance(error, PressureError):
            raised, error = error, PressureError(f"queue {self.queue!r}: {error!r}")
            error.__cause__ = raised
        self._failure = self._failure or error
        self._go(Event.REFUSED)  # from here on a put takes another way, but some are under way
        number = len(items)
        self._failed += items[:number]
        self.number_sent += number
        del items[:number]
        self._bytes = 0
        return True

    def take_failure(self) -> tuple[PressureError | None, list[bytes]]:
        """The error of which no call was told, and the items that were not sent, once."""
        failure, failed = self._failure, self._failed
        self._failure, self._failed = None, []
        self._go(Event.TOLD)
        return failure, failed

    def keeps_back(self, queue: str) -> bool:
        """Tell whether no item of ``queue`` may count as done before the error was raised. Its own
        shutdown with ``immediate`` would have dropped the items, had the broker had them."""
        failure = self._failure
        return self.queue != queue or not (isinstance(failure, ShutDown) and failure.immediate)

    def discard(self) -> None:
        """Drop the items, and an error of which no call was told."""
        self.number_sent += len(self.items)
        self.items, self._bytes = [], 0
        self.take_failure()

    # In words

    def full(self) -> Full:
        """The error of a put that finds the queue full."""
        return Full(
            f"queue {self.queue!r} is full, and {len(self.items)} items of this handle wait here "
            "to be sent"
        )

    def left_behind(self, why: str | None = None) -> str:
        """Word the message of an ending process: ``why`` the items were not sent, or the error."""
        number = len(self._failed) if why is None else len(self.items)
        return (
            f"{number} items that were put on queue {self.queue!r} were not sent, or it is not "
            f"known: {self._failure if why is None else why}"
        )


class Run:
    """Items of one handle that were put one after the other, with none of another in between."""

    __slots__ = ("begun", "end", "owner", "pending")

    def __init__(self, pending: Pending, owner: Any) -> None:
        self.pending = pending
        #: What sends them: kept alive while there is something to send.
        self.owner = owner
        #: The number of the item behind the last; the last run has no end yet.
        self.end = math.inf
        #: The call that sends its first item, if that was made before its turn.
        self.begun: Any = None

    @property
    def is_sent(self) -> bool:
        """Whether there is nothing to send of it at present."""
        there = min(self.end, self.pending.number_put)
        return self.begun is None and self.pending.number_sent >= there

    def next_batch(self) -> list[bytes]:
        """The next items of it that one request can have."""
        batch = list(next_batch(self.pending.items, 0, len))
        return batch[: int(min(self.end - self.pending.number_sent, len(batch)))]


class Outbox:
    """The order of the puts to one broker, over all handles of a process or of an event loop.

    A queue that is full has an outbox of its own until it has taken all, so that the items of other
    queues do not wait too.
    """

    def __init__(self, is_apart: bool = False) -> None:
        self.is_apart = is_apart
        self.reset()

    def reset(self) -> None:
        """Begin: nothing is to be sent."""
        self._runs: deque[Run] = deque()
        #: The handle whose next item needs only be appended to be sent in its turn.
        self.last: Pending | None = None

    def add_run(self, pending: Pending, owner: Any) -> Run:
        """Send the items of a handle after all that was put before."""
        run = Run(pending, owner)
        self._runs += (run,)
        # An item that is added to the handles of earlier runs belongs to a run behind this one.
        place = len(self._runs) - 1
        while self._runs[place] is not run:  # a signal handler came in between
            place -= 1
        while place > 0 and self._runs[place - 1].end == math.inf:
            place -= 1
            before = self._runs[place]
            before.end = before.pending.number_put
        return run

    def is_first(self, run: Run) -> bool:
        """Whether nothing is to be sent before a run."""
        return self._runs[0] is run

    def next_run(self) -> Run | None:
        """The run whose items are sent next; runs that are over leave."""
        while self._runs:
            run = self._runs[0]
            if not self._is_over(run):
                return run
            if len(self._runs) == 1:
                return None
            del self._runs[0]
        return None

    def _is_over(self, run: Run) -> bool:
        return run.is_sent or (run.pending.outbox is not self and run.begun is None)

    @property
    def has_more(self) -> bool:
        """Whether anything is to be sent."""
        return len(self._runs) > 1 or any(not self._is_over(run) for run in self._runs)

    def rest(self) -> bool:
        """End the last run, if all is sent: the next put begins one. Whether all is sent."""
        if self.has_more:
            return False
        last, self.last = self.last, None
        # The next put begins a run.
        if self.has_more:
            self.last = last
            return False
        if self.is_apart:
            for run in self._runs:
                run.pending.outbox = run.pending.home
        self._runs.clear()
        return True

    def set_apart(self, pending: Pending, outbox: Outbox) -> None:
        """Have another outbox send the items of a handle whose queue is full."""
        pending.outbox = outbox
        if self.last is pending:
            self.last = None

    @property
    def owners(self) -> list[Any]:
        """List the owners of the runs, in order, each once."""
        return list(dict.fromkeys(run.owner for run in self._runs))
