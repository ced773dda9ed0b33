"""Calls of asyncio tasks that are cancelled while the reply is on its way.

A call that is done once gets its reply first, if that comes soon; then the task is cancelled where
it next suspends or makes a request. A task that ends before that, or that leaves the timeout block
from which the cancellation came, was in time.

Items that a cancelled call took go back to the queue. But after a shutdown other takers may have
left, since they were told that nothing is queued. Then the task has its items after all, and is
cancelled afterwards.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, TypeVar

from .contract.cancellation import mark_as_unknown
from .contract.items import Take, Taken

T = TypeVar("T")

#: Seconds for which a cancelled task waits for the reply.
LAST_SECONDS = 1.0

#: Before Python 3.12 ``asyncio.wait_for`` throws away the result of a task that it cancels: items
#: that go back to a queue that was shut down are not lost.
_HANDS_OUT = sys.version_info >= (3, 12)


class Postponed:
    """The postponed cancellations of all tasks of this process."""

    def __init__(self) -> None:
        #: By the cancelled task, how often it was cancelled, and the arguments of the exception.
        self._requests: dict[asyncio.Task[Any], tuple[int, tuple[Any, ...]]] = {}

    def add(self, cancelled: asyncio.CancelledError) -> None:
        """Note that the running task was ``cancelled``, and has its reply. It is cancelled later
        with the same message: by that, a scope of anyio knows its own cancellations."""
        task = asyncio.current_task()
        assert task is not None
        self._requests[task] = _requests_to_cancel(task), cancelled.args[:1]
        task.get_loop().call_soon(self._cancel_again, task)

    def check(self) -> None:
        """Raise CancelledError if the running task's cancellation was postponed."""
        if self._requests:
            task = asyncio.current_task()
            assert task is not None
            if (message := self._wanted(task)) is not None:
                raise asyncio.CancelledError(*message)

    def _cancel_again(self, task: asyncio.Task[Any]) -> None:
        message = self._wanted(task)
        if message is not None and not task.done():
            if sys.version_info >= (3, 11):  # count this cancellation once, not twice
                task.uncancel()
            task.cancel(*message)

    def _wanted(self, task: asyncio.Task[Any]) -> tuple[Any, ...] | None:
        """Return the message with which the task is to be cancelled, if it still is."""
        requests, message = self._requests.pop(task, (0, None))
        return message if _requests_to_cancel(task) >= requests else None


def _requests_to_cancel(task: asyncio.Task[Any]) -> int:
    """Count the cancellations that were not taken back; 0 in Python 3.10, which does not tell."""
    return task.cancelling() if sys.version_info >= (3, 11) else 0


postponed = Postponed()


async def reply_first(
    reply: Awaitable[T],
    late_reply: Callable[[float], Coroutine[Any, Any, T]],
    timeout: float | None,
) -> T:
    """Await the reply to a call whose result the caller needs, and postpone each cancellation until
    it is there (anyio cancels in each round of the loop): for ``LAST_SECONDS``, and for at most
    ``timeout``. From the first cancellation on, ``late_reply`` waits for the reply, and raises
    TimeoutError when it does not come in the given seconds."""
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
        postponed.add(cancelled)
        raise
    postponed.add(cancelled)
    return found


async def outcome_first(outcome: asyncio.Future[T], timeout: float | None = None) -> T:
    """Await a call that another task makes, as :func:`reply_first` awaits a reply."""

    async def late_outcome(seconds: float) -> T:
        done, _ = await asyncio.wait({outcome}, timeout=seconds)
        if not done:
            raise TimeoutError
        return outcome.result()

    return await reply_first(asyncio.shield(outcome), late_outcome, timeout)


async def to_its_end(work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
    """Run ``work`` to its end, however often the caller is cancelled meanwhile. A cancelled caller
    raises CancelledError when the work is done, or so many ``seconds`` after the first
    cancellation; then the work goes on by itself."""
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
    task.add_done_callback(read_exception)  # the caller is told of the cancellation instead
    raise cancelled


def read_exception(done: asyncio.Future[Any]) -> None:
    """Mark the exception of a future as read, so that its loop does not report it."""
    if not done.cancelled():
        done.exception()


class UndoneTake:
    """The undoing of a cancelled call that may have taken items."""

    def __init__(self, request: Any, take_back: Callable[[bool], Awaitable[Any]]) -> None:
        """``request`` was cancelled. ``take_back`` makes a request :class:`TakeBack` with this
        ``if_open``, and returns the reply."""
        self._take_back = take_back
        self._is_waited_for = _HANDS_OUT and isinstance(request, Take)
        self._taken: Taken | None = None

    async def run(self) -> None:
        """Return the items to the queue; if it was shut down, keep them for :meth:`end`."""
        if self._is_waited_for:
            reply = await self._take_back(True)
            if type(reply) is not Taken:
                return
            if self._is_waited_for:
                self._taken = reply
                return
        await self._take_back(False)

    def end(self) -> Taken | None:
        """Return the items that the task keeps, if there are any; from now on, it takes none."""
        self._is_waited_for = False
        return self._taken
