"""Replies without the values that differ between engines."""

from __future__ import annotations

from typing import Any

from oracle.steps import is_later
from pressure_mp.engines.contract.fair import GetKeys
from pressure_mp.engines.contract.items import Attendance, Taken
from pressure_mp.engines.contract.queues import End, Inspection, Stats


def plain(reply: Any, request: Any = None) -> Any:
    """What must be the same on both."""
    if isinstance(request, GetKeys) and isinstance(reply, list):
        return sorted(reply)  # in no order
    if is_later(reply):
        return "later"
    if isinstance(reply, Taken):
        return reply.items, len(reply.numbers)  # an engine numbers items as it likes
    if isinstance(reply, Stats):
        # A waiter is named when it calls as the first in line. A client of a server may hear only
        # after that call that it is the first.
        return reply._replace(producer=None, consumer=None)
    if isinstance(reply, Attendance):
        return sorted(reply.consumers), sorted(reply.producers)
    if isinstance(reply, Inspection):
        ends = [_plain_end(end) for end in (reply.producer, reply.consumer)]
        told = reply.length, reply.bound, reply.closed, reply.has_space
        return *told, reply.deleting, reply.partial, ends
    if isinstance(reply, list) and all(isinstance(part, str) for part in reply):
        return sorted(reply)  # users, in no order
    return reply


def _plain_end(end: End) -> Any:
    """All waiters, among them the holder."""
    names = [waiting.client for waiting in end.line]
    if end.holder is not None and end.holder.state == "waiting":
        names.append(end.holder.client)
    return sorted(names)
