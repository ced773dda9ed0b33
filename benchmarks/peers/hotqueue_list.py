from __future__ import annotations

import functools
import secrets
from dataclasses import dataclass

from ..server import Site
from .base import Ends, Peer, nothing


@dataclass(frozen=True)
class Shared:
    site: Site
    name: str

    def connect(self) -> Ends:
        from hotqueue import HotQueue

        # Without a socket timeout of its own, redis-py 8 ends a get after five idle seconds.
        queue = HotQueue(self.name, host="127.0.0.1", port=self.site.port, socket_timeout=None)
        len(queue)  # connects
        return Ends(queue.put, functools.partial(queue.get, block=True))

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class HotQueueList(Peer):
    """`HotQueue(name, host=…, port=…)`, its own pickle; `get(block=True)`."""

    distribution = "hotqueue"
    module = "hotqueue"

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(site, f"bench-{secrets.token_hex(8)}")
