"""The settings that users state for a queue of tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ... import states
from ...encoding.task_values import milliseconds
from ...engines.contract.task_records import TaskSettings
from ...exceptions import ArgumentError
from ...handles.arguments import check_maxsize
from ...numeric import integer

IDS = ("time64", "auto_increment", "uuid", "required")


def of_all(given: Mapping[str, Any]) -> TaskSettings:
    """Return the settings for all options, as users state them. Raises ArgumentError,
    ArgumentTypeError."""
    return checked(TaskSettings(**_convert({name: given[name] for name in _CONVERT})))


def change(stated: Mapping[str, Any]) -> Callable[[TaskSettings], TaskSettings]:
    """Return the function that changes options of a queue, as users state them, and checks the
    result. Raises ArgumentError, ArgumentTypeError."""
    changes = _convert(stated)
    return lambda found: checked(replace(found, **changes))


def _convert(stated: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _CONVERT[name](name, value) for name, value in stated.items()}


def checked(settings: TaskSettings) -> TaskSettings:
    """Return the settings. Raises ArgumentError if two of them exclude each other."""
    if settings.keep and settings.zombie:
        raise ArgumentError(
            "keep and zombie cannot be used together: a task that was processed stays either "
            "for ever or for a time"
        )
    return settings


def _time(name: str, given: float | None) -> int:
    return milliseconds(name, given, least=0.001)


def _time_of_zombies(name: str, given: float | bool | None) -> int:
    if given is True:
        return states.FOR_GOOD
    return _time(name, None if given is False else given)


def _bound(name: str, given: int | None) -> int:
    """Return a number that is 1 or more; 0 for None."""
    if given is None:
        return 0
    return integer(name, given, 1, "an int or None")


def _id_kind(name: str, given: object) -> str:
    if callable(given):
        return "callable"
    if given not in IDS:
        raise ArgumentError(f"{name} is one of {', '.join(IDS)}, or a callable; not {given!r}")
    return str(given)


def _flag(name: str, given: object) -> bool:
    return bool(given)


_CONVERT: dict[str, Callable[[str, Any], int | str]] = {
    "ttr": _time,
    "ttl": _time,
    "zombie": _time_of_zombies,
    "keep": _flag,
    "max_deliveries": _bound,
    "per_key": _bound,
    "id": _id_kind,
    "maxsize": lambda name, given: check_maxsize(given),
}
