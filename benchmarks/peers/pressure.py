from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pressure_mp import Empty, Queue
from pressure_mp.encoding.codec import Codec

from ..server import Site
from .base import Ends, Peer


@dataclass(frozen=True)
class Shared:
    queue: Queue

    @property
    def list(self) -> str:
        """The server's list of the items (docs/protocol.md)."""
        return f"{self.queue.prefix}:{self.queue.name}"

    def connect(self) -> Ends:
        self.queue.qsize()  # connects
        return Ends(self.queue.put, self.queue.get, close=self.queue.close)

    def remove(self) -> None:
        self.queue.close()


@dataclass(frozen=True)
class Pressure(Peer):
    """`Queue(name=…, url=…)`: a put returns when the broker has the item."""

    distribution = "pressure_mp"
    module = "pressure_mp"

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(Queue.create(f"bench-{secrets.token_hex(8)}", maxsize, url=site.url))


@dataclass(frozen=True)
class SharedBatches(Shared):
    def connect(self) -> Ends:
        queue = self.queue
        return replace(super().connect(), put_many=queue.put_many, get_many=queue.get_many)


@dataclass(frozen=True)
class PressureBatches(Pressure):
    """`put_many` and `get_many` of lists of that many items."""

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> SharedBatches:
        return SharedBatches(super().create(site, maxsize, largest).queue)


@dataclass(frozen=True)
class SharedBuffers(Shared):
    def connect(self) -> Ends:
        with suppress(Empty):
            self.queue.get(block=False)  # connects, and says that this process is there
        return super().connect()


@dataclass(frozen=True)
class PressureBuffered(Pressure):
    """`Queue(…, buffering=4000)` and as much `prefetch`: `put` and `get` of single items; a thread
    sends batches."""

    buffering: int = 4000

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> SharedBuffers:
        name = f"bench-{secrets.token_hex(8)}"
        ahead = self.buffering
        return SharedBuffers(
            Queue.create(name, maxsize, url=site.url, buffering=ahead, prefetch=ahead)
        )


@dataclass(frozen=True)
class SharedDefault(Shared):
    def connect(self) -> Ends:
        # To look how many items there are is to be a consumer: a producer does not.
        return Ends(self.queue.put, self.queue.get, close=self.queue.close)


@dataclass(frozen=True)
class PressureDefault(Pressure):
    """`Queue()`: a program that only changes its import. Its processes share memory."""

    #: Processes wait in the memory that they share.
    waits_at_server = False

    options: Mapping[str, Any] = field(default_factory=dict)

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> SharedDefault:
        return SharedDefault(Queue(maxsize, url=site.url, **self.options))


@dataclass(frozen=True)
class PressureUnsigned(PressureDefault):
    """`Queue()` without its keys, which no option takes away: it shows what signing costs."""

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> SharedDefault:
        shared = super().create(site, maxsize, largest)
        queue, codec = shared.queue, shared.queue._at.codec
        queue._at.codec = queue._at.operations.codec = Codec(
            codec.serializer, (), queue.prefix, codec.queue, codec.anonymous
        )
        return shared
