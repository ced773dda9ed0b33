"""The contents of large items, in chunks, beside a queue."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from ...encoding.large import is_manifest, token_of, weight


class Contents:
    """The contents of one queue's items, and how long each is kept. Leases are in milliseconds."""

    def __init__(self) -> None:
        #: By token and number.
        self.chunks: dict[tuple[str, int], bytes] = {}
        #: The time until which the content of a token is kept, infinite while its item is queued.
        #: An item that is in flight, or set aside, has no entry.
        self.kept: dict[str, float] = {}

    def is_kept(self, token: str) -> bool:
        """Tell whether the content of an item that is not yet queued is surely there."""
        return self.kept.get(token, 0) > time.monotonic()

    def is_there(self, token: str) -> bool:
        """Tell whether a content was stored and not removed, even if its time is over."""
        return (token, 0) in self.chunks

    def store(self, token: str, number: int, chunk: Sequence[memoryview], lease: int) -> None:
        """Store a chunk, and keep it and the earlier chunks for a lease."""
        self.chunks[token, number] = b"".join(chunk)
        self.keep(token, lease)

    def read(self, token: str, number: int, room: Sequence[memoryview]) -> bool:
        """Copy a chunk into ``room``, and return whether the chunk exists."""
        chunk = memoryview(self.chunks.get((token, number), b""))
        if chunk.nbytes != sum(view.nbytes for view in room):
            return False
        for view in room:
            view[:], chunk = chunk[: view.nbytes], chunk[view.nbytes :]
        return True

    def keep(self, token: str, lease: float) -> None:
        self.kept[token] = time.monotonic() + max(lease, 3000) / 1000

    def keep_for_reading(self, token: str, lease: int) -> None:
        """Keep the content of an item that was taken for good: no client could send it again."""
        self.keep(token, lease * 12)

    def keep_on(self, token: str, lease: int) -> None:
        """Keep a content that is still being read."""
        if time.monotonic() < self.kept.get(token, 0) < math.inf:
            self.keep_for_reading(token, lease)

    def weigh(self, item: bytes) -> tuple[int, str]:
        """Return the size of an item, and its token, if its content was stored."""
        token = token_of(item) if is_manifest(item) else ""
        return (weight(item), token) if token in self.kept else (len(item), "")

    def queue(self, token: str) -> None:
        self.kept[token] = math.inf

    def forget(self, token: str) -> None:
        """Note that the manifest is in flight, or set aside."""
        self.kept.pop(token, None)

    def end(self, token: str) -> None:
        """Remove a content that is not needed any more."""
        if token:
            self.kept[token] = 0.0
            self.sweep("", False)

    def end_queued(self) -> None:
        for token, until in self.kept.items():
            if until == math.inf:
                self.kept[token] = 0.0
        self.sweep("", False)

    def sweep(self, token: str, is_empty: bool) -> None:
        """Remove the contents whose time is over, and the content of ``token``, unless it is
        queued."""
        if self.kept.get(token, math.inf) < math.inf:
            self.kept[token] = 0.0
        if is_empty:
            self.end_queued()
        now = time.monotonic()
        gone = {token for token, until in self.kept.items() if until <= now}
        for token in gone:
            del self.kept[token]
        for key in [key for key in self.chunks if key[0] in gone]:
            del self.chunks[key]
