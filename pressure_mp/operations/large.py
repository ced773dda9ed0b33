"""The contents of large items: sent before the manifest is queued, read after it was got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ..effects import Operation, Until
from ..encoding.large import Large, Manifest, divide
from ..engines.contract.contents import (
    MOST_CHUNKS,
    ReadChunks,
    ReadChunksReply,
    StoreChunks,
    StoreChunksReply,
    SweepContents,
    SweepContentsReply,
)
from ..engines.contract.replies import Closed, Done, Missing, Outcome
from ..engines.contract.session import ONE_TRY
from ..exceptions import PressureError


def store(large: Large, end: float | None) -> Operation[Done | Closed | Missing]:
    """Send a content, some chunks at a time; for a lease from then on its manifest can be put."""
    while True:
        for first, chunks in in_requests(large.segments):
            reply: StoreChunksReply = yield Until(StoreChunks(large.token, first, chunks), end)
            if reply is not Outcome.DONE:
                break
        if reply is not Outcome.LOST:
            return reply


def fetch(manifest: Manifest) -> Operation[list[bytearray] | None]:
    """Read a content, some chunks at a time; None when it is no longer there."""
    segments = manifest.allocate()
    for first, rooms in in_requests([memoryview(segment) for segment in segments]):
        reply: ReadChunksReply = yield ReadChunks(manifest.token, first, rooms)
        if reply is not Outcome.DONE:
            return None
    return segments


def in_requests(segments: Sequence[memoryview]) -> Iterator[tuple[int, list[list[memoryview]]]]:
    """Split segments into the chunks of one request after the other, each with the number of its
    first chunk."""
    chunks, first = divide(segments), 0
    while some := list(islice(chunks, MOST_CHUNKS)):
        yield first, some
        first += len(some)


def sweep(token: str = "") -> Operation[None]:
    """Remove the content of ``token``, unless it is queued; and other contents that are not
    needed."""
    left = True
    try:
        while left:
            reply: SweepContentsReply = yield Until(SweepContents(token), ONE_TRY)
            left = reply
    except PressureError:
        pass  # later calls sweep too
