"""Check and convert a user's values for a task: its id, as bytes; its priority, its tube, and
times."""

from __future__ import annotations

import re
import time
import uuid

from .. import numeric
from ..exceptions import ArgumentError, ArgumentTypeError
from ..numeric import integer

_INTEGER = re.compile(r"0|-?[1-9]\d*")

#: A century, in seconds.
_LONGEST = 100 * 366 * 86400.0


def encode_id(task_id: object) -> bytes:
    """Write an id as text: digits for an int; a str as it is, but after a ``'`` when it could be
    taken for an id of another kind. Raises ArgumentTypeError, ArgumentError."""
    if type(task_id) is int:
        return b"%d" % task_id
    if isinstance(task_id, str):
        if not task_id or "\0" in task_id:
            raise ArgumentError("a task's id is not empty, and has no zero byte")
        quoted = task_id.startswith("'") or _INTEGER.fullmatch(task_id)
        return f"'{task_id}".encode() if quoted else task_id.encode()
    return b"%d" % integer("a task's id", task_id, wanted="an int or a str")


def decode_id(text: bytes) -> int | str:
    if text.isdigit() and (text[:1] != b"0" or text == b"0"):
        return int(text)
    found = text.decode(errors="replace")
    if found.startswith("'"):
        return found[1:]
    return int(found) if _INTEGER.fullmatch(found) else found


def make_uuid() -> bytes:
    """Return an id that no other task has."""
    return uuid.uuid4().hex.encode()


def local_milliseconds() -> int:
    """Return the time in milliseconds since the epoch by this machine's clock."""
    return int(time.time() * 1000)


def check_priority(priority: object) -> float:
    """Return a priority, as an int when it is a whole number. Raises ArgumentTypeError,
    ArgumentError."""
    if type(priority) is int and -(2**53) <= priority <= 2**53:
        return priority
    given = numeric.real("priority", priority)
    try:
        number = float(given)
    except OverflowError:
        number = float("nan")
    if number != given:
        raise ArgumentError(f"priority {priority} cannot be kept exactly; a float can be")
    return int(number) if number.is_integer() else number


def check_tube(tube: object) -> str:
    """Return a tube's name, "" for None. Raises ArgumentTypeError, ArgumentError."""
    return _check_text("tube", "a tube's name", tube)


def check_key(key: object) -> str:
    """Return a key, "" for None. Raises ArgumentTypeError, ArgumentError."""
    return _check_text("key", "a task's key", key)


def check_unique(unique: object) -> str:
    """Return a unique key. Raises ArgumentTypeError, ArgumentError."""
    return _check_text("unique", "a unique key", unique)


def _check_text(option: str, what: str, given: object) -> str:
    if given is None:
        return ""
    if not isinstance(given, str):
        raise ArgumentTypeError(f"{option} is a str or None, not {type(given).__name__}")
    if not 0 < len(given) <= 255 or "\0" in given:
        raise ArgumentError(f"{what} has 1 to 255 characters, and no zero byte")
    return given


def milliseconds(name: str, seconds: float | None, least: float = 0.0) -> int:
    """Convert a user's time from seconds, 0 for None. Raises ArgumentError, ArgumentTypeError."""
    if seconds is None:
        return 0
    number = numeric.seconds(name, seconds)
    if not least <= number <= _LONGEST:
        raise ArgumentError(f"{name} is {seconds} s; it must be from {least} s to a century")
    return round(number * 1000)


def check_times(delay: float | None, ttl: float | None) -> tuple[int, int | None]:
    """Convert a delay and a ttl to milliseconds: 0 for no delay, None for the queue's own ttl.

    Raises ArgumentError when both are given, ArgumentTypeError.
    """
    if delay is None and ttl is None:
        return 0, None
    if delay and ttl is not None:
        raise ArgumentError(
            "delay and ttl exclude each other: the time to live begins when it is ready"
        )
    life = None if ttl is None else milliseconds("ttl", ttl, least=0.001)
    return milliseconds("delay", delay), life
