"""When those of a process who wait for a queue, or look at it, see to its roles."""

from __future__ import annotations

import time

from ..contract.session import TICK


class Rounds:
    """Once a tick, however many they are; sooner when something runs out by then."""

    def __init__(self) -> None:
        self._next = 0.0
        self._is_left_to_looks = False

    def is_due(self) -> bool:
        """Whether it is time; then the caller does it, and nobody else until the next time."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next, self._is_left_to_looks = now + TICK, False
        return True

    def note(self, again: float | None, looks: bool = False) -> None:
        """It was done; in ``again`` seconds something runs out, if that is known. ``looks``: by a
        process that looks at the queue more often than once a tick, and does it each time."""
        limit = TICK if again is None else min(again, TICK)
        self._next = time.monotonic() + limit
        self._is_left_to_looks = looks and limit == TICK

    @property
    def left(self) -> float | None:
        """The seconds until it is time again; None when nobody need come for it."""
        return None if self._is_left_to_looks else max(self._next - time.monotonic(), 0.0)
