"""What is to be done although the asyncio task that does it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from time import monotonic
from typing import Any

from ..effects import T

#: Seconds for which one who was cancelled waits until it is done.
_PATIENCE = 1.0


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Do it to its end. Who is cancelled meanwhile raises CancelledError when it is done, or a
    second later, however often it is cancelled; then the work goes on by itself."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        end = monotonic() + _PATIENCE
        while not doing.done() and (left := end - monotonic()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([doing], timeout=left)
        raise
