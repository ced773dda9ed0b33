"""What all who use one TaskQueue agree on: it is recorded with the queue."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from . import states
from .exceptions import ArgumentError, ArgumentTypeError
from .options import IdKind

IDS = ("time64", "auto_increment", "uuid", "required")

#: A century, in seconds.
_LONGEST = 100 * 366 * 86400.0


@dataclass(frozen=True)
class TaskSettings:
    """The options of a queue of tasks. Times are in milliseconds; 0 is none, and ``zombie`` is
    :data:`states.FOR_GOOD` when zombies stay."""

    ttr: int
    ttl: int
    zombie: int
    keep: bool
    max_deliveries: int
    id: str

    @property
    def processed(self) -> states.TaskState:
        """The state that a task is in after it was processed."""
        return states.DONE if self.keep else states.ZOMBIE if self.zombie else states.VOID

    def dump(self) -> str:
        """As they are recorded."""
        return json.dumps(asdict(self))

    def stated(self) -> dict[str, object]:
        """As they were stated, by name."""
        return {
            "ttr": _seconds(self.ttr),
            "ttl": _seconds(self.ttl),
            "zombie": True if self.zombie == states.FOR_GOOD else _seconds(self.zombie),
            "keep": self.keep,
            "max_deliveries": self.max_deliveries or None,
            "id": self.id,
        }

    def tell(self, names: Iterable[str]) -> str:
        """Those options in words."""
        stated = self.stated()
        return ", ".join(f"{name}={stated[name]!r}" for name in names)

    def __str__(self) -> str:
        return self.tell(self.stated())


def load(text: bytes | str) -> TaskSettings:
    """The settings that were recorded."""
    return TaskSettings(**json.loads(text))


def make(
    ttr: float | None,
    ttl: float | None,
    zombie: float | bool | None,
    keep: bool,
    max_deliveries: int | None,
    id: IdKind,
) -> TaskSettings:
    """Check the options of a queue. Raises ArgumentError, ArgumentTypeError."""
    zombie = None if zombie is False else zombie
    if keep and zombie is not None:
        raise ArgumentError(
            "keep and zombie exclude each other: a task that was processed stays, or goes"
        )
    if max_deliveries is not None:
        if not isinstance(max_deliveries, int) or isinstance(max_deliveries, bool):
            raise ArgumentTypeError(
                f"max_deliveries is an int or None, not {type(max_deliveries).__name__}"
            )
        if max_deliveries < 1:
            raise ArgumentError(f"max_deliveries is 1 or more, not {max_deliveries}")
    if not callable(id) and id not in IDS:
        raise ArgumentError(f"id is one of {', '.join(IDS)}, or a callable; not {id!r}")
    return TaskSettings(
        ttr=milliseconds("ttr", ttr, least=0.001),
        ttl=milliseconds("ttl", ttl, least=0.001),
        zombie=states.FOR_GOOD if zombie is True else milliseconds("zombie", zombie, least=0.001),
        keep=bool(keep),
        max_deliveries=max_deliveries or 0,
        id="callable" if callable(id) else str(id),
    )


def milliseconds(name: str, seconds: float | None, least: float = 0.0) -> int:
    """A time that a user gives, 0 for None. Raises ArgumentError, ArgumentTypeError."""
    if seconds is None:
        return 0
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise ArgumentTypeError(f"{name} is a number of seconds, not {type(seconds).__name__}")
    if not least <= seconds <= _LONGEST:
        raise ArgumentError(f"{name} is {seconds} s; it must be from {least} s to a century")
    return round(seconds * 1000)


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 if milliseconds else None
