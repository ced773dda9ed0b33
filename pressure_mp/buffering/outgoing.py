"""What was put and is not yet at the broker: a handle's buffer, and the thread that sends it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from .. import interrupts
from ..background import at_exit
from ..deadlines import deadline, seconds_left
from ..drivers import drive, noting
from ..encoding.large import THRESHOLD, Large
from ..engines import registry
from ..engines.contract.session import Options
from ..exceptions import Full, PressureError
from ..operations.batches import next_items

if TYPE_CHECKING:
    from .handle import BufferedHandle
    from .incoming import Incoming

#: Seconds for which the thread waits for more to send before it ends.
_LINGER = 1.0
#: Seconds until an ending process first asks whether the broker answers, and then between two such
#: questions.
_FIRST_LOOK = 0.05
_LOOK = 0.5


class Outgoing:
    """Up to ``size`` encoded items, in the order in which they were put.

    They leave the list when the broker has them. ``_room`` is how many items the queue had space
    for when it was last looked at, less those that were put since; None when it has to be looked
    at. So a put on a bounded queue waits, or is refused, as it would without the buffer.

    All that is unusual makes ``_limit`` too small for the next put, which then looks for the
    cause: a put that meets nothing unusual is as short as it can be.
    """

    def __init__(self, size: int, handle: BufferedHandle, incoming: Incoming) -> None:
        self._size = size
        self._owner = weakref.ref(handle)
        self._incoming = incoming
        self._queue = handle.name
        self.is_awaited = True  # by the end of the handle and of the process
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """A buffer that was never used: a new one, or that of a forked child."""
        self._items: list[bytes] = []
        self._encode: Callable[[Any], bytes | Large]
        self._limit = 0
        self._room: float | None = None
        self._sent = 0
        self._lock = threading.RLock()
        self._changed = interrupts.Signs()
        self._is_idle = True  # nobody sends: the next put has to see to it
        self._is_stuck = False  # the queue has no space for the next item
        self._is_off = False  # puts go to the broker at once
        self._thread: threading.Thread | None = None
        self._awake: SimpleQueue[None] = SimpleQueue()
        # Kept alive as long as it has something to send.
        self._handle: BufferedHandle | None = None
        self.failure: PressureError | None = None  # of which nobody was told
        self._failed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._items)

    @property
    def was_used(self) -> bool:
        """Whether anything was ever put here."""
        return bool(self._sent or self._items)

    # Putting

    def put(self, handle: BufferedHandle, item: Any, block: bool, timeout: float | None) -> None:
        """Note an item to be sent; waits while there is no room for it, here or in the queue."""
        items = self._items
        if len(items) < self._limit and timeout is None:
            try:
                encoded = self._encode(item)
            except Exception as error:
                if interrupts.is_from_outside(error):
                    raise
                encoded = handle._codec.encode(item)  # says what is wrong
            if type(encoded) is bytes and len(encoded) < THRESHOLD:
                items.append(encoded)
                if self._is_idle:
                    self._begin(handle)
                return
            if type(encoded) is bytes:
                del encoded  # not two copies at a time
                encoded = handle._codec.encode(item)
        else:
            handle._check_open()
            encoded = handle._codec.encode(item)
        end = deadline(block, timeout)
        if isinstance(encoded, Large):
            self._put_large(handle, encoded, block, end)
        else:
            self._put_with_care(handle, encoded, block, end)

    def _put_large(
        self, handle: BufferedHandle, item: Large, block: bool, end: float | None
    ) -> None:
        """Its content is the caller's memory, so it cannot wait here: it is sent at once, after all
        that was put before it."""
        if not self.settle(block, end):
            raise self._full("the queue is full, and")
        self.raise_failure(handle)
        handle._putting(handle._operations.put(item, block, seconds_left(end)))
        self._forget_room()

    def _put_with_care(
        self, handle: BufferedHandle, item: bytes, block: bool, end: float | None
    ) -> None:
        while True:
            handle._check_open()
            self.raise_failure(handle)
            if len(self._items) < self._limit:
                self._items.append(item)
                if self._is_idle:
                    self._begin(handle)
                return
            if self._limit == self._size:
                self._wait_for_room(block, end)
            elif not self.settle(block, end):
                raise self._full("the queue is full, and")
            elif self._is_off or not self._look(handle):
                handle._putting(handle._operations.put(item, block, seconds_left(end)))
                self._forget_room()  # who knows what has come and gone meanwhile
                return

    def _wait_for_room(self, block: bool, end: float | None) -> None:
        def has_room() -> bool:
            return not len(self._items) >= self._limit == self._size

        self._see_to()
        if not (has_room() or (block and self._changed.wait_until(has_room, end))):
            raise self._full("the buffer is full:")

    def _full(self, why: str) -> Full:
        return Full(
            f"queue {self._queue!r} cannot take more of this handle: {why} {len(self._items)} "
            "items wait here to be sent"
        )

    def _look(self, handle: BufferedHandle) -> bool:
        """See how much space the queue has; whether there is any for the buffer to use."""
        self._encode = handle._codec.quick
        space = handle._space(self._incoming)
        with self._lock:
            self._room = space
            self._set_limit()
        return space > 0

    def _set_limit(self) -> None:
        # What is in the buffer has its place in the queue already.
        self._limit = 0 if self._room is None else int(min(self._size, self._room))

    def _forget_room(self) -> None:
        with self._lock:
            self._room = None
            self._set_limit()

    # Sending

    def _begin(self, handle: BufferedHandle) -> None:
        """See to it that what is in the buffer is sent."""
        with self._lock:
            if not self._is_idle:
                return
            self._handle = handle
            # Before this process says that it no longer produces, and before it waits for its
            # children: they may be waiting for what it put.
            at_exit.call_at_end(_leave, priority=20)
            try:
                if self._thread is not None:
                    self._awake.put(None)
                else:
                    name = f"pressure_mp {self._queue}"
                    interrupts.start(threading.Thread(target=self._feed, name=name, daemon=True))
                # Not sooner: if this is interrupted, the next one begins again.
                self._is_idle = False
                return
            except RuntimeError:  # the interpreter is ending
                pass
        while not self._rest():
            self._send_all()

    def _see_to(self) -> None:
        """The same for what one put who was interrupted then."""
        owner = self._owner()
        if self._is_idle and self._items and owner is not None:
            self._begin(owner)

    def _feed(self) -> None:
        """What the thread does: send all that comes; end when nothing comes for some time."""
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.current_thread()
        while True:
            self._send_all()
            if self._rest():
                try:
                    self._awake.get(timeout=_LINGER)
                except Empty:
                    with self._lock:
                        if self._is_idle:
                            self._thread = None
                            return

    def _rest(self) -> bool:
        """Be idle, unless there is something to send."""
        with self._lock:
            self._is_idle = True
            # One that is put after this look finds that nobody sends.
            if self._items:
                self._is_idle = False
                return False
            self._handle = None
            return True

    def _send_all(self) -> None:
        handle = self._handle
        while handle is not None and self._items:
            items = self._items
            try:
                self._send(handle, items)
            except Exception as error:
                self._fail(items, error)

    def _send(self, handle: BufferedHandle, items: list[bytes]) -> None:
        """One batch, or as much of it as there is space for."""
        sending = handle._operations.put_batch(next_items(items, 0))
        number = handle._run(noting(sending, self._note_waiting))
        with self._lock:
            if items is not self._items:
                return  # they were discarded meanwhile
            if self._room is not None:
                self._room -= number
                self._set_limit()
            self._sent += number
            self._is_stuck = False
            del items[:number]
            self._changed.give()

    def _note_waiting(self, waits: bool) -> None:
        """Everybody may know that the queue is full."""
        with self._lock:
            self._is_stuck = waits
            self._changed.give()

    def _fail(self, items: list[bytes], error: Exception) -> None:
        """Nothing more is sent of what is in the buffer: the next call says so."""
        if items is not self._items:
            return
        if not isinstance(error, PressureError):
            raised, error = error, PressureError(f"queue {self._queue!r}: {error!r}")
            error.__cause__ = raised
        with self._lock:
            self._limit, self._room, self._is_stuck = 0, None, False
            self.failure = self.failure or error
            self._failed += self._items
            self._sent += len(self._items)
            self._items.clear()
            self._changed.give()

    # Being asked

    def raise_failure(self, handle: BufferedHandle) -> None:
        """Raise what went wrong since the last call; ``rest`` has the items that were not sent."""
        if self.failure is None:
            return
        with self._lock:
            failure, failed = self.failure, self._failed
            self.failure, self._failed = None, []
        if failure is not None:
            failure.rest = handle._codec.decode_many(failed)
            raise failure

    def settle(self, block: bool = False, end: float | None = None) -> bool:
        """Wait until the broker has what was put here, or, unless ``block``, until the queue has no
        space for the next of them. Returns whether the broker has all."""
        self._see_to()
        with self._lock:
            until = self._sent + len(self._items)

        def is_over() -> bool:
            return self._sent >= until or (self._is_stuck and not block)

        self._changed.wait_until(is_over, end)
        return self._sent >= until

    def flush(self, handle: BufferedHandle) -> None:
        """Wait until the broker has what was put here. Raises what went wrong meanwhile."""
        if self._items:
            self._begin(handle)
            self.settle(block=True)
        self.raise_failure(handle)

    def turn_off(self) -> None:
        """From now on puts go to the broker at once, and say what it says."""
        with self._lock:
            self._is_off, self._limit, self._room = True, 0, None
            self._changed.give()

    def look_again(self) -> None:
        """The queue's bound was changed."""
        self._forget_room()

    def discard(self) -> None:
        """What was put and not sent goes with all that is in the queue."""
        with self._lock:
            self._sent += len(self._items)
            self._items = []
            self.failure, self._failed = None, []
            self._changed.give()

    def leave(self, look: float) -> None:
        """The process ends: whatever is put from now on is sent at once.

        A queue that is full is waited for. A broker that does not answer is not: it is asked from
        the moment ``look`` on.
        """
        self.turn_off()
        if not self.is_awaited:
            return
        handle = self._handle
        while not self.settle(block=True, end=look):
            look = time.monotonic() + _LOOK
            if handle is not None and not _answers(handle):
                self._tell(len(self._items), f"the broker at {handle.url} does not answer")
                return
        if self.failure is not None:
            self._tell(len(self._failed), str(self.failure))

    def _tell(self, number: int, why: str) -> None:
        at_exit.tell(
            f"{number} items that were put on queue {self._queue!r} were not sent, or it is not "
            f"known: {why}"
        )


def _answers(handle: BufferedHandle) -> bool:
    """Whether a handle's broker answers within what is left of the process's last seconds."""
    engine = registry.engine(handle._address)

    def ask(options: Options) -> None:
        drive(handle._operations.exists(), handle._bind(engine, options).session())

    try:
        return at_exit.answers(engine, ask)
    except PressureError:
        return True  # a refusal is an answer


_all: weakref.WeakSet[Outgoing] = weakref.WeakSet()


def _leave() -> None:
    look = time.monotonic() + _FIRST_LOOK
    for outgoing in list(_all):
        outgoing.leave(look)
