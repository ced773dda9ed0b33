"""The contents of large items come in chunks and are read in chunks."""

from __future__ import annotations

from ..contract.contents import ReadChunk, ReadChunkReply, StoreChunk, StoreChunkReply
from ..contract.replies import Outcome
from .line import Caller
from .state import QueueState, Slot


def store_chunk(state: QueueState, request: StoreChunk, caller: Caller) -> StoreChunkReply:
    """Keep a chunk, if those before it were kept."""
    if state.closed:
        return Outcome.CLOSED
    contents = state.contents
    if request.number == 0:
        contents.sweep("", not state.items)
    elif not contents.is_kept(request.token):
        return Outcome.LOST
    contents.store(request.token, request.number, request.chunk, caller.lease)
    return Outcome.DONE


def read_chunk(slot: Slot, request: ReadChunk, caller: Caller) -> ReadChunkReply:
    """Copy a chunk to the caller's memory."""
    token, number, room = request
    if slot.state is None or not slot.state.contents.read(token, number, room):
        return Outcome.LOST
    slot.state.contents.keep_on(token, caller.lease)
    return Outcome.DONE
