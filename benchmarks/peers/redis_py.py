from __future__ import annotations

import pickle
import secrets
from dataclasses import dataclass
from typing import Any

from ..server import Site
from .base import Ends, Peer, nothing


def dumps(item: Any) -> bytes:
    return pickle.dumps(item, 5)


@dataclass(frozen=True)
class Shared:
    site: Site
    name: str

    @property
    def list(self) -> str:
        """The server's list of the items."""
        return self.name

    def connect(self) -> Ends:
        client = self.site.client()
        client.ping()
        return self.ends(client)

    def ends(self, client: Any) -> Ends:
        name = self.name

        def put(item: Any) -> None:
            client.lpush(name, dumps(item))

        def get() -> Any:
            return pickle.loads(client.brpop(name)[1])

        return Ends(put, get)

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class RedisPy(Peer):
    """`Redis.lpush` and `Redis.brpop`, and pickle (protocol 5)."""

    distribution = "redis"
    module = "redis"

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(site, f"bench-{secrets.token_hex(8)}")


@dataclass(frozen=True)
class SharedWithoutWaiting(Shared):
    def ends(self, client: Any) -> Ends:
        name = self.name

        def get() -> Any:
            return pickle.loads(client.rpop(name))

        return Ends(super().ends(client).put, get)


@dataclass(frozen=True)
class RedisPyWithoutWaiting(RedisPy):
    """`Redis.lpush` and `Redis.rpop`, which does not wait, and pickle (protocol 5)."""

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> SharedWithoutWaiting:
        return SharedWithoutWaiting(site, f"bench-{secrets.token_hex(8)}")


@dataclass(frozen=True)
class SharedBatches(Shared):
    def ends(self, client: Any) -> Ends:
        name, single = self.name, super().ends(client)

        def put_many(items: list[Any]) -> None:
            client.lpush(name, *map(dumps, items))

        def get_many(most: int) -> list[Any]:
            found = client.rpop(name, most) or [client.brpop(name)[1]]
            return list(map(pickle.loads, found))

        return Ends(single.put, single.get, put_many, get_many)


@dataclass(frozen=True)
class RedisPyBatches(RedisPy):
    """Variadic `Redis.lpush`, `Redis.rpop` with a count (`brpop` of one when there is none)."""

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> SharedBatches:
        return SharedBatches(site, f"bench-{secrets.token_hex(8)}")
