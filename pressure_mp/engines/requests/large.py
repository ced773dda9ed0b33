"""Requests that store and read the contents of large items, in chunks."""

from __future__ import annotations

from ..contract.contents import ReadChunks, ReadChunksReply, StoreChunks, StoreChunksReply
from ..contract.replies import Done, Lost, Outcome
from .contents import Contents
from .dispatch import for_items, for_slots
from .line import Caller
from .state import QueueState, Slot, queue_of


@for_items.does(StoreChunks)
def store_chunks(state: QueueState, request: StoreChunks, caller: Caller) -> StoreChunksReply:
    """Store chunks, if the earlier ones are still kept."""
    if state.closed:
        return Outcome.CLOSED
    if request.first == 0:
        state.contents.sweep("", not state.items)
    return keep_chunks(state.contents, request, caller.lease)


@for_slots.does(ReadChunks)
def read_chunks(slot: Slot, request: ReadChunks, caller: Caller) -> ReadChunksReply:
    """Copy chunks to the caller's memory."""
    state = queue_of(slot, caller.discipline)
    if state is None:
        return Outcome.LOST
    return copy_chunks(state.contents, request, caller.lease)


def keep_chunks(contents: Contents, request: StoreChunks, lease: int) -> Done | Lost:
    """Store chunks of a content, if the earlier ones are still kept."""
    if request.first and not contents.is_kept(request.token):
        return Outcome.LOST
    for number, chunk in enumerate(request.chunks, request.first):
        contents.store(request.token, number, chunk, lease)
    return Outcome.DONE


def copy_chunks(contents: Contents, request: ReadChunks, lease: int) -> Done | Lost:
    """Copy chunks of a content into the rooms of the request."""
    token, first, rooms = request
    for number, room in enumerate(rooms, first):
        if not contents.read(token, number, room):
            return Outcome.LOST
    contents.keep_on(token, lease)
    return Outcome.DONE
