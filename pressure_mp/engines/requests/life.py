"""The state of a queue of tasks, and the transitions of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from ... import states
from ..contract.task_records import NOT_IN_TIME, Record, StoredTask, TaskSettings
from ..contract.task_results import PROGRESS, TAKEN
from .kinds import Counts, Leases, SortedSet
from .line import Line
from .ready_tasks import ReadyTasks
from .results import Results
from .task_line import Ends, TaskLine

#: The states that are an outcome, and the outcome of each.
OUTCOMES: dict[str, str] = {
    states.ZOMBIE: "processed",
    states.DONE: "processed",
    states.BURIED: "buried",
}
#: The most tasks with a transition due that one call moves.
_MOST_DUE = 100
#: Behind every time.
_NEVER = 1 << 62
#: The states after which a task is ready again.
_RETURNING = (states.WAITING, states.TAKEN)


@dataclass(eq=False)
class Living:
    """A task."""

    id: bytes
    record: Record
    data: bytes
    #: The number of its arrival.
    seq: int
    #: The inboxes that are told of it; the inbox that it was put with is the first.
    inboxes: list[str] = field(default_factory=list)

    def stored(self, whole: bool = True) -> StoredTask:
        """Return the task as replies have it."""
        return StoredTask(self.id, self.record, self.data if whole else b"")

    @property
    def place(self) -> tuple[Any, ...]:
        """The sort key of the task, which is not ready, among the tasks of its state."""
        record = self.record
        if record.state == states.TAKEN:
            return record.owner[-8:], record.call, self.id
        if record.state in (states.BURIED, states.DONE):
            return record.since, self.seq, self.id
        return record.due or _NEVER, self.id


@dataclass
class Life:
    """The state of one queue of tasks. ``now`` is the time of the present request."""

    settings: TaskSettings
    created: int
    now: int
    users: MutableSet[str]
    tasks: MutableMapping[bytes, Living]
    #: How many tasks went each way from state to state; of a tube, with the tube behind a space.
    ways: Counts
    presence: Leases
    #: What processes say of their workers.
    workers: MutableMapping[str, list[str]]
    #: The callers that wait for the ends of tasks.
    ends: Ends
    #: The callers that wait for space.
    putters: Line
    results: Results
    ready: ReadyTasks[Living]
    #: The tasks that are not ready, by state and place.
    places: SortedSet[tuple[Any, ...]]
    #: The times at which the states of tasks end by themselves; and, for each task that is ready
    #: again then, this time once more.
    due: SortedSet[tuple[int, bytes]]
    returning: SortedSet[tuple[int, bytes]]
    closed: bool = False
    is_deleted: bool = False
    seq: int = 0
    counter: int = 0

    def configure(self, settings: TaskSettings) -> None:
        """Replace the options."""
        before, self.settings = self.settings, settings
        if before.per_key != settings.per_key:
            taken = [task.record for task in self.ordered(states.TAKEN)]
            groups = {(record.tube, record.key) for record in taken if record.key}
            self.ready.bound(settings.per_key, groups, self.now)

    def next_seq(self) -> int:
        """Return the number of a new task."""
        self.seq = max(self.seq + 1, self.now * 1000)
        return self.seq

    def number_ready(self, tube: str) -> int:
        """Count the ready tasks, whether they can be taken or not; of a tube if one is given."""
        behind = f" {tube}" if tube else ""
        others = (*states.TaskState, states.SHIFT)
        entered = sum(self.ways.value(f"{state}-{states.READY}{behind}") for state in others)
        return entered - sum(self.ways.value(f"{states.READY}-{state}{behind}") for state in others)

    def number_queued(self) -> int:
        """Count the tasks that the bound counts."""
        return sum(sign * self.ways.value(way) for way, sign in states.QUEUED_WAYS.items())

    def space(self, most: int) -> int:
        """Return for how many tasks there is space, at most ``most``."""
        bound = self.settings.maxsize
        return max(min(bound - self.number_queued(), most), 0) if bound else most

    def make_id(self, ids: str, taken: dict[bytes, bytes]) -> bytes:
        while True:
            if ids == "auto_increment":
                self.counter += 1
                id = b"%d" % self.counter
            else:
                id = b"%d" % max(self.now * 1000, self.seq + 1 + len(taken))
                while id in taken or id in self.tasks:
                    id = b"%d" % (int(id) + 1)
            if id not in taken and id not in self.tasks:
                return id

    def lifetime(self, ttl: int | None) -> int:
        """Return the time at which a task is dropped that is ready from now on; 0 for never."""
        time = self.settings.ttl if ttl is None else ttl
        return self.now + time if time else 0

    def ordered(self, state: str, *beginning: object) -> Iterator[Living]:
        """Iterate over the tasks of a state, in their order of service; over the tasks whose places
        begin so if ``beginning`` is given. They may change meanwhile."""
        if state == states.READY:
            yield from self.ready.all()
        else:
            for place in self.places.behind(state, *beginning):
                yield self.tasks[place[-1]]

    def next_ready(self, tube: str) -> Living | None:
        """Return the next task that can be taken, of a tube if one is given."""
        for task in self.ready.next(tube, self.now):
            if not 0 < task.record.due <= self.now:
                return task
            self.vanish(task, "dropped")
        return None

    def next_due_at(self) -> int | None:
        """Return the time at which the next task becomes ready by itself, or a limit admits one;
        None if neither happens."""
        due = next((due for due, _ in self.returning.behind()), None)
        return self._next_admitted_at(due) if self.ready.is_limited else due

    def _next_admitted_at(self, due: int | None) -> int | None:
        dues = [one for one in (due, self.ready.opens_at()) if one is not None]
        first = 0
        for tube, limit in self.ready.limits.items():
            until = limit.until(self.now)
            if until is None:
                continue
            if not tube:
                first = until
            if not self.ready.is_paused(tube) and self.number_ready(tube):
                dues.append(until)
        return max(min(dues), first) if dues else None

    def next_due(self) -> int | None:
        """Return in how many milliseconds the time of :meth:`next_due_at` is over; None if there is
        none."""
        due = self.next_due_at()
        return None if due is None else max(due - self.now, 0) + 1

    def sweep(self) -> None:
        """Make the transitions that are due."""
        over: list[bytes] = []
        for due, id in self.due.behind():
            if due > self.now or len(over) == _MOST_DUE:
                break
            over.append(id)
        for id in over:
            self.lapse(self.tasks[id])
        if self.ready.key_limits:
            for tube, key in self.ready.to_look_at(self.now):
                self.ready.update_line(tube, key, self.now)
        self.results.sweep(self.now)

    def lapse(self, task: Living) -> None:
        """Make the transition of a task whose time in its state is over."""
        state = task.record.state
        if state == states.WAITING:
            self.revive(task, 0, None, None)
        elif state == states.TAKEN:
            self.give_back(task, NOT_IN_TIME, 0, None, None)
        else:
            self.vanish(task, "processed" if state == states.ZOMBIE else "dropped")

    def add(self, task: Living) -> None:
        self.results.forget(task.id)  # of an earlier task with this id
        self.tasks[task.id] = task
        self._count(states.VOID, task.record.state, task.record.tube)
        self._enter(task)
        self._update_lines(task.record)

    def take(self, task: Living, owner: str, call: int, ttr: int | None) -> None:
        limit = self.settings.ttr if ttr is None else ttr
        if self.ready.limits:
            self.ready.note_delivery(task.record.tube, self.now)
        deliveries = task.record.deliveries + 1
        task_taken = {"deliveries": deliveries, "call": call, "owner": owner}
        self.turn(task, states.TAKEN, self.now + limit if limit else 0, None, **task_taken)
        for inbox in task.inboxes:
            self.results.tell(inbox, task.id, TAKEN, task.record)

    def report_progress(self, task: Living, report: str) -> None:
        task.record = task.record._replace(report=report)
        for inbox in task.inboxes:
            self.results.tell(inbox, task.id, PROGRESS, task.record)

    def process(self, task: Living, delay: int | None, tube: str | None) -> None:
        zombie = self.settings.zombie if delay is None else delay
        if self.settings.keep:
            self.turn(task, states.DONE, 0, tube)
        elif zombie:
            self.turn(task, states.ZOMBIE, self.zombie_until(zombie), tube)
        else:
            self.vanish(task, "processed")
            return
        self.conclude(task, "processed", states.TAKEN)

    def zombie_until(self, milliseconds: int) -> int:
        """Return the time at which a task is removed that becomes a zombie now; 0 when it stays."""
        return 0 if milliseconds == states.FOR_GOOD else self.now + milliseconds

    def give_back(
        self, task: Living, report: str, delay: int, ttl: int | None, tube: str | None
    ) -> None:
        """Give a taken task back, or bury it if it was delivered too often."""
        if report:
            task.record = task.record._replace(report=report)
        if 0 < self.settings.max_deliveries <= task.record.deliveries:
            self.turn(task, states.BURIED, 0, tube)
        else:
            self.revive(task, delay, ttl, tube)

    def revive(
        self, task: Living, delay: int, ttl: int | None, tube: str | None, **changes: Any
    ) -> None:
        """Make a task ready, or let it wait for a delay."""
        if delay:
            self.turn(task, states.WAITING, self.now + delay, tube, **changes)
        else:
            self.turn(task, states.READY, self.lifetime(ttl), tube, **changes)

    def turn(self, task: Living, after: str, ends: int, tube: str | None, **changes: Any) -> None:
        """Bring a task into another state, which ends by itself at ``ends``, and into a tube."""
        before = task.record
        self._leave(task)
        if tube is not None and tube != before.tube:
            self._count_shift(before.state, after, before.tube, tube)
            changes["tube"] = tube
        else:
            self._count(before.state, after, before.tube)
        if before.state == states.TAKEN:
            changes |= {"owner": "", "call": 0}
        task.record = before._replace(state=after, since=self.now, due=ends, **changes)
        self._enter(task)
        self._update_lines(before, task.record)
        if before.unique and before.state in OUTCOMES and after not in OUTCOMES:
            self.results.unique.hold_again(before.unique, task.id, self.now)
        if after == states.BURIED:
            self.conclude(task, "buried", before.state)

    def shift(self, task: Living, tube: str) -> None:
        """Move a task to another tube; its state stays."""
        record = task.record
        if tube != record.tube:
            self._count_shift(record.state, record.state, record.tube, tube)
            self._leave(task)
            task.record = record._replace(tube=tube)
            self._enter(task)
            self._update_lines(record, task.record)

    def postpone(self, task: Living, ends: int) -> None:
        """Let the state of a task end later."""
        self._end_never(task)
        task.record = task.record._replace(due=ends)
        self._end_in_time(task)

    def vanish(self, task: Living, outcome: str) -> None:
        before = task.record
        self._leave(task)
        self._count(before.state, states.VOID, before.tube)
        del self.tasks[task.id]
        task.record = before._replace(state=states.VOID, since=self.now, due=0)
        self._update_lines(before)
        self.conclude(task, outcome, before.state)

    def conclude(self, task: Living, outcome: str, before: str) -> None:
        """Tell the callers that wait for the task its outcome, and keep its result, if that is to
        be kept. Removing a task that had come to its end before is no new outcome."""
        self.ends.conclude(task.id, outcome)
        if task.record.unique:
            self.results.unique.release(task.record.unique, task.id, self.now)
        had = OUTCOMES.get(before)
        if had is None or (task.record.state != states.VOID and had != outcome):
            self.results.conclude(task.id, task.inboxes, task.record, outcome, self.now)

    def _enter(self, task: Living) -> None:
        record = task.record
        if record.state == states.READY:
            self.ready.enter(task)
        else:
            self.places.add((record.state, *task.place))
            if record.state == states.TAKEN and record.key:
                self.ready.begin(task, self.next_seq(), self.now)
        if record.due:
            self._end_in_time(task)

    def _leave(self, task: Living) -> None:
        record = task.record
        if record.state == states.READY:
            self.ready.leave(task)
        else:
            self.places.remove((record.state, *task.place))
            if record.state == states.TAKEN and record.key:
                self.ready.end(task)
        if record.due:
            self._end_never(task)

    def _end_in_time(self, task: Living) -> None:
        self.due.add((task.record.due, task.id))
        if task.record.state in _RETURNING:
            self.returning.add((task.record.due, task.id))

    def _end_never(self, task: Living) -> None:
        self.due.remove((task.record.due, task.id))
        if task.record.state in _RETURNING:
            self.returning.remove((task.record.due, task.id))

    def _update_lines(self, *records: Record) -> None:
        """Update the groups to which these records belong."""
        for record in records:
            if record.key:
                self.ready.update_line(record.tube, record.key, self.now)

    def _count(self, before: str, after: str, tube: str) -> None:
        way = before + "-" + after
        self.ways.add(way, 1)
        if tube:
            self.ways.add(f"{way} {tube}", 1)

    def _count_shift(self, before: str, after: str, old: str, new: str) -> None:
        if old:
            self._count(before, f"{states.SHIFT} {old}", "")
        if new:
            self._count(states.SHIFT, f"{after} {new}", "")
        if before != after:
            self._count(before, after, "")


class TaskPlace(Protocol):
    """The place of one name: its queue of tasks, if there is one, and the line of its callers."""

    @property
    def line(self) -> TaskLine: ...

    @property
    def state(self) -> Life | None: ...

    def clock(self) -> int:
        """Return the broker's time, in milliseconds since the epoch."""

    def create(self, settings: TaskSettings) -> Life: ...

    def delete(self) -> None: ...
