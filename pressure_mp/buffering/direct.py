"""How a handle puts and gets where nothing is buffered: each call asks the broker, or the memory
that processes of this host share."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .. import events, lifecycle
from ..handles import unsent
from ..handles.objects import Look, ObjectAttachment, time_left

T = TypeVar("T")


class DirectPut:
    """Puts at once; nothing that was put waits here. Each method is given the queue, because what
    buffers may outlive the handle."""

    def __init__(self, gets: DirectGet) -> None:
        self._gets = gets

    def __len__(self) -> int:
        """How many items wait here to be sent."""
        return 0

    @property
    def was_used(self) -> bool:
        """Whether anything was ever buffered."""
        return False

    def put(self, queue: ObjectAttachment, item: Any, block: bool, timeout: float | None) -> None:
        """Put an item, as ``Queue.put``."""
        queue.check_open()
        if queue.options.shares_memory and not events.listeners:
            encoded = queue.codec.encode(item)
            if queue.put_in_memory(encoded):
                return
            putting = queue.operations.put(encoded, bool(block), timeout)
        else:
            order = queue.order.of(item, queue.name)
            putting = queue.operations.put_object(item, bool(block), timeout, order)
        self.run_put(queue, putting)

    def run_put(self, queue: ObjectAttachment, operation: Any) -> None:
        """Run an operation that puts."""
        queue.run_put(operation)

    def count(self, ask: Callable[[], T]) -> tuple[T, int]:
        """Ask the broker, and count the items that are here beside its answer."""
        return ask(), 0

    def flush(self, queue: ObjectAttachment) -> None:
        """Wait until the broker has all items. Raises the error of a put that failed."""

    def make_way(self, queue: ObjectAttachment, block: bool, end: float | None) -> None:
        """Send the items before a put that goes past the buffer. Raises Full when the queue has no
        space for them at ``end``, or, without ``block``, has none now; and as :meth:`flush`."""

    def before_bound(self, queue: ObjectAttachment) -> None:
        """Send the items, as far as there is space, before the queue's bound is changed. Raises as
        :meth:`flush`."""

    def after_bound(self) -> None:
        """Note that the queue's bound was changed."""

    def cancel_join(self) -> None:
        """Wait for the broker neither in :meth:`close` nor at the end of the process."""

    def turn_off(self) -> None:
        """Buffer nothing any more."""

    def close(self, queue: ObjectAttachment) -> None:
        """Wait, as :meth:`flush`, unless the program cancelled that."""

    def before_shutdown(self, queue: ObjectAttachment, immediate: bool) -> None:
        """Let nothing come after a shutdown: send the items, or drop them."""

    def discard(self) -> None:
        """Drop the items: the queue is deleted."""


class DirectGet:
    """Gets at once; nothing is read ahead."""

    #: Seconds for which a call waits, at most, for the thread that reads ahead.
    patience = 1.0

    def __len__(self) -> int:
        """How many items are here and no longer queued."""
        return 0

    def get(self, queue: ObjectAttachment, block: bool, timeout: float | None) -> Any:
        """Get an item, as ``Queue.get``."""
        if queue.is_closed:
            queue.check_open()
        if unsent.senders:
            timeout = time_left(queue, bool(block), timeout)
        return queue.get(bool(block), timeout)

    def get_many(
        self,
        queue: ObjectAttachment,
        number: int,
        block: bool,
        timeout: float | None,
        look: Look | None = None,
    ) -> list[Any]:
        """Get items, as ``Queue.get_many``; and look at the descriptor."""
        queue.check_open()
        if unsent.senders:
            timeout = time_left(queue, block, timeout)
        return queue.get_many(number, block, timeout, look)

    def before_look(self, queue: ObjectAttachment) -> None:
        """Prepare for a call that counts the queued items, or drops them."""

    def give_back(self, queue: ObjectAttachment, patience: float = 0.0) -> None:
        """Return what was read ahead to the front of the queue. Waits ``patience`` seconds for a
        thread that reads ahead just now."""


class Inheritable(Protocol):
    """A buffer whose items are its process's."""

    def reset(self) -> None:
        """Begin in a forked child: the items are the parent's."""


#: The buffers of all handles of this process.
buffers: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for buffer in list(buffers):
        buffer.reset()


lifecycle.register("forget buffers", _after_fork_in_child)
