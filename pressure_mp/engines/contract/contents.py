"""Requests about the content of large items, which is kept beside the queue, in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .replies import Closed, Done, Lost, Missing

#: How many chunks a request has at most.
MOST_CHUNKS = 10


class StoreChunks(NamedTuple):
    """Store chunks of a content for a lease. ``first`` is the number of the first of them, 0 for
    the first chunk of the content.

    ``token`` names the content. LOST: no chunk came for longer than a lease, so earlier chunks may
    have been removed.
    """

    token: str
    first: int
    chunks: Sequence[Sequence[memoryview]]


StoreChunksReply = Done | Lost | Closed | Missing


class ReadChunks(NamedTuple):
    """Read chunks from the number ``first`` on, each into one of the ``rooms``. The content of a
    taken item stays for another lease. LOST: a chunk, or the queue, does not exist."""

    token: str
    first: int
    rooms: Sequence[Sequence[memoryview]]


ReadChunksReply = Done | Lost


class SweepContents(NamedTuple):
    """Remove some contents that are no longer needed, and the content of ``token``, unless its item
    is queued. The reply is whether there is more to remove."""

    token: str = ""


SweepContentsReply = bool
