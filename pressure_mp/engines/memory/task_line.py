"""The callers that wait at a queue of tasks in memory."""

from __future__ import annotations

from collections.abc import Iterable

from ..requests.line import Caller
from .line import MemoryLine


class MemoryTaskLine:
    """The waiting callers of one queue of tasks."""

    def __init__(self) -> None:
        self.putters = MemoryLine()
        self._takers: dict[Caller, tuple[str, int | None]] = {}
        self._awaiting: set[Caller] = set()
        self._readers: dict[Caller, tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._takers)

    @property
    def is_empty(self) -> bool:
        return not (self._takers or self._awaiting or self._readers or len(self.putters))

    def keep_place(self, caller: Caller, tube: str, retries_at: int | None) -> None:
        caller.will_wait()
        self._takers[caller] = tube, retries_at

    def await_end(self, caller: Caller) -> None:
        caller.will_wait()
        self._awaiting.add(caller)

    def read(self, caller: Caller, inbox: str, number: int) -> None:
        caller.will_wait()
        self._readers[caller] = inbox, number

    def leave(self, caller: Caller) -> None:
        self.putters.leave(caller)
        self._readers.pop(caller, None)
        self._takers.pop(caller, None)
        self._awaiting.discard(caller)

    def takers(self) -> Iterable[tuple[Caller, str, int | None]]:
        return [(caller, *place) for caller, place in self._takers.items()]

    def awaiting(self) -> Iterable[Caller]:
        return self._awaiting

    def readers(self) -> Iterable[tuple[Caller, str, int]]:
        return [(caller, *place) for caller, place in self._readers.items()]
