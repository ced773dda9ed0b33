"""What users state of a queue of tasks."""

from __future__ import annotations

from ... import states
from ...encoding.task_values import milliseconds
from ...engines.contract.task_records import TaskSettings
from ...exceptions import ArgumentError, ArgumentTypeError
from ..options import IdKind

IDS = ("time64", "auto_increment", "uuid", "required")


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
