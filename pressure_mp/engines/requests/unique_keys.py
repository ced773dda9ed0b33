"""The unique keys of a queue of tasks, and the tasks that hold them."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import NamedTuple

from .kinds import SortedSet

#: Marks a key among the ends.
KEY = b"unique"


class Holder(NamedTuple):
    """The task that holds a key, or held it last. Without ``is_held`` the task has ended, and no
    other task gets the key until ``end``."""

    id: bytes
    end: int
    is_held: bool = True


class Holders:
    """A key is here as long as no other task can be put with it."""

    def __init__(
        self, holders: MutableMapping[str, Holder], ends: SortedSet[tuple[int, str, bytes]]
    ) -> None:
        self._holders = holders
        #: Also the times until which keys are kept whose tasks have ended.
        self._ends = ends

    def holder(self, key: str, now: int) -> Holder | None:
        """Return the holder of a key, None if the key is free."""
        there = self._holders.get(key)
        return there if there is not None and (there.is_held or there.end > now) else None

    def hold(self, key: str, id: bytes, end: int) -> None:
        """Give a key to a task, until this has ended, and at least until ``end``."""
        self.forget(key)
        self._holders[key] = Holder(id, end)

    def hold_again(self, key: str, id: bytes, now: int) -> None:
        """Give a key to a task that had ended, unless another one holds it."""
        there = self.holder(key, now)
        if there is None or there.id == id:
            self.hold(key, id, there.end if there else 0)

    def release(self, key: str, id: bytes, now: int) -> None:
        """Note that a task has ended."""
        there = self._holders.get(key)
        if there is None or not there.is_held or there.id != id:
            return
        if there.end > now:
            self._holders[key] = there._replace(is_held=False)
            self._ends.add((there.end, key, KEY))
        else:
            del self._holders[key]

    def forget(self, key: str) -> None:
        """Free a key."""
        there = self._holders.pop(key, None)
        if there is not None and not there.is_held:
            self._ends.remove((there.end, key, KEY))
