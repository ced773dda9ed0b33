"""Check numbers that users give, in types of Python or of packages such as numpy."""

from __future__ import annotations

import operator
from numbers import Integral, Real
from typing import Any

from .exceptions import ArgumentError, ArgumentTypeError


def integer(what: str, given: Any, least: int | None = None, wanted: str = "an int") -> int:
    """Convert any value with ``__index__`` but a bool to int. ``wanted`` says what ``what`` may be.

    Raises ArgumentTypeError; ArgumentError for less than ``least``.
    """
    try:
        number = operator.index(given)
    except TypeError:
        number = None
    if number is None or isinstance(given, bool):
        raise ArgumentTypeError(f"{what} is {wanted}, not {type(given).__name__}")
    if least is not None and number < least:
        raise ArgumentError(f"{what} is {least} or more, not {number}")
    return number


def real(what: str, given: object, wanted: str = "a number") -> Real | int:
    """Return any real number except a bool, an integer as an int. Raises ArgumentTypeError."""
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ArgumentTypeError(f"{what} is {wanted}, not {type(given).__name__}")
    return int(given) if isinstance(given, Integral) else given


def seconds(what: str, given: object) -> float:
    """Convert a number of seconds to float. Raises ArgumentTypeError."""
    return float(real(what, given, "a number of seconds"))
