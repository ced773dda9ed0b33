"""Cancellations that came while the reply to a call that is done once was on its way.

The task gets its reply first, if that comes soon, and is cancelled where it next suspends or makes
a request. If it ended before that, or left the timeout block that wanted to cancel it, it was in
time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, TypeVar

from .contract.cancellation import mark_as_unknown

T = TypeVar("T")

#: Seconds for which one who was cancelled waits for the reply.
LAST_SECONDS = 1.0


class PutOff:
    """Those of all tasks of this process."""

    def __init__(self) -> None:
        self._requests: dict[asyncio.Task[Any], int] = {}

    def add(self) -> None:
        """The running task was cancelled, and has its reply."""
        task = asyncio.current_task()
        assert task is not None
        self._requests[task] = _requests_to_cancel(task)
        task.get_loop().call_soon(self._cancel_again, task)

    def check(self) -> None:
        """Raise CancelledError if the running task's cancellation was put off."""
        if self._requests:
            task = asyncio.current_task()
            assert task is not None
            if self._is_wanted(task):
                raise asyncio.CancelledError

    def _cancel_again(self, task: asyncio.Task[Any]) -> None:
        if self._is_wanted(task) and not task.done():
            if sys.version_info >= (3, 11):  # it was asked once, not twice
                task.uncancel()
            task.cancel()

    def _is_wanted(self, task: asyncio.Task[Any]) -> bool:
        requests = self._requests.pop(task, None)
        return requests is not None and _requests_to_cancel(task) >= requests


def _requests_to_cancel(task: asyncio.Task[Any]) -> int:
    """How many there were that nobody took back; Python 3.10 does not tell."""
    return task.cancelling() if sys.version_info >= (3, 11) else 0


put_off = PutOff()


async def settled(
    reply: Awaitable[T],
    late_reply: Callable[[float], Coroutine[Any, Any, T]],
    timeout: float | None,
) -> T:
    """A reply that tells what a call did, with which the caller does something. To be cancelled,
    however often (anyio does it in each round of the loop), is put off until it is there: for
    ``LAST_SECONDS``, and not for longer than ``timeout``. ``late_reply`` is what then waits for it,
    and raises TimeoutError."""
    try:
        return await reply
    except asyncio.CancelledError as error:
        cancelled = error
    seconds = LAST_SECONDS if timeout is None else min(timeout, LAST_SECONDS)
    waiting = asyncio.ensure_future(late_reply(seconds))
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError as error:
            cancelled = error
    try:
        found = waiting.result()
    except (TimeoutError, asyncio.CancelledError):  # or the loop ends, and all its tasks
        mark_as_unknown(cancelled)
        raise cancelled from None
    except Exception:
        put_off.add()
        raise
    put_off.add()
    return found


async def to_its_end(work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
    """Do it, however often the caller is cancelled meanwhile. Who was, raises CancelledError when
    it is done, or so many seconds after the first time; then the work goes on by itself."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    end: float | None = None
    while not task.done():
        left = None if end is None else end - monotonic()
        if left is not None and left <= 0:
            break
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
            if end is None and seconds is not None:
                end = monotonic() + seconds
    if cancelled is None:
        return task.result()
    task.add_done_callback(_forget)  # the cancellation is what the caller is told
    raise cancelled


def _forget(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
