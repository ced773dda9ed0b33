from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from ..server import Site
from .base import Ends, Peer, nothing

#: Seconds that one dequeue waits; rq has none that waits without limit.
PATIENCE = 60


def task(item: Any) -> None:
    """The job's function. No worker calls it: the queue is measured, not the worker."""


@dataclass(frozen=True)
class Shared:
    site: Site
    name: str

    def connect(self) -> Ends:
        from rq import Queue

        client = self.site.client()
        queue = Queue(self.name, connection=client)
        queue.get_redis_server_version()

        def get() -> Any:
            found = Queue.dequeue_any([queue], PATIENCE, client)
            assert found
            return found[0].args[0]

        return Ends(lambda item: queue.enqueue(task, item), get)

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class RqQueue(Peer):
    """`Queue.enqueue(task, item)` and `Queue.dequeue_any`: its queue, without its worker."""

    distribution = "rq"
    module = "rq"

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(site, f"bench-{secrets.token_hex(8)}")
