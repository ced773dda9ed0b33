"""What becomes of items that a task took and was cancelled before it had them.

They go back to the queue. But if that was shut down meanwhile, others may have left it, who were
told that nothing is queued: then the task has its items after all, and is cancelled behind that.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

from .contract.items import Take, Taken

#: Before Python 3.12 ``asyncio.wait_for`` throws away what it waits for when it is cancelled: what
#: goes back to a queue that was shut down is not lost.
_HANDS_OUT = sys.version_info >= (3, 12)


class Undoing:
    """One call's."""

    def __init__(self, request: Any, take_back: Callable[[bool], Awaitable[Any]]) -> None:
        """``request`` is what was cancelled; ``take_back`` is given what ``TakeBack.if_open`` is,
        and returns a reply to that."""
        self._take_back = take_back
        self._is_waited_for = _HANDS_OUT and isinstance(request, Take)
        self._taken: Taken | None = None

    async def run(self) -> None:
        """Do it."""
        if self._is_waited_for:
            reply = await self._take_back(True)
            if type(reply) is not Taken:
                return
            if self._is_waited_for:
                self._taken = reply
                return
        await self._take_back(False)

    def end(self) -> Taken | None:
        """What the task has, if anything. Nobody waits for it any longer."""
        self._is_waited_for = False
        return self._taken
