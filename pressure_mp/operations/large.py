"""The contents of large items: sent before the manifest is queued, read after it was got."""

from __future__ import annotations

from ..effects import Operation, Until
from ..encoding.large import Large, Manifest, divide
from ..engines.contract.contents import (
    ReadChunk,
    ReadChunkReply,
    StoreChunk,
    StoreChunkReply,
    SweepContents,
    SweepContentsReply,
)
from ..engines.contract.replies import Closed, Done, Missing, Outcome
from ..engines.contract.session import ONE_TRY
from ..exceptions import PressureError


def store(large: Large, end: float | None) -> Operation[Done | Closed | Missing]:
    """Send a content, chunk by chunk; from then on its manifest can be put for a lease."""
    while True:
        for number, chunk in enumerate(divide(large.segments)):
            reply: StoreChunkReply = yield Until(StoreChunk(large.token, number, chunk), end)
            if reply is not Outcome.DONE:
                break
        if reply is not Outcome.LOST:
            return reply


def fetch(manifest: Manifest) -> Operation[list[bytearray] | None]:
    """Read a content, chunk by chunk; None when it is no longer there."""
    segments = manifest.allocate()
    for number, room in enumerate(divide([memoryview(segment) for segment in segments])):
        reply: ReadChunkReply = yield ReadChunk(manifest.token, number, room)
        if reply is not Outcome.DONE:
            return None
    return segments


def sweep(token: str = "") -> Operation[None]:
    """Remove the content of ``token``, unless it is queued; and what nobody needs any more."""
    left = True
    try:
        while left:
            reply: SweepContentsReply = yield Until(SweepContents(token), ONE_TRY)
            left = reply
    except PressureError:
        pass  # whoever comes later sweeps too
