"""What a handle has on this side of the wire, both ways."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .. import lifecycle
from .outgoing import Outgoing

if TYPE_CHECKING:
    from .handle import BufferedHandle, Incomings

T = TypeVar("T")


class Buffers:
    """What was put through one handle and not sent, what was fetched and not handed out; either may
    be missing."""

    def __init__(
        self,
        handle: BufferedHandle,
        incoming: Incomings | None,
        size: int,
        is_stated: bool,
    ) -> None:
        self.incoming = incoming
        self.outgoing: Outgoing | None = None
        if size:
            self.outgoing = Outgoing(size, is_stated, handle, incoming)
        _all.add(self)

    def look(self, ask: Callable[[], T]) -> tuple[T, int]:
        """What the broker answers, which is asked when it has what was put before; and how many
        items there are besides."""
        put = 0 if self.outgoing is None else self.outgoing.number_put
        found, here = ask(), 0
        if self.outgoing is not None:
            # What was put meanwhile may be at the broker, and not yet known to be.
            here += max(put - self.outgoing.number_sent, 0)
        if self.incoming is not None:
            here += len(self.incoming)
        return found, here

    def flush(self, handle: BufferedHandle) -> None:
        """Let the broker have all."""
        if self.outgoing is not None:
            self.outgoing.flush(handle)

    def before_put(self, handle: BufferedHandle, block: bool, end: float | None) -> None:
        """Send the buffer's items before a put that goes past the buffer. Raises Full when the
        queue has no space for them at ``end``, or, without ``block``, has none now; and raises
        what :meth:`flush` raises."""
        if self.outgoing is not None:
            self.outgoing.settle_in_time(block, end)
            self.outgoing.raise_failure(handle)

    def before_bound(self, handle: BufferedHandle) -> None:
        """Send what is in the buffer, as far as the queue has space, before its bound is changed.
        Raises what :meth:`flush` raises."""
        if self.outgoing is not None:
            self.outgoing.settle()
            self.outgoing.raise_failure(handle)

    def cancel_join(self) -> None:
        """Wait for the broker neither at the end of the handle nor at that of the process."""
        if self.outgoing is not None:
            self.outgoing.is_awaited = False

    def close(self, handle: BufferedHandle) -> None:
        """The handle is done."""
        if self.outgoing is not None:
            self.outgoing.turn_off()
        if self.incoming is not None:
            self.incoming.give_back(handle)
        if self.outgoing is not None and self.outgoing.is_awaited:
            self.outgoing.flush(handle)

    def before_shutdown(self, handle: BufferedHandle, immediate: bool) -> None:
        """The queue is about to be shut down: nothing may come after that."""
        if self.outgoing is None:
            return
        if not immediate:
            self.outgoing.flush(handle)
        self.outgoing.turn_off()
        if immediate:
            self.outgoing.discard()

    def after_shutdown(self, handle: BufferedHandle) -> None:
        """The queue was emptied: so is this, also of what a thread fetched at the same time."""
        if self.incoming is not None:
            self.incoming.give_back(handle, self.incoming.patience)

    def discard(self) -> None:
        """The queue is deleted with all that is in it."""
        if self.outgoing is not None:
            self.outgoing.discard()

    def look_again(self) -> None:
        """The queue's bound was changed."""
        if self.outgoing is not None:
            self.outgoing.look_again()

    def reset(self) -> None:
        """In a forked child: what is here is the parent's."""
        if self.outgoing is not None:
            self.outgoing.reset()
        if self.incoming is not None:
            self.incoming.reset()


_all: weakref.WeakSet[Buffers] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for buffers in list(_all):
        buffers.reset()


lifecycle.register("forget buffers", _after_fork_in_child)
