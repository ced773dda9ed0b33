from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..server import Site
from .base import Ends, Peer, nothing

#: The circular buffer of its documentation's example.
RING = 1000 * 1000


@dataclass(frozen=True)
class Shared:
    queue: Any

    def connect(self) -> Ends:
        queue = self.queue

        def get_many(most: int) -> list[Any]:
            found: list[Any] = queue.get_many(max_messages_to_get=most)
            return found

        return Ends(queue.put, queue.get, queue.put_many, get_many)

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class FasterFifo(Peer):
    """`faster_fifo.Queue(1000 * 1000)`, larger for larger items: shared memory, one machine."""

    distribution = "faster-fifo"
    module = "faster_fifo"
    waits_at_server = False

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        from faster_fifo import Queue

        return Shared(Queue(max(RING, 4 * largest * self.batch)))
