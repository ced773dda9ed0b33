"""Requests to the notes of one host at a broker, not to a single queue."""

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
    """List the anonymous queues that were noted for the host, in no order."""


GetRememberedReply = list[QueueKey]


class Forget(NamedTuple):
    """Undo :class:`Remember` for each queue."""

    queues: Sequence[QueueKey]


ForgetReply = Done


class Leave(NamedTuple):
    """Remove the keys that are kept for the calling process alone: it uses these queues no
    longer."""

    queues: Sequence[QueueKey]


LeaveReply = Done
