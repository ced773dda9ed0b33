"""What one handle put and is not yet at the broker."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .. import events, interrupts, lifecycle
from ..background import at_exit
from ..deadlines import deadline, seconds_left
from ..drivers import drive, noting
from ..encoding.large import THRESHOLD, Large
from ..encoding.unsigned_items import Private
from ..engines import registry
from ..engines.contract.session import Options
from ..exceptions import BrokerUnavailable, Full, PressureError
from ..handles import unsent
from ..identity.processes import is_pool_worker
from ..operations.batches import next_batch
from . import sender
from .direct import DirectGet, DirectPut, buffers
from .sender import Begun, Run

if TYPE_CHECKING:
    from ..handles.objects import ObjectAttachment

T = TypeVar("T")

#: Seconds between two questions whether the broker answers, of a process that waits for it because
#: it ends, or because another process begins.
_LOOK = 0.5
#: Items of so many bytes are counted, and so many bytes of them may wait.
_SMALL = 1 << 13
_MOST_BYTES = 1 << 24


class Outgoing(DirectPut):
    """Up to ``size`` encoded items, in the order in which they were put; and of those that are not
    small 16 MB, or one.

    They leave the list when the broker has them. ``_room`` is how many items the queue had space
    for when it was last looked at, less those that were put since; None when it has to be looked
    at. So a put on a bounded queue waits, or is refused, as it would without the buffer.

    All that is unusual makes ``_limit`` too small for the next put, which then looks for the
    cause: a put that meets nothing unusual is as short as it can be.
    """

    sender: sender.Sender

    def __init__(self, queue: ObjectAttachment, gets: DirectGet) -> None:
        super().__init__(gets)
        self._size = queue.buffering.puts
        self._is_stated = queue.buffering.is_stated  # else processes decide by themselves
        self._owner = weakref.ref(queue)
        queue.before_get = self.before_get
        self.queue = queue.name
        self.engine = registry.engine(queue.address)
        self._home = sender.of(self.engine)
        self.is_awaited = True  # by the end of the handle and of the process
        self.reset()
        sender.buffers.add(self)
        buffers.add(self)

    def reset(self) -> None:
        """A buffer that was never used: a new one, or that of a forked child."""
        self._items: list[bytes] = []
        self._encode: Callable[[Any], bytes | Large]
        # A queue that has a buffer unasked has no bound; if it got one since, the sender will see.
        self._asks = self._is_stated
        self._limit = 0
        self._room: float | None = None
        self._bytes = 0  # of the items that are not small
        #: How many items are no longer here.
        self.number_sent = 0
        self._lock = self._home.lock
        self._changed = interrupts.Signs()
        self._is_stuck = False  # the queue has no space for the next item
        self._is_off = lifecycle.is_ending()  # puts go to the broker at once
        self.sender = self._home
        self.failure: PressureError | None = None  # of which nobody was told
        self._failed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._items)

    @property
    def was_used(self) -> bool:
        return bool(self.number_sent or self._items)

    # Putting

    def put(self, queue: ObjectAttachment, item: Any, block: bool, timeout: float | None) -> None:
        items = self._items
        if len(items) < self._limit and timeout is None and not events.listeners:
            try:
                encoded = self._encode(item)
            except Exception as error:
                if interrupts.is_from_outside(error):
                    raise
                encoded = queue.codec.encode(item)  # says what is wrong
            if type(encoded) is bytes:
                size, is_last = len(encoded), self.sender.last is self
                if not is_last and size < THRESHOLD and self._puts_here(queue, encoded):
                    return
                if size < _SMALL or (size < THRESHOLD and self._may_add(size)):
                    items.append(encoded)
                    if self.sender.last is not self:
                        self.sender.line_up(self, queue)
                    return
                if size >= THRESHOLD:
                    del encoded  # not two copies at a time
                    encoded = queue.codec.encode(item)
        else:
            queue.check_open()
            encoded = queue.codec.encode(item, events.created(queue.operations.destination))
        end = deadline(block, timeout)
        if isinstance(encoded, Large):
            self._put_large(queue, encoded, block, end)
        else:
            self._put_with_care(queue, encoded, block, end)

    def _puts_here(self, queue: ObjectAttachment, item: bytes) -> bool:
        """Whether an item was added to the queue at once."""
        if self._items or self._is_off or self.failure is not None:
            return False
        if not self.sender.puts_here(queue, item):
            return False
        with self._lock:
            self.number_sent += 1
        return True

    def _put_large(
        self, queue: ObjectAttachment, item: Large, block: bool, end: float | None
    ) -> None:
        """Its content is the caller's memory, so it cannot wait here: it is sent at once, after all
        that was put before it."""
        self.make_way(queue, block, end)
        self.run_put(queue, queue.operations.put(item, block, seconds_left(end)))
        self._forget_room()

    def _put_with_care(
        self, queue: ObjectAttachment, item: bytes, block: bool, end: float | None
    ) -> None:
        while True:
            queue.check_open()
            self.raise_failure(queue)
            if self._limit and self._puts_here(queue, item):
                return
            has_room = len(self._items) < self._limit and self._may_add(len(item))
            if has_room or (self._home.is_inside and not self._is_off):
                self._items.append(item)
                self.sender.line_up(self, queue)
                return
            if self._limit and (self._limit == self._size or len(self._items) < self._limit):
                self._wait_for_room(len(item), block, end)
                continue
            self._settle_in_time(block, end)
            if self._is_off or not self._look(queue):
                self.run_put(queue, queue.operations.put(item, block, seconds_left(end)))
                self._forget_room()  # who knows what has come and gone meanwhile
                return

    def make_way(self, queue: ObjectAttachment, block: bool, end: float | None) -> None:
        self._settle_in_time(block, end)
        self.raise_failure(queue)

    def _settle_in_time(self, block: bool, end: float | None) -> None:
        """Wait until the broker has what was put here; if the queue is full, no longer than a put
        may wait."""
        if not (self.settle() or (block and self.settle(True, end))):
            raise self._full()

    def _may_add(self, size: int) -> bool:
        """Whether an item of that size may wait here; then it is counted."""
        if size < _SMALL:
            return True
        with self._lock:
            if self._bytes and self._bytes + size > _MOST_BYTES:
                return False
            self._bytes += size
            return True

    def _wait_for_room(self, size: int, block: bool, end: float | None) -> None:
        """Wait until an item of that size may be added, or there is something else to do. As for
        the broker, no time limit is for that; but it is when the queue is full."""
        most = _MOST_BYTES - size if size >= _SMALL else math.inf

        def has_room() -> bool:
            return not len(self._items) >= self._limit == self._size and (
                not self._limit or not self._bytes or self._bytes <= most
            )

        self._see_to()
        while not has_room():
            self._changed.wait_until(lambda: has_room() or self._is_stuck)
            if self._is_stuck and not block:
                raise self._full()
            if not self._changed.wait_until(lambda: has_room() or not self._is_stuck, end):
                raise self._full()

    def _full(self) -> Full:
        return Full(
            f"queue {self.queue!r} is full, and {len(self._items)} items of this handle wait here "
            "to be sent"
        )

    def _look(self, queue: ObjectAttachment) -> bool:
        """See how much space the queue has; whether there is any for the buffer to use."""
        if not self._is_stated and is_pool_worker():
            self.turn_off()  # else it has results that are never sent
            return False
        self._encode = queue.codec.quick
        self.sender.prepare()
        if self._asks or queue.eof:
            space = self._space(queue)
        else:
            queue.attached()
            space = math.inf
        self._asks = True
        with self._lock:
            self._room = space
            self._set_limit()
        return space > 0

    def _space(self, queue: ObjectAttachment) -> float:
        """How many items there is space for. What a handle fetched ahead is no longer queued: so it
        goes back before the queue is found full."""
        operations, gets = queue.operations, self._gets
        if queue.eof:
            queue.run_at_once(operations.register(queue.here, queue.token))
        gets.before_put(queue)
        stats = queue.run_at_once(operations.stats())
        if len(gets) and 0 < stats.maxsize <= stats.length + len(gets):
            gets.give_back(queue, gets.patience)
            stats = queue.run_at_once(operations.stats())
        if stats.closed:
            return 0  # so a put at the broker says it
        if not stats.maxsize:
            return math.inf
        return max(stats.maxsize - stats.length - len(gets), 0)

    def _set_limit(self) -> None:
        # What is in the buffer has its place in the queue already.
        self._limit = 0 if self._room is None else int(min(self._size, self._room))

    def _forget_room(self) -> None:
        with self._lock:
            self._room = None
            self._set_limit()

    # Sending

    @property
    def number_put(self) -> int:
        """How many items there ever were."""
        with self._lock:
            return self.number_sent + len(self._items)

    def _see_to(self) -> None:
        """See to it that what one put is sent who was interrupted then."""
        owner = self._owner()
        if self._items and self.sender.last is not self and owner is not None:
            self.sender.line_up(self, owner)

    def begin(self, queue: ObjectAttachment) -> Begun | None:
        """As of :class:`~.sender.Buffer`."""
        items = self._items
        if not items:
            return None  # they were discarded
        return Begun(items, queue.session(), queue.operations.put_first(items[0]))

    def send(self, run: Run, waits: bool) -> bool:
        """As of :class:`~.sender.Buffer`."""
        items, begun, run.begun = self._items, run.begun, None
        try:
            if begun is not None:
                items = begun.items
                added = run.queue.run_on(begun.session, begun.putting)
            else:
                batch = next_batch(items, 0, len)
                if len(batch) > run.end - self.number_sent:
                    batch = batch[: int(run.end - self.number_sent)]
                sending = run.queue.operations.put_batch(batch, waits)
                added = run.queue.run_at_once(noting(sending, self._note_waiting))
        except Exception as error:
            self._fail(items, error, run.queue)
            return True
        if added.number:
            self._note_sent(items, added.number)
        return added.number > 0

    def _note_sent(self, items: list[bytes], number: int) -> None:
        with self._lock:
            if items is not self._items:
                return  # they were discarded meanwhile
            if self._room is not None:
                self._room -= number
                self._set_limit()
            if self._bytes:
                self._bytes -= sum(len(item) for item in items[:number] if len(item) >= _SMALL)
            self.number_sent += number
            self._is_stuck = False
            del items[:number]
            if not items:
                self._bytes = 0  # one that was counted may have been interrupted then
            self._changed.give()

    def _note_waiting(self, waits: bool) -> None:
        """Everybody may know that the queue is full."""
        with self._lock:
            self._is_stuck = waits
            self._changed.give()

    def _fail(self, items: list[bytes], error: Exception, queue: ObjectAttachment) -> None:
        """Nothing more is sent of what is in the buffer: the next call says so."""
        if items is not self._items:
            return
        if not isinstance(error, PressureError):
            raised, error = error, PressureError(f"queue {self.queue!r}: {error!r}")
            error.__cause__ = raised
        with self._lock:
            self._limit, self._room, self._is_stuck = 0, None, False
            self.failure = self.failure or error
            self._failed += self._items
            unsent.failed[self] = queue
            self.number_sent += len(self._items)
            self._items.clear()
            self._bytes = 0
            self._changed.give()

    # Being asked

    def raise_failure(self, queue: ObjectAttachment) -> None:
        """Raise what went wrong since the last call; ``rest`` has the items that were not sent."""
        if self.failure is None:
            return
        with self._lock:
            failure, failed = self.failure, self._failed
            self.failure, self._failed = None, []
            unsent.failed.pop(self, None)
        if failure is not None:
            failure.rest = [self._decoded(item, queue) for item in failed]
            raise failure

    @staticmethod
    def _decoded(item: bytes, queue: ObjectAttachment) -> Any:
        try:
            return queue.codec.decode(Private(item))
        except Exception as error:  # it cannot be read back: the others are not lost with it
            if interrupts.is_from_outside(error):
                raise
            return item

    def settle(self, block: bool = False, end: float | None = None) -> bool:
        """Wait until the broker has what was put here, or, unless ``block``, until the queue has no
        space for the next of them. Returns whether the broker has all."""
        if self._home.is_inside:
            return not self._items
        self._see_to()
        until = self.number_put

        def is_over() -> bool:
            return self.number_sent >= until or (self._is_stuck and not block)

        self._changed.wait_until(is_over, end)
        return self.number_sent >= until

    def settle_for_others(self, end: float) -> bool:
        """Wait for the same until ``end``, on the monotonic clock, and only while the broker
        answers; returns whether it does."""
        while not self.settle(end=min(time.monotonic() + _LOOK, end)):
            queue = self._owner()
            if self._is_stuck or queue is None or time.monotonic() >= end:
                break
            try:
                self._ask(queue, Options(reconnect=0.0, until=time.monotonic() + _LOOK))
            except BrokerUnavailable:
                return False
        return True

    def flush(self, queue: ObjectAttachment) -> None:
        self.settle(block=True)
        self.raise_failure(queue)

    def turn_off(self) -> None:
        with self._lock:
            self._is_off, self._limit, self._room = True, 0, None
            self._changed.give()

    def before_get(self, end: float | None) -> None:
        """Wait until this process can get what it put, as far as there is space."""
        self._home.calm()
        self.settle(end=end)

    def after_bound(self) -> None:
        self._forget_room()

    def before_bound(self, queue: ObjectAttachment) -> None:
        self.settle()
        self.raise_failure(queue)

    def count(self, ask: Callable[[], T]) -> tuple[T, int]:
        put = self.number_put
        found = ask()
        # What was put meanwhile may be at the broker, and not yet known to be.
        return found, max(put - self.number_sent, 0)

    def cancel_join(self) -> None:
        self.is_awaited = False

    def close(self, queue: ObjectAttachment) -> None:
        if self.is_awaited:
            self.flush(queue)

    def before_shutdown(self, queue: ObjectAttachment, immediate: bool) -> None:
        if not immediate:
            self.flush(queue)
        self.turn_off()
        if immediate:
            self.discard()

    def discard(self) -> None:
        with self._lock:
            self.number_sent += len(self._items)
            self._items, self._bytes = [], 0
            self.failure, self._failed = None, []
            unsent.failed.pop(self, None)
            self._changed.give()

    def leave(self, look: float) -> None:
        """The process ends: whatever is put from now on is sent at once.

        A queue that is full is waited for. A broker that does not answer is not: it is asked from
        the moment ``look`` on.
        """
        self.turn_off()
        if not self.is_awaited:
            return
        while not self.settle(block=True, end=look):
            look = time.monotonic() + _LOOK
            queue = self._owner()
            if queue is not None and not self._answers(queue):
                self._tell(len(self._items), f"the broker at {queue.address.url} does not answer")
                return
        if self.failure is not None:
            self._tell(len(self._failed), str(self.failure))

    def _answers(self, queue: ObjectAttachment) -> bool:
        """Whether the broker answers within what is left of the process's last seconds."""
        return at_exit.answers(self.engine, lambda options: self._ask(queue, options))

    def _ask(self, queue: ObjectAttachment, options: Options) -> None:
        """Ask the broker something; raises BrokerUnavailable if it does not answer."""
        try:
            drive(queue.operations.exists(), queue.bind(self.engine, options).session())
        except BrokerUnavailable:
            raise
        except PressureError:
            pass  # a refusal is an answer

    def _tell(self, number: int, why: str) -> None:
        at_exit.tell(
            f"{number} items that were put on queue {self.queue!r} were not sent, or it is not "
            f"known: {why}"
        )
