"""From a request's type to what does it. mypy says here when the contract has one more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...exhaustive import assert_never
from ..contract.contents import ReadChunks, StoreChunks, SweepContents
from ..contract.fair import GetKeys, GetQueued, GetSnapshot
from ..contract.items import (
    Acknowledge,
    DropRejected,
    EndReservation,
    GetRejected,
    HandOut,
    PeekItems,
    PeekPlaced,
    Prefetch,
    Purge,
    Put,
    ReleaseSpace,
    Renew,
    Requeue,
    RequeueRejected,
    Reserve,
    Retire,
    SetAside,
    Take,
    TakeBack,
)
from ..contract.queues import (
    Close,
    CountDone,
    Delete,
    Dismiss,
    Enlist,
    Exists,
    GetDiscipline,
    GetLength,
    GetStats,
    GetUsers,
    Inspect,
    IsClosed,
    Join,
    Open,
    SetBound,
    Unlock,
)
from ..contract.replies import Outcome
from ..contract.requests import ItemRequest, QueueRequest
from . import administration, deliveries, fair, items, large, opening
from .line import Caller
from .state import QueueState, Slot

R = TypeVar("R")

#: Does a request, and returns one of its replies.
Does = Callable[[Slot, Any, Caller], Any]

_found: dict[type, Does] = {}


def find(request: ItemRequest | QueueRequest) -> Does:
    """What does a request of that type."""
    does = _found.get(type(request))
    if does is None:
        does = _found[type(request)] = _choose(request)
    return does


def _always(kind: type[R], does: Callable[[Slot, R, Caller], Any]) -> Does:
    """Whether there is a queue or not."""
    return does


def _existing(kind: type[R], does: Callable[[QueueState, R, Caller], Any]) -> Does:
    """If there is a queue."""

    def do(slot: Slot, request: R, caller: Caller) -> Any:
        return Outcome.MISSING if slot.state is None else does(slot.state, request, caller)

    return do


def _choose(request: ItemRequest | QueueRequest) -> Does:
    match request:
        case Put():
            return _existing(Put, items.put)
        case ReleaseSpace():
            return _always(ReleaseSpace, items.release_space)
        case Take():
            return _existing(Take, items.take)
        case Prefetch():
            return _existing(Prefetch, items.prefetch)
        case HandOut():
            return _existing(HandOut, items.hand_out)
        case Reserve():
            return _existing(Reserve, items.reserve)
        case EndReservation():
            return _existing(EndReservation, items.end_reservation)
        case Acknowledge():
            return _existing(Acknowledge, deliveries.acknowledge)
        case SetAside():
            return _existing(SetAside, deliveries.set_aside)
        case GetRejected():
            return _existing(GetRejected, deliveries.get_rejected)
        case RequeueRejected():
            return _existing(RequeueRejected, deliveries.requeue_rejected)
        case DropRejected():
            return _existing(DropRejected, deliveries.drop_rejected)
        case PeekItems():
            return _existing(PeekItems, administration.peek)
        case PeekPlaced():
            return _existing(PeekPlaced, administration.peek_placed)
        case Purge():
            return _existing(Purge, administration.purge)
        case Requeue():
            return _existing(Requeue, deliveries.requeue)
        case Renew():
            return _existing(Renew, deliveries.renew)
        case Retire():
            return _existing(Retire, deliveries.retire)
        case CountDone():
            return _existing(CountDone, administration.count_done)
        case Join():
            return _existing(Join, administration.join)
        case GetLength():
            return _existing(GetLength, administration.get_length)
        case GetStats():
            return _existing(GetStats, administration.get_stats)
        case IsClosed():
            return _existing(IsClosed, administration.is_closed)
        case SetBound():
            return _existing(SetBound, administration.set_bound)
        case Close():
            return _existing(Close, administration.close)
        case Unlock():
            return _existing(Unlock, administration.unlock)
        case Inspect():
            return _existing(Inspect, administration.inspect)
        case GetDiscipline():
            return _existing(GetDiscipline, administration.get_discipline)
        case Enlist():
            return _existing(Enlist, administration.enlist)
        case GetUsers():
            return _existing(GetUsers, administration.get_users)
        case StoreChunks():
            return _existing(StoreChunks, large.store_chunks)
        case ReadChunks():
            return _always(ReadChunks, large.read_chunks)
        case GetSnapshot():
            return _existing(GetSnapshot, fair.get_snapshot)
        case GetKeys():
            return _existing(GetKeys, fair.get_keys)
        case GetQueued():
            return _existing(GetQueued, fair.get_queued)
        case Open():
            return _always(Open, opening.open_queue)
        case Exists():
            return _always(Exists, opening.exists)
        case Delete():
            return _always(Delete, opening.delete)
        case Dismiss():
            return _always(Dismiss, opening.dismiss)
        case SweepContents():
            return _always(SweepContents, opening.sweep_contents)
        case TakeBack():
            return _always(TakeBack, opening.take_back)
        case _:
            assert_never(request)
