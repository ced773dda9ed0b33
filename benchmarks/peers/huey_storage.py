from __future__ import annotations

import pickle
import secrets
from dataclasses import dataclass
from typing import Any

from ..server import Site
from .base import Ends, Peer, nothing


@dataclass(frozen=True)
class Shared:
    site: Site
    name: str

    def connect(self) -> Ends:
        from huey.storage import RedisStorage

        storage = RedisStorage(self.name, host="127.0.0.1", port=self.site.port)
        storage.queue_size()  # connects

        def put(item: Any) -> None:
            storage.enqueue(pickle.dumps(item, 5))

        def get() -> Any:
            while True:  # as its consumer does: a dequeue waits for a second at most
                data = storage.dequeue()
                if data is not None:
                    return pickle.loads(data)

        return Ends(put, get)

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class HueyStorage(Peer):
    """`huey.storage.RedisStorage`, its queue alone: `enqueue` and `dequeue`, and pickle."""

    distribution = "huey"
    module = "huey"

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(site, f"bench{secrets.token_hex(8)}")
