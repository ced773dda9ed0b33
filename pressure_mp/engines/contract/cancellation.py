"""Marks on the exception of a cancelled call: whether the call may have been done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

#: Attributes of the exception. It can have no class of its own: ``asyncio.timeout`` of Python 3.11
#: knows only CancelledError itself.
_UNKNOWN, _WAITED = "pressure_mp_outcome_is_unknown", "pressure_mp_waited"


def mark_as_unknown(error: asyncio.CancelledError) -> None:
    """Note that the call was sent, and that its reply was not waited for: it may have been done."""
    setattr(error, _UNKNOWN, True)


def is_unknown(error: BaseException) -> bool:
    """Tell whether the call that raised ``error`` may have been done, or may still be done.
    Otherwise it did nothing."""
    return getattr(error, _UNKNOWN, False)


def mark_as_waiting(error: BaseException) -> None:
    """Note that the operation was waiting for other clients: it had no call under way."""
    setattr(error, _WAITED, True)


def was_waiting(error: BaseException) -> bool:
    """Tell whether the operation was waiting: its last request was not served."""
    return getattr(error, _WAITED, False)
