"""The settings that users state for a queue of tasks."""

from __future__ import annotations

from ... import states
from ...encoding.task_values import milliseconds
from ...engines.contract.task_records import TaskSettings
from ...exceptions import ArgumentError
from ...handles.options import IdKind
from ...numeric import integer

IDS = ("time64", "auto_increment", "uuid", "required")


def make(
    ttr: float | None,
    ttl: float | None,
    zombie: float | bool | None,
    keep: bool,
    max_deliveries: int | None,
    id: IdKind,
    per_key: int | None = None,
) -> TaskSettings:
    """Check the options of a queue. Raises ArgumentError, ArgumentTypeError."""
    zombie = None if zombie is False else zombie
    if keep and zombie is not None:
        raise ArgumentError(
            "keep and zombie cannot be used together: a task that was processed stays either "
            "for ever or for a time"
        )
    if not callable(id) and id not in IDS:
        raise ArgumentError(f"id is one of {', '.join(IDS)}, or a callable; not {id!r}")
    return TaskSettings(
        ttr=milliseconds("ttr", ttr, least=0.001),
        ttl=milliseconds("ttl", ttl, least=0.001),
        zombie=states.FOR_GOOD if zombie is True else milliseconds("zombie", zombie, least=0.001),
        keep=bool(keep),
        max_deliveries=_bound("max_deliveries", max_deliveries),
        id="callable" if callable(id) else str(id),
        per_key=_bound("per_key", per_key),
    )


def _bound(name: str, given: int | None) -> int:
    """Return a number that is 1 or more; 0 for None."""
    if given is None:
        return 0
    return integer(name, given, 1, "an int or None")
