"""What a cancelled call of an asyncio task tells of what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

#: Attributes of the exception. A class of its own it cannot have: ``asyncio.timeout`` of Python
#: 3.11 knows only CancelledError itself.
_UNKNOWN, _WAITED = "pressure_mp_outcome_is_unknown", "pressure_mp_waited"


def mark_as_unknown(error: asyncio.CancelledError) -> None:
    """The call was sent, and it was not waited for long enough to know whether it was done."""
    setattr(error, _UNKNOWN, True)


def is_unknown(error: BaseException) -> bool:
    """Whether the call that ended with this may have been done, or be done yet. Else it did
    nothing."""
    return getattr(error, _UNKNOWN, False)


def mark_as_waiting(error: BaseException) -> None:
    """The operation waited for others: no call of it was under way."""
    setattr(error, _WAITED, True)


def was_waiting(error: BaseException) -> bool:
    """Whether that is so: what the operation last asked for was not given to it."""
    return getattr(error, _WAITED, False)
