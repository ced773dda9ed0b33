"""The limits of a queue of tasks: how many tasks are delivered in a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The most entries of a log, for any number of deliveries.
_MOST = 256


@dataclass
class Limit:
    """At most ``number`` tasks are delivered in any ``per`` milliseconds, as soon as they can be.

    ``log`` has the latest deliveries: moments, and the number of each, the oldest first. Where
    ``number`` is above 256, the deliveries of a 256th of ``per`` are one entry, with the moment of
    the last: so the log is short, no time has more deliveries, and a time can have a 256th fewer.
    """

    number: int
    per: int
    log: list[list[int]] = field(default_factory=list)

    def admits(self, now: int) -> int:
        """Return how many tasks may be delivered now."""
        if self.log and self.log[-1][0] > now:  # the clock was set back: they count from now on
            late = [number for moment, number in self.log if moment > now]
            self.log[-len(late) :] = [[now, sum(late)]]
        while self.log and self.log[0][0] < now - self.per:
            del self.log[0]
        return max(self.number - self.used, 0)

    @property
    def used(self) -> int:
        """How many tasks were delivered, as the log has it."""
        return sum(number for _, number in self.log)

    def until(self, now: int) -> int | None:
        """Return the last millisecond in which no task may be delivered; None if one may be now."""
        if self.admits(now):
            return None
        left = self.used
        for moment, number in self.log:
            left -= number
            if left < self.number:
                return moment + self.per
        raise AssertionError("a limit admits no task at all")

    def note(self, now: int) -> None:
        """Note that a task is delivered."""
        step = max(self.per // _MOST, 1) if self.number > _MOST else 1
        if self.log and self.log[-1][0] // step == now // step:
            self.log[-1] = [now, self.log[-1][1] + 1]
        else:
            self.log.append([now, 1])


class Shares:
    """The tasks that limits admit now, while tasks are given to callers that wait."""

    def __init__(self, limits: Mapping[str, Limit], now: int) -> None:
        self._left = {tube: limit.admits(now) for tube, limit in limits.items()}

    def give(self, tube: str) -> bool:
        """Give a share of a tube; return False if there is none."""
        tubes = [one for one in {"", tube} if one in self._left]
        if not all(self._left[one] for one in tubes):
            return False
        for one in tubes:
            self._left[one] -= 1
        return True
