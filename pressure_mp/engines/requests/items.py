"""Requests that put, take and prefetch items."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ...encoding.large import token_of
from ..contract.items import (
    Added,
    EndPrefetch,
    EndPrefetchReply,
    HandedOut,
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
from ..contract.replies import Closed, Ended, Late, NoItem, NoSpace, Outcome
from .deliveries import put_back
from .dispatch import for_items, for_slots
from .line import Caller, Line
from .state import Delivery, QueueState, Reader, Slot, owner_of, queue_of
from .storage import Entry


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
    if request.waits and not _goes_first(
        state.lines.putters, caller, lambda: state.space - len(request.items)
    ):
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
    counts = bool(hold.reader) and not state.readers.get(hold.reader, Reader()).call
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
        until = state.clock() + caller.lease
        state.readers[hold.reader] = Reader(until=until)
    return Taken([entry.item for entry in taken], [entry.number for entry in taken])


def _take_for_good(state: QueueState, request: Take, caller: Caller) -> Taken:
    taken = state.remove_some(request.limit, caller.client)
    _, token = state.contents.weigh(taken[0].item)
    if token:
        state.contents.keep_for_reading(token, caller.lease)
    return Taken([entry.item for entry in taken])


@for_items.does(Prefetch)
def prefetch(state: QueueState, request: Prefetch, caller: Caller) -> PrefetchReply:
    """Take items before they are needed."""
    name, call, handed, kept, limit, until_ended, *_ = request
    reader = state.readers.get(name, Reader())
    if not limit:
        return _note_handed(state, reader, request, caller)
    if call <= reader.call or kept > len(reader.left):
        return Outcome.LATE
    left = reader.left[len(reader.left) - kept :]
    until = state.clock() + caller.lease
    refused = _prefetch_refusal(state, until_ended, owner_of(name))
    if refused is not None:
        if reader.call:
            state.readers[name] = Reader(call, left, handed, until if kept else 0)
        return refused
    removed = state.remove_some(min(limit, _fair_share(state, name, caller)), caller.client)
    taken = _depart(state, removed, owner_of(name), caller)
    state.readers[name] = Reader(call, left + taken, handed, until)
    return Taken([entry.item for entry in taken])


def _note_handed(
    state: QueueState, reader: Reader, request: Prefetch, caller: Caller
) -> Taken | Late:
    """Note how many items the reader handed out."""
    number = request.handed - reader.handed
    if reader.call != request.call or not reader.until or number > len(reader.left):
        return Outcome.LATE
    if number > 0:
        reader.left, reader.handed = reader.left[number:], request.handed
    reader.until = state.clock() + caller.lease
    return Taken([])


def _prefetch_refusal(
    state: QueueState, until_ended: bool, owner: str
) -> Closed | Ended | NoItem | NextIsLarge | None:
    """Return the reason why a reader gets no item now; None when it gets one."""
    if not state.items:
        return state.end_of_items(until_ended, owner) or NoItem()
    return NextIsLarge() if state.is_next_large else None


@for_slots.does(EndPrefetch)
def end_prefetch(slot: Slot, request: EndPrefetch, caller: Caller) -> EndPrefetchReply:
    """Put the items back that the reader does not hand out."""
    state = queue_of(slot, caller.discipline)
    if state is None:
        return HandedOut(0)
    reader = state.readers.setdefault(request.reader, Reader())
    if not reader.call:
        until = state.clock() + caller.lease
        state.consumers.setdefault(owner_of(request.reader), until)
    put_back(state, reader.end(max(request.call, reader.call), request.handed))
    return HandedOut(reader.handed)


def end_of_items(state: QueueState, request: Take) -> Closed | Ended | None:
    """Return the reason why no item will come any more; None while an item is queued or may
    come."""
    return state.end_of_items(request.until_ended, request.hold and request.hold.owner)


def refusal(state: QueueState, request: Take, caller: Caller) -> Closed | Ended | NoItem | None:
    """Return the reason why the caller gets no item now; None when it gets one."""
    end = end_of_items(state, request)
    if end is not None:
        return end
    if not state.items:
        return NoItem()
    # A reader takes at most its share.
    limit = 1 if request.hold is not None and request.hold.reader else request.limit
    is_served = not request.waits or _goes_first(
        state.lines.takers, caller, lambda: len(state.items) - limit
    )
    return None if is_served else NoItem()


def _goes_first(line: Line, caller: Caller, left: Callable[[], float]) -> bool:
    """Tell whether a call that may wait goes before all callers in line. These are served in the
    order in which they came. A caller without a place goes first when its call leaves an item, or
    space, for each of them. This calls ``left`` only when others are in line, since a transaction
    that has read the number of items conflicts with each put and get."""
    return line.is_next(caller) or (not line.has(caller) and left() >= line.count_others(caller))


def _fair_share(state: QueueState, reader: str, caller: Caller) -> int:
    """Return how many items one reader may take: a share among the callers that wait or consume."""
    now = state.clock()
    active = {name for name, other in state.readers.items() if other.until >= now}
    waiting = state.lines.takers.count_others(caller)
    return max(len(state.items) // (len(active | {reader}) + waiting), 1)


def _depart(state: QueueState, removed: list[Entry], owner: str, caller: Caller) -> list[Entry]:
    """Note removed items as in flight: they get numbers, and their owner a lease."""
    until = state.clock() + caller.lease
    state.consumers.extend(owner, until)
    return [entry._replace(number=entry.number or state.next_number()) for entry in removed]
