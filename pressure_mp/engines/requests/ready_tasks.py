"""The ready tasks of a queue, in their order of service.

The tasks of one key in one tube are a group. One of them is in line, unless as many are taken as
the queue allows; the others are behind it. When it is taken, the next task of its group goes to the
end of the line: so keys take turns, however many tasks each has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ..contract.task_records import Record
from .kinds import SortedSet
from .limits import Limit, Shares


class Task(Protocol):
    """A task that is ready, or was."""

    id: bytes
    record: Record
    #: The number of its arrival.
    seq: int


T = TypeVar("T", bound=Task)

#: Priority, number, id: the lowest is next. The number is that of the arrival, or a later one.
Rank = tuple[float, int, bytes]
#: How many held tasks are put in line at a time.
_SOME = 100
#: How many tasks are held at a time.
_MOST_HELD = 1000


@dataclass
class Group:
    """The tasks of one key in one tube."""

    #: The number of the last take of one of its tasks.
    last: int = 0
    #: How many of its tasks are taken.
    taken: int = 0
    #: The id of the task that is in line, and its rank there.
    first: Rank | None = None
    #: With a limit of each key: its latest deliveries, as in a :class:`~.limits.Limit`; and when to
    #: look at it, as ``looks`` has it.
    log: list[list[int]] = field(default_factory=list)
    look: tuple[int, int] | None = None


class ReadyTasks(Generic[T]):
    """The ready tasks. ``most`` is how many tasks of a group may be taken at a time; 0 is no
    bound.

    ``pauses`` has the tubes that are paused, True, and "" for the whole queue; and the tubes that
    were resumed, False, until all their tasks are in line again. A task of a paused tube stays in
    line until it is in the way of a take: then it is held, behind no key.

    ``limits`` has the limits of tubes, and of the whole queue as "". A tube whose limit is used up
    is passed over as a paused one is, until the limit admits a task.

    ``key_limits`` has the limits of each key of tubes, and of the whole queue as "": number and
    time. ``looks`` has the groups with deliveries that count: behind 0, until when ready tasks are
    kept out of the line; behind 1, until when a delivery counts.
    """

    def __init__(
        self,
        tasks: Mapping[bytes, T],
        most: int,
        line: SortedSet[tuple[str, float, int, bytes]],
        behind: SortedSet[tuple[str, str, float, int, bytes]],
        groups: MutableMapping[tuple[str, str], Group],
        pauses: dict[str, bool],
        limits: dict[str, Limit],
        key_limits: dict[str, tuple[int, int]],
        looks: SortedSet[tuple[int, int, str, str]],
    ) -> None:
        self._tasks = tasks
        self._most = most
        #: The ranks of the tasks that can be taken, behind an empty tube and behind their own.
        self._line = line
        #: The tasks that cannot be taken yet, by tube, key and rank.
        self._behind = behind
        self._groups = groups
        self.pauses = pauses
        self.limits = limits
        self.key_limits = key_limits
        self._looks = looks

    def line(self, tube: str) -> Iterator[T]:
        """Iterate over the tasks in line, of a tube if one is given; they may change meanwhile."""
        for *_, id in self._line.behind(tube):
            yield self._tasks[id]

    def next(self, tube: str, now: int) -> Iterator[T]:
        """Iterate over the tasks that can be taken, of a tube if one is given; they may change
        meanwhile. Ends early when it has held many tasks, see :meth:`is_cut`. It counts no
        deliveries: a limit may admit fewer tasks."""
        if not (self.pauses or self.limits):
            yield from self.line(tube)
            return
        if self._is_shut(tube, now):
            return
        for other in ({*self.pauses, *self.limits}) - {""}:
            if tube in ("", other) and not self._is_shut(other, now):
                limit = self.limits.get(other)
                self._bring_back(other, min(limit.admits(now), _SOME) if limit else _SOME)
        number = 0
        for task in self.line(tube):
            if not self._is_shut(task.record.tube, now):
                yield task
            elif number == _MOST_HELD:
                return
            else:
                self._hold(task)
                number += 1

    def is_cut(self, tube: str, now: int) -> bool:
        """Tell whether more tasks may be found that can be taken, after none was."""
        if not (self.pauses or self.limits) or self._is_shut(tube, now):
            return False
        return next(self.line(tube), None) is not None

    def _is_shut(self, tube: str, now: int) -> bool:
        """Tell whether a tube is paused, or the queue is, or a limit of these is used up."""
        limits = [self.limits[one] for one in {"", tube} if one in self.limits]
        return self.is_paused(tube) or not all(limit.admits(now) for limit in limits)

    def is_paused(self, tube: str) -> bool:
        """Tell whether no take gets a task of a tube; of the queue, if that is empty."""
        return self.pauses.get("", False) or self.pauses.get(tube, False)

    def pause(self, tube: str, paused: bool) -> None:
        """Pause a tube, or resume it; the whole queue, if that is empty."""
        if paused or (tube and tube in self.pauses):
            self.pauses[tube] = paused
        else:
            self.pauses.pop(tube, None)

    def paused(self) -> list[str]:
        """List the tubes that are paused, with "" for the whole queue."""
        return [tube for tube, paused in self.pauses.items() if paused]

    def bound(self, most: int, groups: set[tuple[str, str]], now: int) -> None:
        """Let so many tasks of a group be taken at a time; of ``groups``, tasks are taken now."""
        before, self._most = self._most, most
        for tube, key in groups:
            taken = self._groups[tube, key].taken
            if (0 < before <= taken) != (0 < most <= taken):
                self.update_line(tube, key, now)

    def limit(self, tube: str, number: int, per: int) -> None:
        """Set the limit of a tube, or of the whole queue; with ``number`` 0 remove it."""
        known = self.limits.pop(tube, None)
        if number:
            self.limits[tube] = Limit(number, per, known.log if known else [])
        elif known and tube:
            self.pauses.setdefault(tube, False)

    @property
    def is_limited(self) -> bool:
        return bool(self.limits or self.key_limits)

    def limit_keys(self, tube: str, number: int, per: int, now: int) -> None:
        """Set the limit of each key of a tube, or of the whole queue; with ``number`` 0 remove
        it."""
        self.key_limits.pop(tube, None)
        if number:
            self.key_limits[tube] = number, per
        for *_, other, key in [*self._looks.behind()]:
            self.update_line(other, key, now)

    def to_look_at(self, now: int) -> list[tuple[str, str]]:
        """List some groups of which fewer deliveries count now."""
        looks = [itertools.islice(self._looks.behind(kind), _SOME) for kind in (0, 1)]
        return [(tube, key) for some in looks for _, until, tube, key in some if until < now]

    def opens_at(self) -> int | None:
        """Return the last millisecond for which the next group is kept out of the line."""
        return next((until for _, until, *_ in self._looks.behind(0)), None)

    def _key_limit(self, group: Group, tube: str) -> Limit | None:
        stated = self.key_limits.get(tube) or self.key_limits.get("")
        if not stated:
            group.log.clear()
        return Limit(*stated, group.log) if stated else None

    def _look_at(self, group: Group, look: tuple[int, int] | None, tube: str, key: str) -> None:
        """Note when to look at a group."""
        if look == group.look:
            return
        if group.look is not None:
            self._looks.remove((*group.look, tube, key))
        if look is not None:
            self._looks.add((*look, tube, key))
        group.look = look

    def note_delivery(self, tube: str, now: int) -> None:
        for one in {"", tube}:
            if one in self.limits:
                self.limits[one].note(now)

    def shares(self, now: int) -> Shares:
        return Shares(self.limits, now)

    def _hold(self, task: T) -> None:
        tube, rank = task.record.tube, self._rank(task)
        self._remove(tube, rank)
        self._behind.add((tube, "", *rank))

    def _bring_back(self, tube: str, most: int) -> None:
        """Put the next held tasks of a tube in line, if the first of them is before all others of
        the tube."""
        first = next(self._line.behind(tube), None)
        held = [*itertools.islice(self._behind.behind(tube, ""), most)]
        if held and first and first[1:] < held[0][2:]:
            return
        for place in held:
            self._behind.remove(place)
            self._add(tube, place[2:])
        if len(held) < most:
            self.pauses.pop(tube, None)

    def _rank(self, task: T) -> Rank:
        """Return the rank that a task has in line."""
        first = self._groups[_group_of(task)].first if task.record.key else None
        return first or _own_rank(task)

    def all(self) -> Iterator[T]:
        """Iterate over the tasks in line, and then, by tube and key, over the others."""
        yield from self.line("")
        for *_, id in self._behind.behind():
            yield self._tasks[id]

    def enter(self, task: T) -> None:
        """Add a task that is ready now."""
        if not task.record.key:
            self._add(task.record.tube, _own_rank(task))
            return
        self._groups.setdefault(_group_of(task), Group())
        self._behind.add((*_group_of(task), *_own_rank(task)))

    def leave(self, task: T) -> None:
        """Remove a task that is ready no longer."""
        if not task.record.key:
            self._remove(task.record.tube, _own_rank(task))
            return
        group = self._groups[_group_of(task)]
        if group.first and group.first[-1] == task.id:
            self._remove(task.record.tube, group.first)
            group.first = None
        else:
            self._behind.remove((*_group_of(task), *_own_rank(task)))

    def _add(self, tube: str, rank: Rank) -> None:
        self._line.add(("", *rank))
        if tube:
            self._line.add((tube, *rank))

    def _remove(self, tube: str, rank: Rank) -> None:
        may_be_held = tube in self.pauses or tube in self.limits
        if may_be_held and next(self._behind.behind(tube, "", *rank), None):
            self._behind.remove((tube, "", *rank))
            return
        self._line.remove(("", *rank))
        if tube:
            self._line.remove((tube, *rank))

    def begin(self, task: T, number: int, now: int) -> None:
        """Note that a task with a key is taken: its group is the last in line."""
        group = self._groups[_group_of(task)]
        group.taken, group.last = group.taken + 1, number
        limit = self._key_limit(group, task.record.tube)
        if limit is not None:
            limit.admits(now)
            limit.note(now)

    def end(self, task: T) -> None:
        """Note that a task with a key is taken no longer."""
        self._groups[_group_of(task)].taken -= 1

    def update_line(self, tube: str, key: str, now: int) -> None:
        """Put the right task of a group into the line after a change of one of its tasks, or of its
        limit."""
        group = self._groups.get((tube, key))
        if group is None:
            return
        limit = self._key_limit(group, tube)
        is_full = 0 < self._most <= group.taken or bool(limit and not limit.admits(now))
        behind = next(self._behind.behind(tube, key), None)
        if group.first:
            first = self._tasks[group.first[-1]]
            if is_full or (behind and behind[2:] < _own_rank(first)):
                self.leave(first)
                self._behind.add((tube, key, *_own_rank(first)))
                behind = next(self._behind.behind(tube, key))
        if group.first is None and behind and not is_full:
            self._behind.remove(behind)
            group.first = _rank_in_line(self._tasks[behind[-1]], group)
            self._add(tube, group.first)
            behind = next(self._behind.behind(tube, key), None)
        look: tuple[int, int] | None = None
        until = limit.until(now) if limit else None  # forgets deliveries that no longer count
        if limit and group.log:
            look = 1, group.log[-1][0] + limit.per
            if until is not None and behind:
                look = 0, until
        self._look_at(group, look, tube, key)
        if not (group.taken or group.first or behind or group.log):
            del self._groups[tube, key]


def _group_of(task: Task) -> tuple[str, str]:
    return task.record.tube, task.record.key


def _own_rank(task: Task) -> Rank:
    return task.record.priority, task.seq, task.id


def _rank_in_line(task: Task, group: Group) -> Rank:
    return task.record.priority, max(task.seq, group.last), task.id
