"""What is noted of anonymous queues with a host, where a queue is noted as it is opened."""

from __future__ import annotations

from typing import NamedTuple

from ..contract.hosts import QueueKey


class Noting(NamedTuple):
    """Arguments of the script that opens a queue: the queue, if it is to be noted; and whether the
    reply is to say what was noted before. Both are empty where the script cannot do it."""

    queue: str = ""
    asks: str = ""


class Noted:
    """What was noted before this process opened its first one, as the server says it then, until
    somebody takes it. A forked child does not ask again, as its parent did."""

    def __init__(self) -> None:
        self._found: list[bytes] | None = None
        self._is_known = False  # or nobody wants to know

    def noting(self, queue: QueueKey, user: str) -> Noting:
        """How to open a queue, an anonymous one if it has a ``user``."""
        return Noting(as_noted(queue) if user else "", "0" if self._is_known else "1")

    def hear(self, noting: Noting, found: list[bytes]) -> None:
        """It was opened so, and the server says that."""
        if noting.asks == "1" and not self._is_known:
            self._found, self._is_known = found, True

    def take(self) -> list[bytes] | None:
        """What was told; once. After None the caller asks by itself, and nobody need be told."""
        found, self._found, self._is_known = self._found, None, True
        return found


def as_noted(queue: QueueKey) -> str:
    """A queue as the host's set has it."""
    name, discipline = queue
    return f"{discipline} {name}"
