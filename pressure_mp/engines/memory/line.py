"""The lines of callers that wait at a queue: first come, first served."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import ref

from ..requests.line import Caller, Place, Wish
from .clock import milliseconds


class MemoryLine:
    """The callers that wait for the same, in the order in which they came.

    A session that was garbage-collected has no place any more, even if its ``end`` was not called.
    """

    def __init__(self) -> None:
        self._places: dict[ref[Caller], Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def keep_place(self, caller: Caller, wish: Wish) -> None:
        caller.will_wait()
        now, key = milliseconds(), ref(caller, self._forget)
        place = self._places.get(key)
        since = place.since if place else now
        self._places[key] = Place(wish, caller.client, since, now, caller.lease)

    def _forget(self, key: ref[Caller]) -> None:
        self._places.pop(key, None)

    def leave(self, caller: Caller) -> None:
        if self._places:
            self._forget(ref(caller))

    def is_next(self, caller: Caller) -> bool:
        return not self._places or next(iter(self._places))() is caller

    def has(self, caller: Caller) -> bool:
        return bool(self._places) and ref(caller) in self._places

    def count_others(self, caller: Caller) -> int:
        return len(self._places) - (ref(caller) in self._places)

    def waiting(self) -> Iterator[tuple[Caller, Place]]:
        for key in list(self._places):
            caller, place = key(), self._places.get(key)
            if caller and place:
                yield caller, place
