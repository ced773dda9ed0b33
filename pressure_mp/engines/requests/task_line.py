"""The callers that wait at a queue of tasks: for a task or for space, first come, first served; for
the end of a task; or for a notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Protocol

from .line import Caller, Line


class Ends:
    """The callers that wait for the end of a task, and the outcomes that they are to be told."""

    def __init__(
        self,
        callers: MutableMapping[bytes, list[Any]],
        ids: MutableMapping[Any, bytes],
        outcomes: MutableMapping[Any, str],
        name: Callable[[Caller], Any],
    ) -> None:
        """The mappings are by id or by the name of a caller."""
        self._callers, self._ids, self._outcomes, self._name = callers, ids, outcomes, name

    def watch(self, id: bytes, caller: Caller) -> None:
        """Note that the caller waits for the end of this task."""
        self.forget(caller)
        name = self._name(caller)
        self._callers.setdefault(id, []).append(name)
        self._ids[name] = id

    def conclude(self, id: bytes, outcome: str) -> None:
        """Note the outcome of a task for the callers that wait for it."""
        for name in self._callers.pop(id, ()):
            del self._ids[name]
            if self._may_live(name):
                self._outcomes[name] = outcome

    def _may_live(self, name: Any) -> bool:
        return True

    def outcome(self, caller: Caller) -> str | None:
        """Return the outcome that the caller is to be told, and forget it."""
        return self._outcomes.pop(self._name(caller), None)

    def has_outcome(self, caller: Caller) -> bool:
        return self._name(caller) in self._outcomes

    def forget(self, caller: Caller) -> None:
        """Note that the caller waits no longer."""
        name = self._name(caller)
        self._outcomes.pop(name, None)
        id = self._ids.pop(name, None)
        if id is not None:
            self._callers[id].remove(name)
            if not self._callers[id]:
                del self._callers[id]


class TaskLine(Protocol):
    """The waiting callers of one queue of tasks."""

    @property
    def putters(self) -> Line:
        """The callers that wait for space."""

    def __len__(self) -> int:
        """Count the callers that wait for a task."""

    @property
    def is_empty(self) -> bool:
        """Whether no caller waits for anything."""

    def keep_place(self, caller: Caller, tube: str, retries_at: int | None) -> None:
        """Give a caller a place in line for a task, or keep it; it calls again at
        ``retries_at``."""

    def await_end(self, caller: Caller) -> None:
        """Note that a caller waits for the end of a task."""

    def read(self, caller: Caller, inbox: str, number: int) -> None:
        """Note that a caller waits for a notice with a higher number."""

    def leave(self, caller: Caller) -> None:
        """Give up the caller's place, if it has one."""

    def takers(self) -> Iterable[tuple[Caller, str, int | None]]:
        """Iterate over the callers that wait for a task, the first one first, with the tube, empty
        for any, and the time at which the caller calls again by itself."""

    def awaiting(self) -> Iterable[Caller]:
        """Iterate over the callers that wait for the end of a task."""

    def readers(self) -> Iterable[tuple[Caller, str, int]]:
        """Iterate over the callers that wait for notices, with the inbox and its last number."""
