"""What this process put and its broker does not yet have, as those see it who wait for that."""

from __future__ import annotations

import os
from typing import Protocol

from ..engines.contract.session import Engine


class Sending(Protocol):
    """What sends to one broker."""

    engine: Engine

    def settle(self, queue: str | None = None, end: float | None = None) -> None:
        """Wait until the broker has all that was put, into that queue or all of them, as far as
        they have space; no longer than ``end`` on the monotonic clock."""


#: All that have something to send just now.
senders: set[Sending] = set()


def settle(engine: Engine, queue: str | None = None, end: float | None = None) -> None:
    """The same of what this process put through one broker."""
    for sender in tuple(senders):
        if sender.engine is engine:
            sender.settle(queue, end)


os.register_at_fork(after_in_child=senders.clear)
