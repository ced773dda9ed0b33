"""Requests about the content of large items, which is kept beside the queue, in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .replies import Closed, Done, Lost, Missing

#: How many chunks a request has at most.
MOST_CHUNKS = 10


class StoreChunks(NamedTuple):
    """Keep chunks, the first of which has that number, for a lease; with number 0 the content
    begins.

    ``token`` names the content. LOST: nothing came for longer than a lease, so those before these
    may have been removed.
    """

    token: str
    first: int
    chunks: Sequence[Sequence[memoryview]]


StoreChunksReply = Done | Lost | Closed | Missing


class ReadChunks(NamedTuple):
    """Read chunks, the first of which has that number, into the memory that is given for each. The
    content of an item that was taken stays for another lease. LOST: one of them is not there, or
    the queue is not."""

    token: str
    first: int
    rooms: Sequence[Sequence[memoryview]]


ReadChunksReply = Done | Lost


class SweepContents(NamedTuple):
    """Remove some of what nobody needs any more, and the content of ``token``, unless it is queued.
    The reply is whether there is more to remove."""

    token: str = ""


SweepContentsReply = bool
