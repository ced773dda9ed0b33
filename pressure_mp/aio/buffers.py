"""The items of one handle of asyncio in one event loop."""

from __future__ import annotations

from functools import partial

from ..handles.objects import ObjectAttachment
from .buffered_put import DirectPut
from .handles import run_open
from .incoming import DirectGet, Reserving


class Buffers:
    """How a handle puts and gets in this loop: at once, or from a buffer."""

    __slots__ = ("incoming", "outgoing")

    def __init__(self, queue: ObjectAttachment) -> None:
        self.outgoing = DirectPut()
        self.incoming = DirectGet()
        if queue.buffering.reserves:
            self.incoming = Reserving(partial(run_open, queue), queue)
