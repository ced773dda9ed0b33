"""Handle exceptions of a user's code. Their own methods may raise too."""

from __future__ import annotations

from typing import Any


def in_words(error: BaseException | None) -> str:
    """Return the name of an exception's class, and its text."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return "an exception whose text raises another"


def set_cause(error: BaseException, cause: BaseException) -> None:
    """Set the cause of an exception, also if its class refuses to set attributes, as a frozen
    dataclass."""
    there: Any = BaseException.__cause__
    there.__set__(error, cause)
