from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from ..server import Site
from .base import Ends, Peer, nothing


@dataclass(frozen=True)
class Shared:
    url: str
    name: str

    def connect(self) -> Ends:
        from kombu import Connection

        connection = Connection(self.url)
        simple = connection.SimpleQueue(self.name, serializer="pickle", accept=["pickle"])

        def get() -> Any:
            message = simple.get()
            message.ack()
            return message.payload

        def close() -> None:
            simple.close()
            connection.release()

        return Ends(simple.put, get, close=close)

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class KombuSimpleQueue(Peer):
    """`Connection("redis://…").SimpleQueue(name, serializer="pickle")`; each message is acked."""

    distribution = "kombu"
    module = "kombu"

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(site.url, f"bench-{secrets.token_hex(8)}")
