from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from ..server import Site
from .base import Ends, Peer, nothing


@dataclass(frozen=True)
class Shared:
    path: Path

    def connect(self) -> Ends:
        from persistqueue import SQLiteQueue

        queue = SQLiteQueue(str(self.path), auto_commit=True)
        return Ends(queue.put, queue.get)

    def remove(self) -> None:
        nothing()


@dataclass(frozen=True)
class PersistQueue(Peer):
    """`SQLiteQueue(path, auto_commit=True)`: one process alone; its get sees no other's put."""

    distribution = "persist-queue"
    module = "persistqueue"
    waits_at_server = False

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        return Shared(Path(site.folder) / f"bench-{secrets.token_hex(8)}")
