"""Schedules of periodic tasks: when the next task is put, and the bytes in which a broker keeps a
schedule. All times are in seconds since the epoch, on the broker's clock."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, Literal, NamedTuple, get_args

from ..exceptions import ArgumentError, ArgumentTypeError, DecodingError, NotSupportedError

#: What becomes of the times that were missed, while no run was there to put tasks.
Missed = Literal["once", "all", "skip"]

#: Seconds after which a time is missed, for ``missed="skip"``.
LATE = 10.0


class Schedule(NamedTuple):
    """A schedule: a task is put at the time ``at`` and at each later time of ``when``."""

    #: Seconds between two tasks, or a cron line.
    when: float | str
    timezone: str
    missed: Missed
    #: The options of each put, by name: priority, tube, key; ttl and result_ttl in milliseconds.
    options: Mapping[str, Any]
    #: The data of the tasks, encoded.
    data: bytes
    at: float = 0.0

    def begin(self, now: float) -> Schedule:
        """Return the schedule with its first time after now."""
        return self._replace(at=self.next_after(now, now))

    def is_to_put(self, now: float) -> bool:
        """Tell whether a task is to be put for the time ``at``, which is over now."""
        return self.missed != "skip" or now - self.at <= LATE

    def go_on(self, now: float) -> Schedule:
        """Return the schedule with its next time, after a task was put."""
        after = self.at if self.missed == "all" else max(self.at, now)
        return self._replace(at=self.next_after(self.at, after))

    def next_after(self, before: float, after: float) -> float:
        """Return the first time later than ``after``; ``before`` was a time of this schedule."""
        if isinstance(self.when, str):
            return _next_of_line(self.when, after, _zone(self.timezone))
        steps = math.floor((after - before) / self.when) + 1
        return before + steps * self.when

    def is_like(self, other: Schedule) -> bool:
        """Tell whether both differ at most in the next time."""
        return self._replace(at=0.0) == other._replace(at=0.0)

    def encode(self) -> bytes:
        head = self._asdict()
        del head["data"]
        return json.dumps(head).encode() + b"\n" + self.data


def decode(item: bytes, name: str, queue: str) -> Schedule:
    """Raises DecodingError."""
    head, _, data = item.partition(b"\n")
    try:
        return Schedule(**json.loads(head), data=data)
    except (ValueError, TypeError) as error:
        raise DecodingError(
            f"the schedule {name!r} of queue {queue!r} cannot be read: another version of "
            "pressure_mp, or another program, wrote it. Remove it with unschedule()"
        ) from error


def check(when: object, timezone: object, missed: object) -> tuple[float | str, str]:
    """Return a time between tasks, or a cron line, and a time zone. Raises ArgumentError,
    ArgumentTypeError, NotSupportedError."""
    if missed not in get_args(Missed):
        raise ArgumentError(f"missed is one of {', '.join(get_args(Missed))}, not {missed!r}")
    if timezone is not None and not isinstance(timezone, str):
        raise ArgumentTypeError(
            f"timezone is a name such as 'Europe/Paris', not {type(timezone).__name__}"
        )
    if isinstance(when, str):
        zone = timezone or "UTC"
        _next_of_line(when, 0.0, _zone(zone))
        return when, zone
    if isinstance(when, bool) or not isinstance(when, (int, float)):
        raise ArgumentTypeError(
            f"a task is put every so many seconds, or by a cron line, not {type(when).__name__}"
        )
    if not 0.001 <= when < math.inf:
        raise ArgumentError(f"a task is put every 0.001 seconds at most, not every {when!r}")
    if timezone is not None:
        raise ArgumentError("timezone= is for a cron line: seconds are the same everywhere")
    return float(when), "UTC"


def _next_of_line(line: str, after: float, zone: tzinfo) -> float:
    try:
        from cronsim import CronSim, CronSimError
    except ImportError as error:
        raise NotSupportedError("cron lines need: pip install 'pressure_mp[cron]'") from error
    try:
        found = next(CronSim(line, datetime.fromtimestamp(after, zone)))
    except CronSimError as error:
        raise ArgumentError(f"{line!r} is no cron line: {error}") from error
    except StopIteration as error:
        raise ArgumentError(f"the cron line {line!r} has no time in the next 50 years") from error
    return found.timestamp()


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise ArgumentError(f"there is no time zone {name!r}") from error
    except KeyError as error:
        raise ArgumentError(
            f"there is no time zone {name!r} on this machine: pip install tzdata has all"
        ) from error
