"""Requests that put, take and prefetch items."""

from __future__ import annotations

import itertools

from ...encoding.large import token_of
from ..contract.items import (
    Added,
    HandOut,
    HandOutReply,
    NextIsLarge,
    NotComparable,
    Prefetch,
    PrefetchReply,
    Put,
    PutReply,
    Take,
    Taken,
    TakeReply,
)
from ..contract.replies import Closed, Ended, NoItem, NoSpace, Outcome
from .clock import milliseconds
from .dispatch import for_items
from .line import Caller
from .orders import Entry
from .returning import put_back
from .state import Delivery, QueueState, Reader, handle_of, owner_of


@for_items.does(Put)
def put(state: QueueState, request: Put, caller: Caller) -> PutReply:
    """Add items while there is space, up to the first one that cannot be compared."""
    if state.closed:
        return Outcome.CLOSED
    if request.has_content:
        token = token_of(request.items[0])
        if not state.contents.is_kept(token):
            return Outcome.LOST
        state.contents.keep(token, caller.lease)
    if request.waits and not state.lines.putters.is_next(caller):
        return NoSpace(len(state.items))
    added = 0
    for item, sort_key in itertools.zip_longest(request.items, request.sort_keys, fillvalue=b""):
        if not (request.overfill or state.has_space):
            return Added(added) if added else NoSpace(len(state.items))
        other = state.items.find_not_comparable(sort_key)
        if other is not None:
            return Added(added) if added else NotComparable(other)
        state.add(item, sort_key, caller.client)
        added += 1
    return Added(added)


@for_items.does(Take)
def take(state: QueueState, request: Take, caller: Caller) -> TakeReply:
    """Take items, for good or with a hold."""
    hold, limit = request.hold, request.limit
    if hold is None:
        refused = refusal(state, request, caller)
        return _take_for_good(state, request, caller) if refused is None else refused
    if hold.reader:
        limit = min(limit, _fair_share(state, hold.reader, caller))
    # Items that it prefetched, and is not known to have handed out, may still be requeued.
    counts = bool(hold.reader) and not (
        hold.reader in state.readers and state.readers[hold.reader].left
    )
    if counts:
        state.readers.pop(hold.reader, None)
    refused = refusal(state, request, caller)
    if refused is not None:
        return refused
    taken = _depart(state, state.remove_some(limit, caller.client), hold.owner, caller)
    for entry in taken:
        delivered = entry._replace(deliveries=entry.deliveries + 1)
        _, token = state.contents.weigh(entry.item)
        delivery = Delivery(delivered, hold.owner, hold.call, hold.limit, token)
        state.in_flight[entry.number] = delivery
        state.contents.forget(token)
    if counts:
        until = milliseconds() + caller.lease
        state.readers[hold.reader] = Reader(hold.call, [], 0, until)
    return Taken([entry.item for entry in taken], [entry.number for entry in taken])


def _take_for_good(state: QueueState, request: Take, caller: Caller) -> Taken:
    taken = state.remove_some(request.limit, caller.client)
    _, token = state.contents.weigh(taken[0].item)
    if token:
        state.contents.keep_for_reading(token, caller.lease)
    return Taken([entry.item for entry in taken])


@for_items.does(Prefetch)
def prefetch(state: QueueState, request: Prefetch, caller: Caller) -> PrefetchReply:
    """Take items before they are needed; all items of the reader's last call were handed out."""
    limit = min(request.limit, _fair_share(state, request.reader, caller))
    state.readers.pop(request.reader, None)
    refused = refusal(state, request, caller)
    if refused is not None:
        return refused
    if state.is_next_large:
        return NextIsLarge()
    removed = state.remove_some(limit, caller.client)
    taken = _depart(state, removed, owner_of(request.reader), caller)
    until = milliseconds() + caller.lease
    state.readers[request.reader] = Reader(request.call, taken, 0, until)
    return Taken([entry.item for entry in taken])


def end_of_items(state: QueueState, request: Take | Prefetch) -> Closed | Ended | None:
    """Return the reason why no item will come any more; None while an item is queued or may
    come."""
    if isinstance(request, Prefetch):
        return state.end_of_items(request.until_ended, owner_of(request.reader))
    return state.end_of_items(request.until_ended, request.hold and request.hold.owner)


def refusal(
    state: QueueState, request: Take | Prefetch, caller: Caller
) -> Closed | Ended | NoItem | None:
    """Return the reason why the caller gets no item now; None when it gets one."""
    end = end_of_items(state, request)
    if end is not None:
        return end
    if not state.items:
        return NoItem()
    takers = state.lines.takers
    if not request.waits or takers.is_next(caller):
        return None
    # Callers are served in the order in which they came. A caller without a place is served too
    # when there are items for it and for all callers in line.
    has_enough = len(state.items) >= _limit(request) + takers.count_others(caller)
    return NoItem() if takers.has(caller) or not has_enough else None


def _limit(request: Take | Prefetch) -> int:
    """Return how many items the request may take, whatever others want: a reader takes at most its
    share."""
    is_shared = isinstance(request, Prefetch) or (request.hold is not None and request.hold.reader)
    return 1 if is_shared else request.limit


def _fair_share(state: QueueState, reader: str, caller: Caller) -> int:
    """Return how many items one reader may take: a share among the callers that wait or consume."""
    now = milliseconds()
    active = {handle_of(name) for name, other in state.readers.items() if other.until >= now}
    waiting = state.lines.takers.count_others(caller)
    return max(len(state.items) // (len(active | {handle_of(reader)}) + waiting), 1)


def _depart(state: QueueState, removed: list[Entry], owner: str, caller: Caller) -> list[Entry]:
    """Note removed items as in flight: they get numbers, and their owner a lease."""
    until = milliseconds() + caller.lease
    state.consumers[owner] = max(state.consumers.get(owner, 0), until)
    return [entry._replace(number=entry.number or next(state.numbers)) for entry in removed]


@for_items.does(HandOut)
def hand_out(state: QueueState, request: HandOut, caller: Caller) -> HandOutReply:
    """Note how many items the reader handed out; the others stay, or go back to the front."""
    reader = state.readers.get(request.reader)
    if reader is None or reader.call != request.call:
        return Outcome.LATE
    if request.ends:
        del state.readers[request.reader]
        put_back(state, reader.entries[request.number :])
    else:
        reader.handed = max(request.number, reader.handed)
        reader.until = milliseconds() + caller.lease
    return Outcome.DONE
