"""When whoever looks at a queue sees to its roles."""

from __future__ import annotations

import time

from ..contract.session import TICK


class Rounds:
    """Once a tick, however many look."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_due(self) -> bool:
        """Whether it is time; then the caller does it, and nobody else until the next time."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + TICK
        return True
