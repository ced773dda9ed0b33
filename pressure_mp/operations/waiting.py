"""The one loop of every operation that may have to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..deadlines import deadline, seconds_left
from ..effects import Operation, Wait, until
from ..engines.contract.items import Purge, Put, Take
from ..engines.contract.queues import Close, Delete
from ..engines.contract.replies import InUse, NoItem, NoNotice, NoSpace, Unprocessed

if TYPE_CHECKING:  # queues of items need not load the requests to queues of tasks
    from ..engines.contract.task_results import TakeNotices
    from ..engines.contract.tasks import AwaitTask, PutTasks

#: A request that may have to wait.
WaitingRequest = TypeVar(
    "WaitingRequest", Put, Take, Purge, Close, Delete, "PutTasks", "AwaitTask", "TakeNotices"
)

_LATER = frozenset({NoSpace, NoItem, InUse, Unprocessed, NoNotice})


def served(request: WaitingRequest, block: bool, timeout: float | None) -> Operation[Any]:
    """Make a request until it is served, refused, or the time is up; returns the last reply.

    ``timeout`` is in seconds, None for no limit; 0 is not to wait at all.
    """
    if not (block and (timeout is None or timeout > 0)):
        reply = yield request._replace(waits=False)
        return reply
    end = deadline(True, timeout)
    reply = yield until(request, end)
    return (yield from served_after(reply, request, end))


def served_after(reply: Any, request: WaitingRequest, end: float | None) -> Operation[Any]:
    """Go on with a request that was made once and had this reply, until it is served, refused, or
    the time is up."""
    asking, left = until(request, end), seconds_left(end)
    while type(reply) in _LATER and request.waits:
        if left is None or left > 0:
            yield Wait(reply, left)
            left = seconds_left(end)
        if left is not None and left <= 0:
            # The last call takes only items that are there now, and gives up the place in line.
            request = request._replace(waits=False)
            asking = until(request, end)
        reply = yield asking
    return reply
