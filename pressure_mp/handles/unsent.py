"""Wait until a broker has the items that this process put."""

from __future__ import annotations

import time
from typing import Any, Protocol

from .. import lifecycle
from ..engines.contract.session import Engine


class Sending(Protocol):
    """A sender to one broker."""

    engine: Engine

    def settle(self, queue: str | None = None, end: float | None = None) -> None:
        """Wait until the broker has all that was put, into that queue or all of them, as far as
        they have space; no longer than ``end`` on the monotonic clock."""

    def settle_for_others(self, end: float) -> None:
        """Wait for the same of all queues until ``end``, and only while the broker answers: for at
        most a second if it does not."""


class Failed(Protocol):
    """A buffer with items that could not be sent, of which no call was told."""

    engine: Engine

    def raise_failure(self, handle: Any) -> None:
        """Raise what went wrong, with the items."""

    def keeps_back(self, queue: str) -> bool:
        """Tell whether no item of ``queue`` may count as done before it was raised."""


#: Seconds for which another process is made to wait for what this one put.
_PATIENCE = 5.0

#: The buffers with a failure, and their handles.
failed: dict[Failed, Any] = {}
#: The senders that have something to send now.
senders: set[Sending] = set()


def settle(engine: Engine | None, queue: str | None = None, end: float | None = None) -> None:
    """Wait until one broker, or all, have the items that this process put; see :class:`Sending`."""
    for sender in _senders_to(engine):
        sender.settle(queue, end)


def settle_for_others(engine: Engine | None = None) -> None:
    """Wait for at most 5 seconds, and a second while a broker does not answer. Called before a
    process begins, or is sent a handle: so its items come behind the items of this process."""
    end = time.monotonic() + _PATIENCE
    for sender in _senders_to(engine):
        sender.settle_for_others(end)


def _senders_to(engine: Engine | None) -> list[Sending]:
    return [sender for sender in tuple(senders) if engine is None or sender.engine is engine]


def raise_failures(engine: Engine, acknowledged: str | None = None) -> None:
    """Wait as :func:`settle` does, and raise the error of a failed put; with the queue
    ``acknowledged``, only an error that keeps back its acknowledgements."""
    settle(engine)
    for buffer, handle in failed.copy().items():
        if buffer.engine is engine and (acknowledged is None or buffer.keeps_back(acknowledged)):
            buffer.raise_failure(handle)


def _after_fork_in_child() -> None:
    senders.clear()
    failed.clear()


lifecycle.register("send puts for the child", settle_for_others)
lifecycle.register("forget unsent items", _after_fork_in_child)
