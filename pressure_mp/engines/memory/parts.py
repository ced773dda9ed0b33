"""The contents of large items, in parts, beside a queue."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from ...large import is_manifest, token_of, weight


class Parts:
    """Everything a broker keeps of the contents of one queue's items."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, int], bytes] = {}
        #: Until when the parts of a token are kept: on the clock, or for ever while it is queued.
        #: In flight, or set aside, it is not here.
        self._uploads: dict[str, float] = {}

    def is_kept(self, token: str) -> bool:
        """Whether the content of an item that is not yet queued is surely there."""
        return self._uploads.get(token, 0) > time.monotonic()

    def store(self, token: str, number: int, lease: int, part: Sequence[memoryview]) -> None:
        self._parts[token, number] = b"".join(part)
        self.keep(token, lease)

    def fetch(self, token: str, number: int, room: Sequence[memoryview]) -> bool:
        """Copy a part to where there is room for it; whether it was there."""
        part = memoryview(self._parts.get((token, number), b""))
        if part.nbytes != sum(view.nbytes for view in room):
            return False
        for view in room:
            view[:], part = part[: view.nbytes], part[view.nbytes :]
        return True

    def keep(self, token: str, lease: float) -> None:
        """Keep a content for a lease, in milliseconds."""
        self._uploads[token] = time.monotonic() + max(lease, 3000) / 1000

    def keep_for_reading(self, token: str, lease: int) -> None:
        """Keep the content of an item that was got. Nobody would send it again."""
        self.keep(token, lease * 12)

    def hold(self, token: str, lease: int) -> None:
        """Keep a content that is still being read."""
        if time.monotonic() < self._uploads.get(token, 0) < math.inf:
            self.keep_for_reading(token, lease)

    def weigh(self, item: bytes) -> tuple[int, str]:
        """The size of an item; and its token, if the content was stored."""
        token = token_of(item) if is_manifest(item) else ""
        return (weight(item), token) if token in self._uploads else (len(item), "")

    def queue(self, token: str) -> None:
        """The manifest is queued."""
        self._uploads[token] = math.inf

    def forget(self, token: str) -> None:
        """The manifest is elsewhere: in flight, or set aside."""
        self._uploads.pop(token, None)

    def end(self, token: str) -> None:
        """The content is not needed any more."""
        if token:
            self._uploads[token] = 0.0
            self.sweep("", False)

    def end_queued(self) -> None:
        """Nothing is queued any more."""
        for token, until in self._uploads.items():
            if until == math.inf:
                self._uploads[token] = 0.0
        self.sweep("", False)

    def sweep(self, token: str, is_empty: bool) -> None:
        """Remove what is not kept any more; and the content of ``token``, unless it is queued."""
        if self._uploads.get(token, math.inf) < math.inf:
            self._uploads[token] = 0.0
        if is_empty:
            self.end_queued()
        now = time.monotonic()
        gone = {token for token, until in self._uploads.items() if until <= now}
        for token in gone:
            del self._uploads[token]
        for key in [key for key in self._parts if key[0] in gone]:
            del self._parts[key]
