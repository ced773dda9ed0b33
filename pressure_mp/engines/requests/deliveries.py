"""Items in flight, which are requeued unless they are acknowledged, and the leases of their owners.

An owner is a process.
"""

from __future__ import annotations

from ...encoding.large import is_manifest, token_of
from ..contract.items import (
    Acknowledge,
    AcknowledgeReply,
    Attendance,
    DropRejected,
    DropRejectedReply,
    GetRejected,
    GetRejectedReply,
    Renew,
    RenewReply,
    Requeue,
    RequeueRejected,
    RequeueRejectedReply,
    RequeueReply,
    Retire,
    RetireReply,
    SetAside,
    SetAsideReply,
)
from ..contract.replies import Outcome
from .dispatch import for_items
from .line import Caller
from .state import Delivery, QueueState, owner_of
from .storage import Entry


def put_back(state: QueueState, back: list[Entry]) -> None:
    """Requeue items at the front, in the order of their numbers; drop them if the queue was shut
    down with ``immediate``."""
    if state.dropping:
        state.counts.add("done", len(back))
        return
    count_back(state, back)
    items = state.items
    back = sorted(back, key=_number)
    while back and items and 0 < items.next().number < back[-1].number:
        back = sorted([*back, items.take()], key=_number)
    items.put_in_front(back)


def count_back(state: QueueState, back: list[Entry]) -> None:
    """Count items as not taken."""
    state.counts.add("consumed_messages", -len(back))
    size = sum(state.contents.weigh(entry.item)[0] for entry in back)
    state.counts.add("consumed_bytes", -size)


def _number(entry: Entry) -> int:
    return entry.number


def comes_back(state: QueueState, delivery: Delivery) -> bool:
    """Tell whether an item in flight is requeued; otherwise drop it or set it aside, and count it
    as done."""
    if state.dropping:
        state.contents.end(delivery.token)
        state.counts.add("done", 1)
        return False
    if 0 < delivery.limit <= delivery.entry.deliveries:
        state.rejected.append(delivery.entry.item)
        state.counts.add("done", 1)
        return False
    if delivery.token:
        state.contents.queue(delivery.token)
    return True


def may_acknowledge(state: QueueState, request: Acknowledge) -> bool:
    """Tell whether the request, which names an item, would count it as done."""
    assert request.number is not None
    delivery = state.in_flight.get(request.number)
    if delivery is None or delivery.owner != request.owner or delivery.passed:
        return False
    return state.unfinished > 0


@for_items.does(Acknowledge)
def acknowledge(state: QueueState, request: Acknowledge, caller: Caller) -> AcknowledgeReply:
    """Count one item as done."""
    token = ""
    if request.number is None:
        left = (number for number, delivery in state.in_flight.items() if not delivery.passed)
        oldest = state.in_flight.get(min(left, default=0))
        if oldest is not None:
            oldest.passed = True
            token = oldest.token
    else:
        delivery = state.in_flight.get(request.number)
        if delivery is None or delivery.owner != request.owner:
            return Outcome.LATE
        del state.in_flight[request.number]
        if delivery.passed:
            return Outcome.PASSED
        token = delivery.token
    state.contents.end(token)
    if state.unfinished <= 0:
        return Outcome.EXCESS
    state.counts.add("done", 1)
    return Outcome.DONE


@for_items.does(SetAside)
def set_aside(state: QueueState, request: SetAside, caller: Caller) -> SetAsideReply:
    """Set an item aside, and count it as done. Its content stays as long as the queue."""
    if request.number is not None:
        delivery = state.in_flight.get(request.number)
        if delivery is None or delivery.owner != request.owner or delivery.passed:
            return Outcome.LATE
        del state.in_flight[request.number]
    _, token = state.contents.weigh(request.item)
    state.contents.forget(token)
    state.rejected.append(request.item)
    state.counts.add("done", 1)
    return Outcome.DONE


@for_items.does(GetRejected)
def get_rejected(state: QueueState, request: GetRejected, caller: Caller) -> GetRejectedReply:
    """List the items that were set aside, oldest first."""
    return state.rejected[: request.limit]


@for_items.does(RequeueRejected)
def requeue_rejected(
    state: QueueState, request: RequeueRejected, caller: Caller
) -> RequeueRejectedReply:
    """Put an item again that was set aside, whatever the bound is."""
    if state.closed:
        return Outcome.CLOSED
    if request.item not in state.rejected:
        return Outcome.ABSENT
    state.rejected.remove(request.item)
    # An item with the form of a manifest, but without a content here, is an item like any other.
    if is_manifest(request.item) and state.contents.is_there(token_of(request.item)):
        state.contents.queue(token_of(request.item))
    state.add(request.item, b"", caller.client)
    return Outcome.DONE


@for_items.does(DropRejected)
def drop_rejected(state: QueueState, request: DropRejected, caller: Caller) -> DropRejectedReply:
    """Remove an item that was set aside, and its content."""
    if request.item not in state.rejected:
        return Outcome.ABSENT
    state.rejected.remove(request.item)
    if is_manifest(request.item):
        state.contents.end(token_of(request.item))
    return Outcome.DONE


@for_items.does(Requeue)
def requeue(state: QueueState, request: Requeue, caller: Caller) -> RequeueReply:
    """Requeue the items that an owner has in flight, or some of them."""
    if request.seen is not None and state.consumers.get(request.owner) != request.seen:
        return Outcome.RENEWED
    back = []
    for number, delivery in sorted(state.in_flight.items()):
        if not _is_wanted(number, delivery, request):
            continue
        del state.in_flight[number]
        if request.numbers:  # no get returned it
            before = delivery.entry.deliveries - 1
            delivery.entry, delivery.limit = delivery.entry._replace(deliveries=before), 0
        if not delivery.passed and comes_back(state, delivery):
            back.append(delivery.entry)
            state.counts.add("returned", not request.numbers)
    if request.call is None and not request.numbers:
        state.consumers.pop(request.owner, None)
        back += _prefetched(state, request, caller)
    put_back(state, back)
    return Outcome.DONE


def _is_wanted(number: int, delivery: Delivery, request: Requeue) -> bool:
    """Tell whether the request names this item."""
    return (
        delivery.owner == request.owner
        and request.call in (None, delivery.call)
        and (not request.numbers or number in request.numbers)
    )


def _prefetched(state: QueueState, request: Requeue, caller: Caller) -> list[Entry]:
    """Take away the items that an owner's readers have not handed out, and return them. A reader
    can ask for another lease how many count as handed out."""
    back, handed = [], dict(request.handed)
    for name in [name for name in state.readers if owner_of(name) == request.owner]:
        reader = state.readers[name]
        if reader.until and reader.call:
            state.consumers[request.owner] = state.clock() + caller.lease
        else:
            del state.readers[name]
        back += reader.end(reader.call, handed.get(name, 0))
    return back


@for_items.does(Renew)
def renew(state: QueueState, request: Renew, caller: Caller) -> RenewReply:
    """Renew leases, and return the leases of all owners."""
    now = state.clock()
    if request.consumes:
        state.consumers[request.owner] = now + caller.lease
    if request.produces:
        state.had_producers = True
        state.producers[request.owner] = now + caller.lease
    return Attendance(now, dict(state.consumers), dict(state.producers))


@for_items.does(Retire)
def retire(state: QueueState, request: Retire, caller: Caller) -> RetireReply:
    """Remove an owner's lease as a producer."""
    if request.seen is not None and state.producers.get(request.owner) != request.seen:
        return Outcome.RENEWED
    state.producers.pop(request.owner, None)
    return Outcome.DONE
