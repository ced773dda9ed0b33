"""How a handle of threads puts into a buffer, which a thread sends."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import events, interrupts, lifecycle
from ..background import at_exit
from ..deadlines import deadline, seconds_left
from ..drivers import drive, noting
from ..effects import Ask
from ..encoding.large import THRESHOLD, Large
from ..encoding.unsigned_items import Private
from ..engines import registry
from ..engines.contract.items import Added
from ..engines.contract.session import Options, Session
from ..exceptions import BrokerUnavailable, PressureError
from ..handles import unsent
from ..identity.processes import is_pool_worker
from . import sender
from .direct import DirectGet, DirectPut, buffers
from .outbox import SMALL, Pending, Run

if TYPE_CHECKING:
    from ..handles.objects import ObjectAttachment

T = TypeVar("T")

#: Seconds between two questions whether the broker answers, of a process that waits for it because
#: it ends, or because another process begins.
_LOOK = 0.5


class Begun(NamedTuple):
    """The first of some items, which may have been sent already."""

    items: list[bytes]
    session: Session
    putting: Ask[Added]


class BufferedPut(DirectPut):
    """Appends items to a :class:`~.outbox.Pending`; a :class:`~.sender.Sender` sends them.

    A put that meets nothing unusual is as short as it can be: all that is unusual makes the limit
    of the pending items too small for the next put, which then looks for the cause.
    """

    def __init__(self, queue: ObjectAttachment, gets: DirectGet) -> None:
        super().__init__(gets)
        self._is_stated = queue.buffering.is_stated  # else processes decide by themselves
        self._owner = weakref.ref(queue)
        self.engine = registry.engine(queue.address)
        self._home = sender.of(self.engine)
        self.pending = Pending(queue.name, queue.buffering.puts, self._home)
        self._is_awaited = True  # by the end of the handle and of the process
        queue.before_get = self.before_get
        self._begin()
        sender.puts.add(self)
        buffers.add(self)

    def reset(self) -> None:
        self.pending.reset()
        self._begin()

    def _begin(self) -> None:
        """Begin in a process that has put nothing."""
        self._encode: Callable[[Any], bytes | Large]
        # A queue that has a buffer unasked has no bound; if it got one since, the sender will see.
        self._asks = self._is_stated
        self._lock = self._home.lock
        self._changed = interrupts.Signs()
        if lifecycle.is_ending():
            self.pending.turn_off()

    def __len__(self) -> int:
        return len(self.pending.items)

    @property
    def was_used(self) -> bool:
        return self.pending.was_used

    # Putting

    def put(self, queue: ObjectAttachment, item: Any, block: bool, timeout: float | None) -> None:
        pending = self.pending
        items = pending.items
        if len(items) < pending.limit and timeout is None and not events.listeners:
            try:
                encoded = self._encode(item)
            except Exception as error:
                if interrupts.is_from_outside(error):
                    raise
                encoded = queue.codec.encode(item)  # says what is wrong
            if type(encoded) is bytes:
                size = len(encoded)
                if pending.outbox.last is not pending and (
                    size < THRESHOLD and self._puts_here(queue, encoded)
                ):
                    return
                if size < SMALL or (size < THRESHOLD and self._may_add(size)):
                    items.append(encoded)
                    if pending.outbox.last is not pending:
                        pending.outbox.line_up(self, queue)
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
        """Whether an item was added at once to a queue in the memory of this host."""
        pending = self.pending
        if pending.items or not pending.outbox.puts_here(queue, item):
            return False
        with self._lock:
            pending.number_sent += 1
        return True

    def _may_add(self, size: int) -> bool:
        with self._lock:
            return self.pending.may_add(size)

    def _put_large(
        self, queue: ObjectAttachment, item: Large, block: bool, end: float | None
    ) -> None:
        """Send an item at once, after all that was put before it: its content is the caller's
        memory, so it cannot wait here."""
        self.make_way(queue, block, end)
        self.run_put(queue, queue.operations.put(item, block, seconds_left(end)))
        self._forget_space()

    def _put_with_care(
        self, queue: ObjectAttachment, item: bytes, block: bool, end: float | None
    ) -> None:
        pending = self.pending
        while True:
            queue.check_open()
            self.raise_failure(queue)
            if pending.limit and self._puts_here(queue, item):
                return
            has_room = pending.has_room and self._may_add(len(item))
            if has_room or (self._home.is_inside and not pending.is_off):
                pending.items.append(item)
                pending.outbox.line_up(self, queue)
                return
            if pending.may_have_room:
                self._wait_for_room(len(item), block, end)
                continue
            self._settle_in_time(block, end)
            if pending.is_off or not self._look(queue):
                self._put_directly(queue, item, block, end)
                return

    def _put_directly(
        self, queue: ObjectAttachment, item: bytes, block: bool, end: float | None
    ) -> None:
        # When modules are taken apart, only what the broker needs is still there.
        if lifecycle.is_ending() or not queue.put_in_memory(item):
            self.run_put(queue, queue.operations.put(item, block, seconds_left(end)))
        self._forget_space()  # other clients may have put and got meanwhile

    def make_way(self, queue: ObjectAttachment, block: bool, end: float | None) -> None:
        self._settle_in_time(block, end)
        self.raise_failure(queue)

    def _settle_in_time(self, block: bool, end: float | None) -> None:
        """Wait until the broker has what was put here; if the queue is full, no longer than a put
        may wait."""
        if not (self.settle() or (block and self.settle(True, end))):
            raise self.pending.full()

    def _wait_for_room(self, size: int, block: bool, end: float | None) -> None:
        """Wait until an item of that size may be added, or there is something else to do. No time
        limit is for that, as for the broker; but it is when the queue is full."""
        pending = self.pending

        def has_room() -> bool:
            return not pending.is_crowded(size)

        self._see_to()
        while not has_room():
            self._changed.wait_until(lambda: has_room() or pending.is_stuck)
            if pending.is_stuck and not block:
                raise pending.full()
            if not self._changed.wait_until(lambda: has_room() or not pending.is_stuck, end):
                raise pending.full()

    def _look(self, queue: ObjectAttachment) -> bool:
        """See how much space the queue has; whether there is any for the buffer to use."""
        if not self._is_stated and is_pool_worker():
            self.turn_off()  # else it has results that are never sent
            return False
        self._encode = queue.codec.quick
        self._home.prepare()
        if self._asks or queue.eof:
            space = self._space(queue)
        else:
            queue.attached()
            space = math.inf
        self._asks = True
        with self._lock:
            self.pending.looked(space)
        return space > 0

    def _space(self, queue: ObjectAttachment) -> float:
        """How many items there is space for. Prefetched items are no longer queued: they go back
        before the queue is found full."""
        operations, gets = queue.operations, self._gets
        if queue.eof:
            queue.run_at_once(operations.register(queue.here, queue.token))
        stats = queue.run_at_once(operations.stats())
        if len(gets) and 0 < stats.maxsize <= stats.length + len(gets):
            gets.give_back(queue, gets.patience)
            stats = queue.run_at_once(operations.stats())
        if stats.closed:
            return 0  # so a put at the broker says it
        if not stats.maxsize:
            return math.inf
        return max(stats.maxsize - stats.length - len(gets), 0)

    def _forget_space(self) -> None:
        with self._lock:
            self.pending.forget_space()

    # Sending

    def _see_to(self) -> None:
        """Line up the items of a put that was interrupted before it did so."""
        pending, owner = self.pending, self._owner()
        if pending.items and pending.outbox.last is not pending and owner is not None:
            pending.outbox.line_up(self, owner)

    def begin(self, queue: ObjectAttachment) -> Begun | None:
        """Prepare to send the first item, if there is one. Does no I/O."""
        items = self.pending.items
        if not items:
            return None  # they were discarded
        return Begun(items, queue.session(), queue.operations.put_first(items[0]))

    def send(self, run: Run, queue: ObjectAttachment, waits: bool) -> bool:
        """Send the item that a run has begun with, else a batch of it, or as much of that as there
        is space for. False if the queue is full, unless this ``waits`` for space."""
        pending, begun, run.begun = self.pending, run.begun, None
        items = pending.items
        try:
            if begun is not None:
                items = begun.items
                added: Added = queue.run_on(begun.session, begun.putting)
            else:
                sending = queue.operations.put_batch(run.next_batch(), waits)
                added = queue.run_at_once(noting(sending, self._note_waiting))
        except Exception as error:
            self._fail(items, error, queue)
            return True
        if added.number:
            with self._lock:
                pending.sent(items, added.number)
                self._changed.give()
        return added.number > 0

    def _note_waiting(self, waits: bool) -> None:
        """Every waiting thread may know that the queue is full."""
        with self._lock:
            self.pending.note_waiting(waits)
            self._changed.give()

    def _fail(self, items: list[bytes], error: Exception, queue: ObjectAttachment) -> None:
        with self._lock:
            if self.pending.fail(items, error):
                unsent.failed[self] = queue
                self._changed.give()

    # Waiting, and the end

    def raise_failure(self, queue: ObjectAttachment) -> None:
        """Raise what went wrong since the last call; ``rest`` has the items that were not sent."""
        if not self.pending.has_failed:
            return
        with self._lock:
            failure, failed = self.pending.take_failure()
            unsent.failed.pop(self, None)
        if failure is not None:
            failure.rest = [self._decoded(item, queue) for item in failed]
            raise failure

    def keeps_back(self, queue: str) -> bool:
        return self.pending.keeps_back(queue)

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
        space for the next item. Returns whether the broker has all."""
        pending = self.pending
        if self._home.is_inside:
            return not pending.items
        self._see_to()
        with self._lock:
            until = pending.number_put

        def is_over() -> bool:
            return pending.number_sent >= until or (pending.is_stuck and not block)

        self._changed.wait_until(is_over, end)
        return pending.number_sent >= until

    def settle_for_others(self, end: float) -> bool:
        """Wait for the same until ``end``, on the monotonic clock, and only while the broker
        answers; returns whether it does."""
        while not self.settle(end=min(time.monotonic() + _LOOK, end)):
            queue = self._owner()
            if self.pending.is_stuck or queue is None or time.monotonic() >= end:
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
            self.pending.turn_off()
            self._changed.give()

    def before_get(self, end: float | None) -> None:
        """Wait until this process can get what it put, as far as there is space."""
        if self.pending.items:
            self._home.at_once.calm()
            self.settle(end=end)
        else:
            self._home.at_once.note_get()

    def before_bound(self, queue: ObjectAttachment) -> None:
        self.settle()
        self.raise_failure(queue)

    def after_bound(self) -> None:
        self._forget_space()

    def count(self, ask: Callable[[], T]) -> tuple[T, int]:
        with self._lock:
            put = self.pending.number_put
        found = ask()
        # What was put meanwhile may be at the broker, and not yet known to be.
        return found, max(put - self.pending.number_sent, 0)

    def cancel_join(self) -> None:
        self._is_awaited = False

    def close(self, queue: ObjectAttachment) -> None:
        if self._is_awaited:
            self.flush(queue)

    def before_shutdown(self, queue: ObjectAttachment, immediate: bool) -> None:
        if not immediate:
            self.flush(queue)
        self.turn_off()
        if immediate:
            self.discard()

    def discard(self) -> None:
        with self._lock:
            self.pending.discard()
            unsent.failed.pop(self, None)
            self._changed.give()

    def leave(self, look: float) -> None:
        """The process ends: send whatever is put from now on at once.

        A queue that is full is waited for. A broker that does not answer is not: it is asked from
        the moment ``look`` on.
        """
        self.turn_off()
        if not self._is_awaited:
            return
        while not self.settle(block=True, end=look):
            look = time.monotonic() + _LOOK
            queue = self._owner()
            if queue is not None and not self._answers(queue):
                why = f"the broker at {queue.address.url} does not answer"
                at_exit.tell(self.pending.left_behind(why))
                return
        if self.pending.has_failed:
            at_exit.tell(self.pending.left_behind())

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
