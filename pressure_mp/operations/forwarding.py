"""Put on one queue, and settle a delivery of another queue in the same step."""

from __future__ import annotations

from typing import Any

from ..effects import On, Operation, until
from ..engines.contract.forwarding import Forward, Forwarded, ForwardReply, NotSettled
from ..engines.contract.items import Added, Put
from ..engines.contract.session import Binding
from ..engines.contract.tasks import PutTasks
from .settling import Settling


def forward(
    source: Binding, settling: Settling, put: Put | PutTasks, end: float | None
) -> Operation[Any]:
    """Put at the session's queue, and settle a delivery of ``source``; return the reply to the put.
    Raises the error of a delivery that this process has no more: then nothing was put."""
    while True:
        settle = yield On(source, settling.request())
        reply: ForwardReply = yield until(Forward(source, settle, put), end)
        match reply:
            case Forwarded():
                settling.done(reply.settled)
                return reply.put if isinstance(put, PutTasks) else Added(1)
            case NotSettled():
                error = settling.refusal(reply.why)
                if error is not None:
                    raise error
            case _:
                return reply
