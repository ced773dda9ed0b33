from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Any

from ..context import CONTEXT
from ..server import Site
from .base import Ends, Peer


@dataclass(frozen=True)
class Shared:
    queue: Queue[Any]

    def connect(self) -> Ends:
        return Ends(self.queue.put, self.queue.get, close=self._close)

    def _close(self) -> None:
        self.queue.close()
        self.queue.join_thread()

    def remove(self) -> None:
        self.queue.close()


@dataclass(frozen=True)
class MultiprocessingQueue(Peer):
    """`multiprocessing.Queue`: a pipe and a feeder thread, on one machine."""

    waits_at_server = False

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(CONTEXT.Queue(maxsize))
