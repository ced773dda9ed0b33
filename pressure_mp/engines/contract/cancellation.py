"""What a cancelled call of an asyncio task tells of what it did."""

from __future__ import annotations

import asyncio

#: An attribute of the exception. A class of its own it cannot have: ``asyncio.timeout`` of Python
#: 3.11 knows only CancelledError itself.
_MARK = "pressure_mp_outcome_is_unknown"


def mark_as_unknown(error: asyncio.CancelledError) -> None:
    """The call was sent, and it was not waited for long enough to know whether it was done."""
    setattr(error, _MARK, True)


def is_unknown(error: asyncio.CancelledError) -> bool:
    """Whether the call that ended with this may have been done, or be done yet. Else it did
    nothing."""
    return getattr(error, _MARK, False)
