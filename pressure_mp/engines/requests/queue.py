"""Do a request to a queue of items, and serve the callers that wait there."""

from __future__ import annotations

from typing import Any

from ..contract.brokers import QueueSummary
from ..contract.default_replies import default_reply
from ..contract.items import Put, Take
from ..contract.queues import GetDiscipline, Join
from ..contract.replies import NoItem, NoSpace, Outcome, Unfinished
from ..contract.requests import Request
from .dispatch import for_items, for_slots
from .items import end_of_items
from .line import Caller, Line, Lines, Wish
from .state import QueueState, Slot, queue_of

_WISHES = (Put, Take, Join)
_NOT_SERVED = (NoSpace, NoItem, Unfinished)


def do(slot: Slot, request: Request, caller: Caller) -> Any:
    """Do a request, and wake the callers that can be served because of it.

    A caller that waits and was not served gets a place in line, or keeps it. A caller that was
    served, or whose request does not wait, gives up its place.
    """
    return do_as(caller.discipline, slot, request, caller)


def do_as(discipline: str, slot: Slot, request: Request, caller: Caller) -> Any:
    """Do the same for a queue of this discipline, which the caller's session may be beside."""
    kind = type(request)
    if (do_there := for_items.get(kind)) is not None:
        state = slot.state if kind is GetDiscipline else queue_of(slot, discipline)
        reply = Outcome.MISSING if state is None else do_there(state, request, caller)
    elif (do_anyway := for_slots.get(kind)) is not None:
        reply = do_anyway(slot, request, caller)
    else:
        return default_reply(request)
    state = slot.state
    if isinstance(request, _WISHES):
        _keep_place(state, slot.lines, request, reply, caller)
    wake_ready(state, slot.lines)
    return reply


def leave(slot: Slot, caller: Caller) -> None:
    """Give up the caller's place, and wake the next caller for what this one was woken for."""
    for line in slot.lines.all:
        line.leave(caller)
    wake_ready(slot.state, slot.lines)


def summarize(slot: Slot, name: str) -> QueueSummary | None:
    """Make the summary with which the queue is listed; None when it does not exist."""
    state = slot.state
    if state is None:
        return None
    return QueueSummary(
        name=name,
        discipline=state.discipline,
        length=len(state.items),
        maxsize=state.bound,
        closed=state.closed,
        produced=state.counts.value("produced_messages"),
        consumed=state.counts.value("consumed_messages"),
        in_flight=state.number_in_flight,
        rejected=len(state.rejected),
        putting=len(state.lines.putters),
        getting=len(state.lines.takers),
        age=None,
        tasks={},
        returned=state.counts.value("returned"),
    )


def _keep_place(
    state: QueueState | None, lines: Lines, wish: Wish, reply: Any, caller: Caller
) -> None:
    line = _line(lines, wish)
    waits = True if isinstance(wish, Join) else wish.waits
    if state is None or not waits or not isinstance(reply, _NOT_SERVED):
        line.leave(caller)
        return
    line.keep_place(caller, wish)
    # The producer of a queue is the caller that waits for space; its consumer is the caller that
    # waits for an item.
    if line is lines.putters and line.is_next(caller):
        state.producer = caller.client
    elif line is lines.takers and line.is_next(caller):
        state.consumer = caller.client


def _line(lines: Lines, wish: Wish) -> Line:
    match wish:
        case Put():
            return lines.putters
        case Take():
            return lines.takers
        case Join():
            return lines.joiners


def wake_ready(state: QueueState | None, lines: Lines) -> None:
    """Wake the waiting callers that would be served, or told that the wait is in vain."""
    for line in lines.all:
        for caller, place in line.waiting() if line else ():
            if _can_go_on(state, place.wish, line.is_next(caller)):
                caller.wake()
            if not _is_over(state, place.wish):
                break  # only the first in line can be served


def _can_go_on(state: QueueState | None, wish: Wish, is_next: bool) -> bool:
    """Tell whether a waiting caller would be served, or told that the wait is in vain."""
    if state is None:
        return True
    match wish:
        case Put():
            return state.closed or (is_next and state.has_space)
        case Take():
            return bool(end_of_items(state, wish) or (is_next and state.items))
        case Join():
            return state.unfinished <= 0


def _is_over(state: QueueState | None, wish: Wish) -> bool:
    """Tell whether several callers in such a line may be told that the wait is in vain."""
    if state is None:
        return True
    match wish:
        case Put():
            return state.closed
        case Take():
            return not state.items and (state.closed or state.has_no_producers)
        case Join():
            return state.unfinished <= 0
