"""The space of a queue with a bound, as long as this process alone puts into it: it is reserved, so
what is put here has its place in the queue before it is sent."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING

from .. import interrupts, lifecycle
from ..drivers import drive, ending, noting
from ..effects import AnyOperation, Operation
from ..engines.contract.items import Added, reserve_space
from ..engines.contract.session import ONE_TRY, Engine, Options
from ..exceptions import Full, PressureError
from ..identity.client import writer
from ..operations.control import FIFO
from ..operations.items import ItemOperations
from . import sender
from .full import run_after_wait
from .pace import Alone, Gaps

if TYPE_CHECKING:
    from .handle import BufferedHandle

#: Seconds after its last use that space is for others again.
KEPT = 0.02
#: Seconds until space that could not be released is tried again.
RETRY = 0.5
#: Seconds between two puts: one that comes later is not worth a reservation.
_WINDOW = 0.01


class Space:
    """What is reserved of one queue, for all handles of this process.

    The broker says how much space there is, and as nobody else puts meanwhile, it only grows. There
    is a permit for each item that may still be accepted: who takes one away adds its item to a
    buffer. The broker counts with what it has; so it hears of a writer's items only from the
    sender, one batch after the other, and from a put that begins a reservation, when nothing is
    unsent. It is told when the space is for others again: soon after the last put; or at once when
    somebody waits for it.

    All but :meth:`end` is done with ``lock``.
    """

    def __init__(self, engine: Engine, queue: str) -> None:
        self.engine = engine
        self.queue = queue
        self._home = sender.of(engine)
        self._operations = ItemOperations(queue, FIFO)
        self._buffers: weakref.WeakSet[sender.Buffer] = weakref.WeakSet()
        self.reset()

    def reset(self) -> None:
        """Nothing was ever reserved: a new one, or that of a forked child."""
        self.lock = self._home.lock
        self._writer = ""
        #: The number of the reservation that was begun last.
        self.period = 0
        #: For each item that may be accepted one; and until when, on the monotonic clock.
        self.permits: list[None] = []
        self.until = -math.inf
        #: When something was put last.
        self.last = -math.inf
        self._gaps = Gaps()
        self._noted = self.last  # of which put the gap behind it is noted
        self._is_held = False  # the broker has reserved what is known here
        self._may_be_held = False  # or something; it is to be released
        self._ends = False  # somebody waits for that
        #: A put is under way that may reserve some.
        self.begins = False
        self._known = 0  # so much space, when it said so
        self.was_full = False  # or there was none
        #: All that was reserved is used: there may be more soon.
        self.ran_out = False
        self._due = math.inf  # when it is to be released
        self._lease_ends = -math.inf  # when the broker releases it by itself
        self._alone = Alone()
        self._met = 0  # how often in a row others put too
        #: The threads that put directly, in the order in which they came: one does so at a time.
        self.line: list[int] = []
        self.changed = interrupts.Signs()

    def add(self, buffer: sender.Buffer) -> None:
        """From now on a buffer's items have their places here."""
        self._buffers.add(buffer)

    @property
    def expects_one(self) -> bool:
        """Whether there was no space, and then for one item: so will be the next time."""
        return self.ran_out and self._known <= 1

    @property
    def is_held(self) -> bool:
        """Whether the broker has reserved space."""
        return self._is_held

    # Putting

    def begin(self) -> str | None:
        """The writer of a put that is to begin a reservation; nobody, if none is worth it. None
        while something is to be sent, whose place must be known before."""
        if self._ends:
            self.end()
        now = monotonic()
        with self.lock:
            if self._has_unsent:
                return None
            self._let_go()
            if self.last > self._noted:  # else this is another try of the same put
                self._noted = self.last
                self._gaps.note(now - self.last)
            is_quick = self._gaps.mean < _WINDOW and self._alone.is_likely(now)
            if not (is_quick or self._may_be_held) or lifecycle.is_ending():
                return ""
            self._writer = self._writer or writer()
            self.period += 1
            self._may_be_held = self.begins = True
            self._home.spaces.add(self)
            return self._writer

    def waiting(self, handle: BufferedHandle) -> bool:
        """Wait for space, for a moment and without a place in line, and reserve it; whether there
        is any. After :meth:`begin`."""
        with self.lock:
            self.ran_out = False
        asked = monotonic()
        request = reserve_space(self._writer, self.period)
        reserving = handle._operations.reserve_space(self._writer, self.period)
        try:
            added = run_after_wait(handle, reserving, request)
        except BaseException:
            self._note_lost(handle._options.lease)
            raise
        self._note_first(added, asked, handle._options.lease)
        return added.space > 0

    def putting(
        self, handle: BufferedHandle, name: str, item: bytes, block: bool, timeout: float | None
    ) -> Operation[None]:
        """Put an item for a writer, and note what is reserved then."""
        asked = monotonic()

        def note(waits: bool) -> None:
            nonlocal asked
            asked = monotonic()

        try:
            steps = handle._operations.put_for(name, self.period, item, block, timeout)
            added = yield from noting(steps, note)
        except Full:
            self._may_be_held = self.begins = False
            self.was_full = True
            raise
        except BaseException:
            self._note_lost(handle._options.lease)
            raise
        self._note_first(added, asked, handle._options.lease)

    def sending(
        self, handle: BufferedHandle, batch: Sequence[bytes], waits: bool
    ) -> Operation[Added]:
        """Put a batch that was accepted. What ``waits`` for space has lost its place: its put was
        slower than the lease, or the broker lost what it knew."""
        with self.lock:
            name = self._writer if self._is_held and not waits else ""
            period = self.period
        asked = monotonic()
        try:
            added = yield from handle._operations.put_batch(batch, waits, name, period)
        except BaseException:
            self._note_lost(handle._options.lease)
            raise
        if name:
            self._note(added, asked, handle._options.lease)
        return added

    def _note_first(self, added: Added, asked: float, lease: int) -> None:
        with self.lock:
            self._may_be_held = self._is_held = added.space > 0
            self.begins, self.was_full = False, not (added.space or added.is_wanted)
            if not added.space:
                self._note_others(added.is_wanted)
                return
            self._met = 0
            self.ran_out = False
            self._known = added.space
            self._keep(added, asked, lease)
            if not self._ends:
                self.permits += [None] * added.space
        self._home.attend()

    def _note(self, added: Added, asked: float, lease: int) -> None:
        with self.lock:
            if not self._is_held:
                return
            if not added.space:
                self._let_go()
                self._may_be_held, self.was_full, self.ran_out = False, True, True
                return
            freed = added.space - (self._known - added.number)
            self._known = added.space
            self._keep(added, asked, lease)
            if freed < 0:  # items went back to the queue, or the bound was changed
                del self.permits[freed:]
            elif not self._ends:
                self.permits += [None] * freed

    def _keep(self, added: Added, asked: float, lease: int) -> None:
        self._due = monotonic() + KEPT
        self.until = asked + lease / 3000
        self._lease_ends = self._due + lease / 1000
        if added.is_wanted:
            self.share()

    def _note_others(self, are_there: bool) -> None:
        """Another one was the last to put, or puts now. One who only comes behind another one, and
        then is alone, is so at its next put."""
        self._met = self._met + 1 if are_there else 0
        if self._met > 1:
            self._met = 0
            self._alone.share()

    def _note_lost(self, lease: int) -> None:
        """It is not known what the broker has done."""
        with self.lock:
            self._lease_ends = monotonic() + lease / 1000
            self._let_go()
            self.begins = False
            self._due = monotonic()
        self._home.attend()

    def _let_go(self) -> None:
        """Nothing is accepted any more."""
        self.permits.clear()
        self._is_held = self._ends = False

    @property
    def _has_unsent(self) -> bool:
        """Whether there is something to send that has its place here. What is sent by a sender of
        its own has lost that."""
        return any(
            buffer.number_put > buffer.number_sent and buffer.sender is self._home
            for buffer in self._buffers
        )

    def share(self) -> None:
        """For a while nothing is reserved."""
        with self.lock:
            if self._is_held and not self._ends:
                self._ends = True
                self._alone.share()
                self.permits.clear()

    # Releasing

    def see_to(self) -> float | None:
        """Release what was not used for some time, or is wanted, unless there is something to send;
        what fails is tried again. Returns in how many seconds to look again, None when there is
        nothing to look at. For the sender's thread."""
        with self.lock:
            if not self._may_be_held:
                self._home.spaces.discard(self)
                return None
            if self.begins:
                return None
            left = self._due - monotonic()
            if not self._ends and left > 0:
                return min(left, RETRY)  # another thread may release it before
        self.end()
        return max(self._due - monotonic(), 0.0) if self._may_be_held else 0.0

    def end(self, options: Options | None = None) -> None:
        """Release what is reserved, unless there is something to send; what fails is tried
        again."""
        with self.lock:
            if not self._may_be_held or self.begins:
                return
            self._due = monotonic() + KEPT
            if self._has_unsent:
                return
            self._let_go()
            period = self.period
        try:
            self._run(self._operations.release_space(self._writer, period), options)
        except PressureError:
            self._due = monotonic() + RETRY
            if self._due < self._lease_ends:
                return
        with self.lock:
            if self.period == period:
                self._may_be_held = False

    def _run(self, operation: AnyOperation[None], options: Options | None) -> None:
        binding = self.engine.bind(self.queue, FIFO, options or Options())
        drive(ending(operation, ONE_TRY), binding.session())

    # Waiting

    def is_mine(self) -> bool:
        """Whether the calling thread puts directly already: this is a signal handler then."""
        return get_ident() in self.line

    def is_next(self) -> bool:
        """Whether it is the calling thread's turn to put directly."""
        return self.line[0] == get_ident()

    def wait_in_line(self, end: float | None) -> bool:
        """Wait for that, no longer than ``end`` on the monotonic clock; whether it is."""
        while not self.is_next():
            # Who leaves the line gives a sign, unless it is interrupted then.
            look = monotonic() + RETRY
            if end is not None and end < look:
                return self.changed.wait_until(self.is_next, end)
            self.changed.wait_until(self.is_next, look)
        return True


_all: weakref.WeakKeyDictionary[Engine, weakref.WeakValueDictionary[str, Space]] = (
    weakref.WeakKeyDictionary()
)


def of(engine: Engine, queue: str) -> Space:
    """That of a queue."""
    spaces = _all.setdefault(engine, weakref.WeakValueDictionary())
    found = spaces.get(queue)
    return found if found is not None else spaces.setdefault(queue, Space(engine, queue))


def _after_fork_in_child() -> None:
    for spaces in list(_all.values()):
        for space in list(spaces.values()):
            space.reset()


lifecycle.register("forget space", _after_fork_in_child)
