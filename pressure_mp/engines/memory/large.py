"""The contents of large items come in chunks and are read in chunks."""

from __future__ import annotations

from ..contract.contents import ReadChunks, ReadChunksReply, StoreChunks, StoreChunksReply
from ..contract.replies import Outcome
from .line import Caller
from .state import QueueState, Slot


def store_chunks(state: QueueState, request: StoreChunks, caller: Caller) -> StoreChunksReply:
    """Keep chunks, if those before them were kept."""
    if state.closed:
        return Outcome.CLOSED
    contents = state.contents
    if request.first == 0:
        contents.sweep("", not state.items)
    elif not contents.is_kept(request.token):
        return Outcome.LOST
    for number, chunk in enumerate(request.chunks, request.first):
        contents.store(request.token, number, chunk, caller.lease)
    return Outcome.DONE


def read_chunks(slot: Slot, request: ReadChunks, caller: Caller) -> ReadChunksReply:
    """Copy chunks to the caller's memory."""
    token, first, rooms = request
    if slot.state is None:
        return Outcome.LOST
    for number, room in enumerate(rooms, first):
        if not slot.state.contents.read(token, number, room):
            return Outcome.LOST
    slot.state.contents.keep_on(token, caller.lease)
    return Outcome.DONE
