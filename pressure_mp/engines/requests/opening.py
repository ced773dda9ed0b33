"""Requests to a queue that may not exist: to create, find and delete it."""

from __future__ import annotations

from ..contract.contents import SweepContents, SweepContentsReply
from ..contract.items import TakeBack, TakeBackReply
from ..contract.queues import (
    Delete,
    DeleteReply,
    Dismiss,
    DismissReply,
    Existing,
    Exists,
    ExistsReply,
    How,
    Mismatch,
    Open,
    Opened,
    OpenReply,
)
from ..contract.replies import Outcome
from .dispatch import for_places, for_slots
from .life import TaskPlace
from .line import Caller
from .state import Slot, queue_of


@for_slots.does(Open)
def open_queue(slot: Slot, request: Open, caller: Caller) -> OpenReply:
    """Create a queue, or check that the existing one has the same discipline."""
    state = slot.state
    if state is None and request.how is How.ATTACH:
        return Outcome.MISSING
    if state is None:
        state = slot.create(request.bound, caller.discipline)
    elif request.how is How.CREATE:
        return Existing(state.bound)
    elif state.discipline != caller.discipline:
        return Mismatch("discipline", state.discipline, caller.discipline)
    if request.user:
        state.users.add(request.user)
    return Opened(state.bound)


@for_slots.does(Exists)
def exists(slot: Slot, request: Exists, caller: Caller) -> ExistsReply:
    return queue_of(slot, caller.discipline) is not None


@for_places.does(Exists)
def tasks_exist(place: TaskPlace, request: Exists, caller: Caller) -> ExistsReply:
    return place.state is not None


@for_slots.does(Delete)
def delete(slot: Slot, request: Delete, caller: Caller) -> DeleteReply:
    """Delete the queue, without waiting for other clients."""
    if queue_of(slot, caller.discipline) is None:
        return Outcome.MISSING
    slot.delete()
    return Outcome.DONE


@for_slots.does(Dismiss)
def dismiss(slot: Slot, request: Dismiss, caller: Caller) -> DismissReply:
    """Remove users; the last one removes the queue. A queue that had no users stays."""
    state = queue_of(slot, caller.discipline)
    if state is None or not state.users:
        return Outcome.MISSING
    state.users -= {*request.users}
    number = len(state.users)
    if not number:
        slot.delete()
    return number


@for_slots.does(SweepContents)
def sweep_contents(slot: Slot, request: SweepContents, caller: Caller) -> SweepContentsReply:
    """Remove all contents that are not needed, at once."""
    state = queue_of(slot, caller.discipline)
    if state is not None:
        state.contents.sweep(request.token, not state.items)
    return False


@for_slots.does(TakeBack)
def take_back(slot: Slot, request: TakeBack, caller: Caller) -> TakeBackReply:
    """Refuse: no session here has a take to undo."""
    return Outcome.DONE if queue_of(slot, caller.discipline) else Outcome.MISSING
