"""The operations of administrators of a queue of tasks: diagnose, and put right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..effects import Operation
from ..engines.contract.brokers import split_pauses
from ..engines.contract.items import MOST_ITEMS
from ..engines.contract.task_administration import (
    ChangeTask,
    GetTaskCounts,
    GetTaskCountsReply,
    GetWorkers,
    GetWorkersReply,
    KickTasks,
    KickTasksReply,
    ListedTasks,
    ListTasks,
    ListTasksReply,
    TakerTexts,
    TaskCounts,
    TruncateTasks,
    TruncateTasksReply,
)
from ..engines.contract.task_records import Edit, StoredTask
from ..engines.contract.task_results import Result
from ..exceptions import ArgumentError, TaskNotFound, WrongState
from ..states import BURIED, READY, TAKEN, VOID, WAITING, ZOMBIE, sources
from .task_queue import DecodedTask
from .task_settling import UNCHANGED, Subject, TaskSettling
from .task_stats import TaskStats, TubeStats, count, rate_limits

if TYPE_CHECKING:  # few programs ever ask for it
    from .task_diagnosis import TaskDiagnosis
    from .task_workers import Workers

#: How many places of a state's order one call looks at.
_PAGE = 500
#: How many ready tasks are looked at: those whose ttr was over are among the first.
_FEW = 20


class TaskAdministration(TaskSettling):
    """The part of :class:`~.tasks.TaskOperations` that is for administrators."""

    def stats(self) -> Operation[TaskStats]:
        """Return all counts, at one moment; without rates."""
        counts = yield from self._counts()
        now, created, oldest, closed, total, tubes, pauses, _, maxsize, putting = counts
        paused, paused_tubes = split_pauses(pauses)
        return TaskStats(
            counts=count(total),
            transitions=total,
            tubes={tube: TubeStats(count(ways), ways) for tube, ways in sorted(tubes.items())},
            now=now / 1000,
            created=created / 1000,
            oldest_ready_age=None if oldest is None else (now - oldest) / 1000,
            closed=closed,
            paused=paused,
            paused_tubes=paused_tubes,
            limits=rate_limits(counts),
            maxsize=maxsize,
            putting=putting,
        )

    def _counts(self) -> Operation[TaskCounts]:
        reply: GetTaskCountsReply = yield GetTaskCounts()
        return self._found(reply)

    def _page(self, state: str, tube: str, start: int, limit: int) -> Operation[ListedTasks]:
        reply: ListTasksReply = yield ListTasks(state, tube, start, limit)
        return self._found(reply)

    def _texts(self) -> Operation[TakerTexts]:
        reply: GetWorkersReply = yield GetWorkers()
        return self._found(reply)

    def workers(self) -> Operation[Workers]:
        """Return the workers, and which tasks they have: up to as many as one call lists."""
        from .task_workers import workers_of

        texts = yield from self._texts()
        return workers_of(texts, (yield from self._page(TAKEN, "", 0, _PAGE)).tasks)

    def why_blocked(self) -> Operation[TaskDiagnosis]:
        """Return what a take would wait for, and which processes have the tasks."""
        from .task_diagnosis import diagnose_tasks

        counts = yield from self._counts()
        takers = yield from self._texts()
        taken = (yield from self._page(TAKEN, "", 0, _PAGE)).tasks
        waiting = (yield from self._page(WAITING, "", 0, 1)).tasks
        most = (yield from self.recorded()).per_key
        ready = (yield from self._page(READY, "", 0, _PAGE if most else _FEW)).tasks
        again = yield from self._counts()
        due = [task.record.due for task in waiting]
        found = diagnose_tasks(self.name, counts, takers, taken, due, ready, most)
        # As many tasks are listed as are counted, unless a task changed its state between the
        # calls.
        listed = ((TAKEN, taken), (WAITING, waiting), (READY, ready))
        lost = any(number < 0 for number in found.counts.values()) or any(
            bool(some) != bool(found.counts[state]) for state, some in listed
        )
        return found._replace(incomplete=lost and again.transitions == counts.transitions)

    def kick_many(self, limit: int | None, delay: int, ttl: int | None) -> Operation[int]:
        """Make the oldest buried tasks ready, up to ``limit``, or all that are buried now; return
        how many."""
        if limit is None:  # a task that is buried again is not kicked again
            limit = (yield from self.stats()).counts[BURIED]
        kicked = 0
        while kicked < limit:
            number = min(limit - kicked, MOST_ITEMS)
            reply: KickTasksReply = yield KickTasks(number, delay, ttl)
            examined, found = self._found(reply)
            kicked += found
            if examined < number:
                break
        return kicked

    def change(
        self,
        op: str,
        id: bytes,
        to: str,
        delay: int = 0,
        ttl: int | None = None,
        tube: str | None = None,
        update: Any = UNCHANGED,
    ) -> Operation[DecodedTask]:
        """Bring one task from a state that ``op`` takes tasks out of into the state ``to``. If
        ``to`` is empty, the task keeps its state, and a taken task becomes ready. ``tube`` is its
        new tube.

        Raises TaskNotFound, NotTaken, WrongState; ArgumentError for a zombie without a time.
        """
        if to == ZOMBIE and not (delay or (yield from self.recorded()).zombie):
            raise ArgumentError(f"queue {self.name!r} has no time for zombies: switch(..., delay=)")
        origins = "".join(sorted(sources(op) - {to}))

        def make(edit: Edit | None, whole: bool, told: Result) -> ChangeTask:
            return ChangeTask(id, origins, to, delay, ttl, tube, edit)

        changed, _ = yield from self._edit(op, Subject(id), update, make)
        return self._decode(changed)

    def peek(self, id: bytes) -> Operation[DecodedTask]:
        """Return a task as it is. Raises TaskNotFound, DecodingError, AuthenticationError."""
        return self._decode((yield from self._get(id)))

    def list(self, states: str, tube: str, limit: int) -> Operation[list[DecodedTask]]:
        """Return up to ``limit`` tasks of these states, one state after the other."""
        found: list[StoredTask] = []
        for state in states:
            start, examined = 0, 1
            while examined and len(found) < limit:
                examined, tasks = yield from self._page(state, tube, start, min(limit, _PAGE))
                found += tasks
                start += examined
        return [self._decode(task) for task in found[:limit]]

    def remove_from(self, id: bytes, states: str) -> Operation[bool]:
        """Remove a task if it is in one of these states; return False if it is not."""

        def make(edit: Edit | None, whole: bool, told: Result) -> ChangeTask:
            return ChangeTask(id, states, VOID)

        try:
            yield from self._edit("kill", Subject(id), UNCHANGED, make)
        except (TaskNotFound, WrongState):
            return False
        return True

    def truncate(self) -> Operation[int]:
        """Remove all tasks that are there now, in batches; returns how many were removed."""
        there = sum((yield from self.stats()).counts.values())
        removed = 0
        while removed < there:
            reply: TruncateTasksReply = yield TruncateTasks(MOST_ITEMS)
            found = self._found(reply)
            removed += found
            if not found:
                break
        return removed
