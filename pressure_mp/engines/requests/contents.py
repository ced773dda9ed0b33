"""The contents of large items, in chunks, beside a queue."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence

from ...encoding.large import is_manifest, token_of, weight
from .kinds import SortedSet

#: The time until which the content of a queued item is kept.
QUEUED = 1 << 62


class Contents:
    """The contents of one queue's items, and how long each is kept. Leases are in milliseconds."""

    def __init__(
        self,
        chunks: MutableMapping[tuple[str, int], bytes],
        kept: MutableMapping[str, int],
        ends: SortedSet[tuple[int, str]],
        clock: Callable[[], int],
    ) -> None:
        #: By token and number.
        self.chunks = chunks
        #: The time until which the content of a token is kept. An item that is in flight, or set
        #: aside, has no entry.
        self.kept = kept
        #: The same in the order of time.
        self._ends = ends
        self._clock = clock

    def is_kept(self, token: str) -> bool:
        """Tell whether the content of an item that is not yet queued is surely there."""
        return self.kept.get(token, 0) > self._clock()

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

    def keep(self, token: str, lease: int) -> None:
        self._keep_until(token, self._clock() + max(lease, 3000))

    def _keep_until(self, token: str, end: int) -> None:
        self.forget(token)
        self.kept[token] = end
        self._ends.add((end, token))

    def keep_for_reading(self, token: str, lease: int) -> None:
        """Keep the content of an item that was taken for good: no client could send it again."""
        self.keep(token, lease * 12)

    def keep_on(self, token: str, lease: int) -> None:
        """Keep a content that is still being read."""
        if self._clock() < self.kept.get(token, 0) < QUEUED:
            self.keep_for_reading(token, lease)

    def weigh(self, item: bytes) -> tuple[int, str]:
        """Return the size of an item, and its token, if its content was stored."""
        token = token_of(item) if is_manifest(item) else ""
        return (weight(item), token) if token and token in self.kept else (len(item), "")

    def queue(self, token: str) -> None:
        self._keep_until(token, QUEUED)

    def forget(self, token: str) -> None:
        """Note that the manifest is in flight, or set aside."""
        end = self.kept.pop(token, None) if token else None
        if end is not None:
            self._ends.remove((end, token))

    def end(self, token: str) -> None:
        """Remove a content that is not needed any more."""
        if token:
            self._remove(token)
            self.sweep("", False)

    def end_queued(self) -> None:
        for _, token in self._ends.behind(QUEUED):
            self._remove(token)

    def sweep(self, token: str, is_empty: bool) -> None:
        """Remove the contents whose time is over, and the content of ``token``, unless it is
        queued."""
        if self.kept.get(token, QUEUED) < QUEUED:
            self._remove(token)
        if is_empty:
            self.end_queued()
        now = self._clock()
        for end, over in self._ends.behind():
            if end > now:
                break
            self._remove(over)

    def _remove(self, token: str) -> None:
        self.forget(token)
        number = 0
        while self.chunks.pop((token, number), None) is not None:
            number += 1
