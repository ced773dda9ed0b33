"""The ready tasks of a queue, in their order of service.

The tasks of one key in one tube are a group. One of them is in line, unless as many are taken as
the queue allows; the others are behind it. When it is taken, the next task of its group goes to the
end of the line: so keys take turns, however many tasks each has.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ..contract.task_records import Record


class Task(Protocol):
    """A task that is ready, or was."""

    id: bytes
    record: Record
    #: The number of its arrival.
    seq: int


T = TypeVar("T", bound=Task)

#: Priority, number, id: the lowest is next. The number is that of the arrival, or a later one.
Rank = tuple[float, int, bytes]


@dataclass
class Group(Generic[T]):
    """The tasks of one key in one tube."""

    #: The number of the last take of one of its tasks.
    last: int = 0
    #: How many of its tasks are taken.
    taken: int = 0
    first: T | None = None
    behind: list[Rank] = field(default_factory=list)


class ReadyTasks(Generic[T]):
    """The ready tasks. ``most`` is how many tasks of a group may be taken at a time; 0 is no
    bound."""

    def __init__(self, tasks: dict[bytes, T], most: int) -> None:
        self._tasks = tasks
        self._most = most
        self._line: list[Rank] = []
        self._groups: dict[tuple[str, str], Group[T]] = {}

    def __iter__(self) -> Iterator[T]:
        """Iterate over the tasks that can be taken; some may leave meanwhile."""
        for *_, id in self._line.copy():
            yield self._tasks[id]

    def all(self) -> list[T]:
        """List the tasks that can be taken, and behind them the tasks that cannot be taken yet, by
        tube and key."""
        ranks = [rank for _, group in sorted(self._groups.items()) for rank in group.behind]
        return [*self, *(self._tasks[id] for *_, id in ranks)]

    def enter(self, task: T) -> None:
        """Add a task that is ready now."""
        if not task.record.key:
            bisect.insort(self._line, _own_rank(task))
            return
        group = self._groups.setdefault(_group_of(task), Group())
        bisect.insort(group.behind, _own_rank(task))

    def leave(self, task: T) -> None:
        """Remove a task that is ready no longer."""
        group = self._groups.get(_group_of(task))
        if group is None:
            self._line.remove(_own_rank(task))
        elif group.first is task:
            self._line.remove(_rank_in_line(task, group))
            group.first = None
        else:
            group.behind.remove(_own_rank(task))

    def begin(self, task: T, number: int) -> None:
        """Note that a task with a key is taken: its group is the last in line."""
        group = self._groups[_group_of(task)]
        group.taken, group.last = group.taken + 1, number

    def end(self, task: T) -> None:
        """Note that a task with a key is taken no longer."""
        self._groups[_group_of(task)].taken -= 1

    def update_line(self, tube: str, key: str) -> None:
        """Put the right task of a group into the line after a change of one of its tasks."""
        group = self._groups.get((tube, key))
        if group is None:
            return
        first, is_full = group.first, 0 < self._most <= group.taken
        if first and (is_full or (group.behind and group.behind[0] < _own_rank(first))):
            self.leave(first)
            bisect.insort(group.behind, _own_rank(first))
        if group.first is None and group.behind and not is_full:
            group.first = self._tasks[group.behind.pop(0)[-1]]
            bisect.insort(self._line, _rank_in_line(group.first, group))
        if not group.taken and group.first is None and not group.behind:
            del self._groups[tube, key]


def _group_of(task: Task) -> tuple[str, str]:
    return task.record.tube, task.record.key


def _own_rank(task: Task) -> Rank:
    return task.record.priority, task.seq, task.id


def _rank_in_line(task: Task, group: Group[T]) -> Rank:
    return task.record.priority, max(task.seq, group.last), task.id
