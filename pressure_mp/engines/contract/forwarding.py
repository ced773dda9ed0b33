"""The request that settles a delivery of one queue and puts on another, in one step."""

from __future__ import annotations

from typing import Any, NamedTuple

from .items import Acknowledge, NotComparable, Put
from .replies import Closed, Excess, InUse, Late, Lost, Missing, NoSpace, Passed
from .task_records import StoredTask
from .tasks import AckTask, KeyTaken, PutTasks, Refusal, ReleaseTask, TaskThere

#: The requests that settle a delivery.
Settlement = Acknowledge | AckTask | ReleaseTask


class Forward(NamedTuple):
    """Do ``put`` at this queue, and then ``settle`` at the queue of the binding ``source``, which
    is beside it, and may be the same: both are done, or neither is.

    A :class:`~.items.Put` has one item; ``settle`` names an item, or its new data are made of no
    data. After a reply of ``put`` that says so, the session can wait as after that request.
    """

    source: Any
    settle: Settlement
    put: Put | PutTasks


class Forwarded(NamedTuple):
    """Both are done. ``put`` has the ids that a put of tasks replies; ``settled`` is the reply to
    ``settle``."""

    put: list[bytes]
    settled: StoredTask | None


class NotSettled(NamedTuple):
    """``settle`` alone has this reply, which acknowledges nothing. ``put`` was not done."""

    why: Late | Passed | Excess | Refusal | Lost | Missing


ForwardReply = (
    Forwarded
    | NotSettled
    | NoSpace
    | InUse
    | NotComparable
    | Lost
    | TaskThere
    | KeyTaken
    | Closed
    | Missing
)
