"""The operations of a queue of tasks that are for administrators."""

from __future__ import annotations

from ..effects import Operation
from ..states import NAMES, sources
from .batches import MOST_ITEMS
from .task_stats import TaskStats, TubeStats, count
from .tasks import NO_EDIT, Edit, Raw, TaskOperations, or_none

#: How many places of an order one call looks at.
_LOOK = 500


class TaskAdministrationOperations(TaskOperations):
    """Beside those of producers and workers."""

    def stats(self) -> Operation[TaskStats]:
        """Everything that can be counted, at one moment; without rates."""
        reply = yield from self._call("stats", ())
        _, _, now, created, oldest, closed, flat = reply
        total: dict[str, int] = {}
        tubes: dict[str, dict[str, int]] = {}
        for name, number in zip(flat[::2], flat[1::2], strict=True):
            way, _, tube = name.decode().partition(" ")
            where = tubes.setdefault(tube, {}) if tube else total
            where[way] = int(number)
        return TaskStats(
            counts=count(total),
            transitions=total,
            tubes={tube: TubeStats(count(ways), ways) for tube, ways in sorted(tubes.items())},
            now=int(now) / 1000,
            created=int(created) / 1000,
            oldest_ready_age=None if oldest == b"" else (int(now) - int(oldest)) / 1000,
            closed=bool(closed),
        )

    def kick_some(self, limit: int | None, delay: int, ttl: int | None) -> Operation[int]:
        """Make the oldest buried tasks ready, up to ``limit``; answers how many."""
        kicked = 0
        while limit is None or kicked < limit:
            number = MOST_ITEMS if limit is None else min(limit - kicked, MOST_ITEMS)
            reply = yield from self._call("kick", (number, delay, or_none(ttl)))
            _, _, looked, number_kicked = reply
            kicked += number_kicked
            if looked < number:
                break
        return kicked

    def change(
        self,
        op: str,
        task: bytes,
        to: str,
        delay: int = 0,
        ttl: int | None = None,
        tube: str | None = None,
        edit: Edit = NO_EDIT,
    ) -> Operation[Raw]:
        """Bring one task from a state that ``op`` takes tasks out of into the state ``to``; if that
        is empty into its own, and one that is taken into ready. ``tube`` is where it goes.

        Raises TaskNotFound, NotTaken, WrongState, Changed.
        """
        shift = ("", 0) if tube is None else (tube, 1)
        origins = "".join(sorted(sources(op) - {to}))
        args = (task, origins, to, delay, or_none(ttl), *shift, *edit.args)
        reply = yield from self._call("change", args)
        self._check_task(reply, task, op)
        return Raw(task, reply[2], reply[3])

    def list(self, states: str, tube: str, limit: int) -> Operation[list[Raw]]:
        """Up to ``limit`` tasks of these states, one state after the other."""
        found: list[Raw] = []
        for state in states:
            start, looked = 0, 1
            while looked and len(found) < limit:
                reply = yield from self._call("list", (state, tube, start, min(limit, _LOOK)))
                _, _, looked, *columns = reply
                found += [Raw(*task) for task in zip(*columns, strict=True)]
                start += looked
        return found[:limit]

    def truncate(self) -> Operation[int]:
        """Remove all tasks that are there now, in batches; answers how many were removed."""
        there = sum((yield from self.stats()).counts.values())
        removed = 0
        while removed < there:
            reply = yield from self._call("truncate", (MOST_ITEMS,))
            removed += reply[2]
            if not reply[2]:
                break
        return removed


ALL_STATES = "".join(NAMES)
