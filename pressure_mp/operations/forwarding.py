"""Put on one queue, and settle a delivery of another queue in the same step."""

from __future__ import annotations

from typing import Any

from ..effects import Effect, On, Operation, Until, until
from ..engines.contract.forwarding import Forward, Forwarded, ForwardReply, NotSettled
from ..engines.contract.items import Added, Put
from ..engines.contract.session import Binding
from ..engines.contract.tasks import PutTasks
from .settling import Settling


def forward(source: Binding, settling: Settling, effect: Effect) -> Operation[Any]:
    """Do an effect of an operation that puts at the session's queue; in the same step as a put
    settle a delivery of ``source``. Raises the error of a delivery that this process has no more:
    then nothing was put."""
    put, end = effect if type(effect) is Until else (effect, None)
    if not isinstance(put, (Put, PutTasks)):
        return (yield effect)
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
