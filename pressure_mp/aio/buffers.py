"""The items of one handle of asyncio in one event loop."""

from __future__ import annotations

from ..handles.objects import ObjectAttachment
from .buffered_put import DirectPut
from .incoming import DirectGet, Reserving, Run


class Buffers:
    """How a handle puts and gets in this loop: at once, or from a buffer."""

    __slots__ = ("incoming", "outgoing")

    def __init__(self, run: Run, queue: ObjectAttachment) -> None:
        self.outgoing = DirectPut()
        self.incoming = Reserving(run, queue) if queue.buffering.reserves else DirectGet()
