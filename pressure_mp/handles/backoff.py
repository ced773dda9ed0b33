"""How long a task whose handler failed waits until it may be taken again."""

from __future__ import annotations

import random
from collections.abc import Callable

from ..exceptions import ArgumentError
from ..numeric import seconds

#: Seconds until a failed task may be taken again; or a function that returns them for a number of
#: deliveries.
Backoff = float | Callable[[int], float]

#: The longest wait is as many times as long as the shortest of the same delivery.
_JITTER = 1.5
#: A program that seeds ``random`` has the same numbers whether a handler fails or not.
_random = random.SystemRandom()


class ExponentialBackoff:
    """A ``backoff``: twice as long after each delivery, and drawn at random, so that tasks that
    failed together are not tried again together.

    ``ExponentialBackoff(first, longest)(deliveries)`` returns seconds: from ``first`` to 1.5 times
    of it after the first delivery, and at most ``longest``.
    """

    __slots__ = ("first", "longest")

    def __init__(self, first: float = 1.0, longest: float = 600.0) -> None:
        """Both are in seconds. Raises ArgumentTypeError for other values, and ArgumentError unless
        ``first`` is more than 0, and ``longest`` at least 1.5 times of it."""
        self.first, self.longest = seconds("first", first), seconds("longest", longest)
        if not 0 < _JITTER * self.first <= self.longest:
            raise ArgumentError(
                f"first={first!r} and longest={longest!r}: first is more than 0, and longest at "
                f"least {_JITTER} times of it, since a wait is drawn between these"
            )

    def __call__(self, deliveries: int) -> float:
        """Draw the seconds to wait after so many deliveries."""
        doublings = min(deliveries - 1, 1000)  # more are no finite number
        shortest = min(self.first * 2.0**doublings, self.longest / _JITTER)
        return shortest * _random.uniform(1.0, _JITTER)

    def __repr__(self) -> str:
        return f"ExponentialBackoff(first={self.first:g}, longest={self.longest:g})"


#: The ``backoff`` of takes and runs that state none.
DEFAULT = ExponentialBackoff()
