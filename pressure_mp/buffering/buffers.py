"""What a handle with ``buffering`` has on this side of the wire, both ways."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from .incoming import Incoming
from .outgoing import Outgoing

if TYPE_CHECKING:
    from .handle import BufferedHandle


class Buffers:
    """Both ways of one handle."""

    def __init__(self, handle: BufferedHandle, incoming: Incoming, size: int) -> None:
        self.incoming = incoming
        self.outgoing = Outgoing(size, handle, incoming)
        _all.add(self)

    def __len__(self) -> int:
        return len(self.outgoing) + len(self.incoming)

    def settle(self) -> None:
        """Let the broker have what it can take."""
        self.outgoing.settle()

    def flush(self, handle: BufferedHandle) -> None:
        """Let the broker have all."""
        self.outgoing.flush(handle)

    def cancel_join(self) -> None:
        """Wait for the broker neither at the end of the handle nor at that of the process."""
        self.outgoing.is_awaited = False

    def close(self, handle: BufferedHandle) -> None:
        """The handle is done."""
        self.outgoing.turn_off()
        self.incoming.give_back(handle)
        if self.outgoing.is_awaited:
            self.outgoing.flush(handle)

    def before_shutdown(self, handle: BufferedHandle, immediate: bool) -> None:
        """The queue is about to be shut down: nothing may come after that."""
        if not immediate:
            self.outgoing.flush(handle)
        self.outgoing.turn_off()
        if immediate:
            self.outgoing.discard()

    def discard(self) -> None:
        """The queue is deleted with all that is in it."""
        self.outgoing.discard()

    def reset(self) -> None:
        """In a forked child: what is here is the parent's."""
        self.outgoing.reset()
        self.incoming.reset()


_all: weakref.WeakSet[Buffers] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for buffers in list(_all):
        buffers.reset()


os.register_at_fork(after_in_child=_after_fork_in_child)
