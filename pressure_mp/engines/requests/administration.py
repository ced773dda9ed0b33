"""Requests that read the counts and items of a queue, or that change all of it."""

from __future__ import annotations

from ..contract.items import (
    PeekItems,
    PeekItemsReply,
    Purge,
    PurgeReply,
)
from ..contract.queues import (
    Close,
    CloseReply,
    CountDone,
    CountDoneReply,
    Enlist,
    EnlistReply,
    GetDiscipline,
    GetDisciplineReply,
    GetLength,
    GetLengthReply,
    GetStats,
    GetStatsReply,
    GetUsers,
    GetUsersReply,
    Inspect,
    Inspection,
    InspectReply,
    IsClosed,
    IsClosedReply,
    Join,
    JoinReply,
    SetBound,
    SetBoundReply,
    Stats,
)
from ..contract.replies import Outcome, Unfinished
from .dispatch import for_items, for_tasks
from .life import Life
from .line import Caller, describe
from .state import QueueState


@for_items.does(GetDiscipline)
def get_discipline(state: QueueState, request: GetDiscipline, caller: Caller) -> GetDisciplineReply:
    return state.discipline


@for_items.does(Enlist, also=for_tasks)
def enlist(state: QueueState | Life, request: Enlist, caller: Caller) -> EnlistReply:
    state.users.add(request.user)
    return Outcome.DONE


@for_items.does(GetUsers, also=for_tasks)
def get_users(state: QueueState | Life, request: GetUsers, caller: Caller) -> GetUsersReply:
    """List the processes that were noted as users."""
    return list(state.users)


@for_items.does(GetLength)
def get_length(state: QueueState, request: GetLength, caller: Caller) -> GetLengthReply:
    """Count the queued items."""
    return len(state.items)


@for_items.does(IsClosed)
def is_closed(state: QueueState, request: IsClosed, caller: Caller) -> IsClosedReply:
    """Tell whether the queue was shut down."""
    return state.dropping if request.immediate else state.closed


@for_items.does(GetStats)
def get_stats(state: QueueState, request: GetStats, caller: Caller) -> GetStatsReply:
    return Stats(
        length=len(state.items),
        maxsize=state.bound,
        closed=state.closed,
        produced_messages=state.counts.value("produced_messages"),
        produced_bytes=state.counts.value("produced_bytes"),
        consumed_messages=state.counts.value("consumed_messages"),
        consumed_bytes=state.counts.value("consumed_bytes"),
        producer=state.producer,
        consumer=state.consumer,
        unfinished=state.unfinished,
        rejected=len(state.rejected),
        in_flight=state.number_in_flight,
    )


@for_items.does(Inspect)
def inspect(state: QueueState, request: Inspect, caller: Caller) -> InspectReply:
    """List the waiting clients. The first client of each line keeps that end until it is served."""
    putters, takers = state.lines.putters, state.lines.takers
    return Inspection(
        now=state.clock(),
        length=len(state.items),
        bound=state.bound,
        closed=state.closed,
        has_space=state.has_space,
        deleting=False,
        producer=describe(putters, state.producer, request.limit),
        consumer=describe(takers, state.consumer, request.limit),
        partial=max(len(putters), len(takers)) > request.limit + 1,
    )


@for_items.does(SetBound)
def set_bound(state: QueueState, request: SetBound, caller: Caller) -> SetBoundReply:
    """Change the bound; items beyond it stay."""
    state.bound = request.bound
    return Outcome.DONE


@for_items.does(CountDone)
def count_done(state: QueueState, request: CountDone, caller: Caller) -> CountDoneReply:
    if state.unfinished <= 0:
        return Outcome.EXCESS
    state.counts.add("done", 1)
    return Outcome.DONE


@for_items.does(Join)
def join(state: QueueState, request: Join, caller: Caller) -> JoinReply:
    return Unfinished(state.unfinished) if state.unfinished > 0 else Outcome.DONE


@for_items.does(Close)
def close(state: QueueState, request: Close, caller: Caller) -> CloseReply:
    """Shut the queue down, without waiting for other clients."""
    if state.closed and request.once:
        return Outcome.CLOSED
    if not state.closed:
        state.closed = True
        state.producer = caller.client
    if request.immediate:
        state.dropping = True
        state.counts.add("done", len(state.items))
        state.items.clear()
        state.contents.end_queued()
    return Outcome.DONE


@for_items.does(PeekItems)
def peek(state: QueueState, request: PeekItems, caller: Caller) -> PeekItemsReply:
    """List the next items."""
    return state.items.peek(request.start, request.limit)


@for_items.does(Purge)
def purge(state: QueueState, request: Purge, caller: Caller) -> PurgeReply:
    """Drop all queued items, without waiting for other clients."""
    number = len(state.items)
    if number:
        counts = state.counts
        size = counts.value("produced_bytes") - counts.value("consumed_bytes")
        counts.add("done", number)
        counts.add("consumed_messages", number)
        counts.add("consumed_bytes", max(size, 0))
    state.items.clear()
    state.contents.end_queued()
    return number
