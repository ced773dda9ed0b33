"""Requests about the content of large items, which is kept beside the queue, in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .replies import Closed, Done, Lost, Missing


class StoreChunk(NamedTuple):
    """Keep the chunk of that number, from 0 on, for a lease; with the first the content begins.

    ``token`` names the content. LOST: nothing came for longer than a lease, so those before this
    one may have been removed.
    """

    token: str
    number: int
    chunk: Sequence[memoryview]


StoreChunkReply = Done | Lost | Closed | Missing


class ReadChunk(NamedTuple):
    """Read a chunk into the memory that is given for it. The content of an item that was taken
    stays for another lease. LOST: it is not there, or the queue is not."""

    token: str
    number: int
    room: Sequence[memoryview]


ReadChunkReply = Done | Lost


class SweepContents(NamedTuple):
    """Remove some of what nobody needs any more, and the content of ``token``, unless it is queued.
    The reply is whether there is more to remove."""

    token: str = ""


SweepContentsReply = bool
