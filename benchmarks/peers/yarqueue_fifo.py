from __future__ import annotations

import secrets
from dataclasses import dataclass

from ..server import Site
from .base import Ends, Peer, nothing


@dataclass(frozen=True)
class Shared:
    site: Site
    name: str
    maxsize: int

    def connect(self) -> Ends:
        from yarqueue import Queue

        queue = Queue(self.maxsize, self.name, self.site.client())
        queue.qsize()  # connects
        return Ends(queue.put, queue.get)

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class Yarqueue(Peer):
    """`yarqueue.Queue(maxsize, name, redis)`, its own pickle."""

    distribution = "yarqueue"
    module = "yarqueue"

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(site, f"bench-{secrets.token_hex(8)}", maxsize)
