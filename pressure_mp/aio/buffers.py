"""The items of one handle of asyncio in one event loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import events
from ..deadlines import seconds_left
from ..effects import AnyOperation
from ..handles.objects import ObjectAttachment
from .buffered_put import BufferedPut, DirectPut
from .handles import run_open
from .read_ahead import DirectGet, ReadAhead


class Buffers:
    """The way in which a handle puts and gets in this loop: at once, or from a buffer."""

    __slots__ = ("_queue", "incoming", "is_off", "outgoing")

    def __init__(self, queue: ObjectAttachment) -> None:
        self._queue = queue
        #: Whether the queue was shut down through the handle: each put asks the broker, which says
        #: so.
        self.is_off = False
        self.outgoing = DirectPut()
        self.incoming = DirectGet()
        if queue.buffering.reserves:
            self.incoming = ReadAhead(partial(run_open, queue), queue)

    async def put(self, item: Any, block: bool, end: float | None) -> AnyOperation[None] | None:
        """Put an item into the buffer; or wait until it may go past the items that are there, and
        return the operation that puts it. On a queue with a bound each put asks the broker."""
        queue = self._queue
        if queue.buffering.puts and self.outgoing.is_unsure and not self.is_off:
            await self._look_for_bound()
        if self.is_off or not queue.buffering.puts:
            if type(self.outgoing) is not DirectPut:
                await self.outgoing.make_way(block, end)
            return queue.putting(item, block, end)
        encoded = queue.codec.encode(item, events.created(queue.operations.destination))
        outgoing = self.outgoing
        if type(encoded) is bytes and isinstance(outgoing, BufferedPut):
            await outgoing.put(encoded)
            return None
        await outgoing.make_way(block, end)
        return queue.operations.put(encoded, block, seconds_left(end))

    async def _look_for_bound(self) -> None:
        queue = self._queue
        if (await run_open(queue, queue.operations.stats())).maxsize:
            queue.buffering = queue.buffering._replace(puts=0)
        elif not isinstance(self.outgoing, BufferedPut):
            self.outgoing = BufferedPut(partial(run_open, queue), queue)
