"""Requests about what one host's processes have to do with a broker, beside any single queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .replies import Done

#: A queue's name and discipline.
QueueKey = tuple[str, str]


class Remember(NamedTuple):
    """Note that processes of the host use an anonymous queue."""

    queue: QueueKey


RememberReply = Done


class GetRemembered(NamedTuple):
    """The anonymous queues that were noted for the host, in no order."""


GetRememberedReply = list[QueueKey]


class Forget(NamedTuple):
    """Take back :class:`Remember` for each."""

    queues: Sequence[QueueKey]


ForgetReply = Done


class Leave(NamedTuple):
    """The calling process uses these queues no longer: remove what is kept for it alone."""

    queues: Sequence[QueueKey]


LeaveReply = Done
