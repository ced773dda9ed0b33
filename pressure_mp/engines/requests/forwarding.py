"""The request that changes two queues."""

from __future__ import annotations

from typing import Any, cast

from ..contract.forwarding import Forward, Forwarded, ForwardReply, NotSettled, Settlement
from ..contract.items import Acknowledge, Added, Put
from ..contract.tasks import PutTasks
from . import queue, task_queue
from .deliveries import may_acknowledge
from .dispatch import Pair, for_pairs
from .line import Caller
from .settling import may_settle
from .state import queue_of


@for_pairs.does(Forward)
def forward(pair: Pair, request: Forward, caller: Caller) -> ForwardReply:
    """Put if that can be acknowledged, and acknowledge if that was put."""
    source, target = cast(Any, pair)
    if not isinstance(request.settle, Acknowledge):
        task_queue.begin(source)  # once for both steps: nothing becomes due in between
    if isinstance(request.put, PutTasks) and target is not source:
        task_queue.begin(target)
    discipline = request.source.discipline
    if not _may_settle(source, request.settle, discipline):
        return NotSettled(_do(source, request.settle, caller, discipline))
    put = _do(target, request.put, caller, caller.discipline)
    if not isinstance(put, (Added, list)):
        return cast(ForwardReply, put)
    settled = _do(source, request.settle, caller, discipline)
    is_task = not isinstance(request.settle, Acknowledge)
    return Forwarded(put if isinstance(put, list) else [], settled if is_task else None)


def _may_settle(source: Any, settle: Settlement, discipline: str) -> bool:
    if isinstance(settle, Acknowledge):
        state = queue_of(source, discipline)
        return state is not None and may_acknowledge(state, settle)
    return bool(source.state) and may_settle(source.state, settle)


def _do(place: Any, request: Settlement | Put | PutTasks, caller: Caller, discipline: str) -> Any:
    if isinstance(request, (Acknowledge, Put)):
        return queue.do_as(discipline, place, request, caller)
    return task_queue.do_now(place, request, caller)
