"""The operations of periodic tasks.

Each schedule is a task of a second queue, at the same broker, that waits until the next time. A run
takes it then, puts the periodic task, and gives the schedule back with its next time: the last two
in one step, so that each time has its task once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..effects import On, Operation, Wait
from ..encoding import schedules
from ..encoding.as_queued import AsQueued
from ..encoding.schedules import LATE, Schedule
from ..encoding.task_values import decode_id, encode_id
from ..engines.contract.queues import How
from ..engines.contract.replies import NoSpace
from ..engines.contract.session import Binding
from ..engines.contract.task_records import Edit, TaskSettings
from ..engines.contract.tasks import PutTasks, ReleaseTask
from ..exceptions import (
    ArgumentError,
    NotOwner,
    NotSupportedError,
    NotTaken,
    PressureError,
    TaskExists,
    TaskNotFound,
)
from ..identity.processes import incarnation
from ..states import BURIED, READY, TAKEN, VOID, WAITING
from .forwarding import forward
from .settling import Settling, ready_made
from .task_queue import DecodedTask
from .task_stats import TaskStats
from .tasks import TaskOperations

#: Follows the name of a queue in the name of the queue of its schedules.
SUFFIX = ":periodic"

#: The options of a queue of schedules: a schedule stays until it is removed.
_SETTINGS = TaskSettings(0, 0, 0, False, 0, "required", 0)

#: The states of schedules; buried ones are those that could not be used.
_STATES = "".join((READY, TAKEN, WAITING, BURIED))
#: How many schedules are listed.
_MOST = 1_000

#: Milliseconds for which a schedule that one machine cannot read waits for a run on another one.
#: That run puts the task before the time is missed.
_ELSEWHERE = round(LATE / 2 * 1000)


class PeriodicTask(NamedTuple):
    """A schedule of periodic tasks, as :meth:`pressure_mp.TaskQueue.schedules` returns it."""

    name: str
    #: Seconds between two tasks, or a cron line.
    when: float | str
    #: The time zone in which the line is read.
    timezone: str
    #: The time of the next task, in seconds since the epoch.
    next: float
    #: Whether it puts no task any more, as its task cannot be put;
    #: :meth:`pressure_mp.TaskQueue.every` makes it anew.
    is_buried: bool = False


class ScheduleOperations(TaskOperations):
    """The operations of the queue of schedules of the queue called ``name``."""

    def __init__(self, name: str, prefix: str) -> None:
        super().__init__(name + SUFFIX)
        self._owner = name
        self.codec = AsQueued(prefix, self.name)
        self.settings, self.is_open = _SETTINGS, True

    def every(self, name: str, wanted: Schedule) -> Operation[None]:
        """Have a schedule of that name: it goes on if it is there, and begins now if it is not, is
        buried, or is another one."""
        yield from self.open(How.OPEN, _SETTINGS)
        now = (yield from self._texts()).now / 1000  # by the broker's clock
        begun, id = wanted.begin(now), encode_id(name)
        waiting = _wait(now, begun), 0, 0.0, "", 0, "", ""
        while True:
            try:
                yield from self.put(begun.encode(), name, waiting)
                return
            except TaskExists:
                pass
            try:
                found = yield from self.peek(id)
            except TaskNotFound:
                continue
            is_buried = found.record.state == BURIED
            if not is_buried and self._schedule(found).is_like(wanted):
                return
            yield from self.remove_from(id, BURIED if is_buried else _STATES)

    def schedules(self) -> Operation[list[PeriodicTask]]:
        """Return the schedules, the next one first. They are listed state by state, while they
        change their states: so until there are as many as the broker counts, or none has changed
        its state, as where one is damaged; and anew when one was removed meanwhile."""
        there: dict[str, PeriodicTask] = {}
        stats = yield from self.stats()
        while True:
            before = stats
            there |= yield from self._there()
            stats = yield from self.stats()
            if _removed(stats) != _removed(before):
                there = {}
            elif (
                len(there) >= min(sum(stats.counts.values()), _MOST)
                or stats.transitions == before.transitions
            ):
                return sorted(there.values(), key=lambda one: one.next)

    def _there(self) -> Operation[dict[str, PeriodicTask]]:
        found = {}
        for task in (yield from self.list(_STATES, "", _MOST)):
            name, one = str(decode_id(task.id)), self._schedule(task)
            is_buried = task.record.state == BURIED
            found[name] = PeriodicTask(name, one.when, one.timezone, one.at, is_buried)
        return found

    def unschedule(self, name: str) -> Operation[bool]:
        """Remove a schedule; return whether it was there."""
        return (yield from self.remove_from(encode_id(name), _STATES))

    def put_due(
        self,
        target: TaskOperations,
        at: tuple[Binding, Binding],
        taken: DecodedTask,
        passed: Callable[[], float],
    ) -> Operation[PressureError | None]:
        """Put the task of a schedule that this process has taken, if it had not missed its time
        then, and give the schedule back. Waits for space. ``at`` are the bindings of the schedules
        and of the target; ``passed`` tells the seconds since the schedule was taken. Returns the
        error if this machine cannot read the schedule, because it lacks a library or a time zone:
        then the schedule is given back without a task, for runs on other machines."""
        source, there = at
        now = taken.record.since / 1000  # by the broker's clock
        schedule = self._schedule(taken)
        held = taken.id, incarnation(), taken.record.call
        try:
            later = schedule.go_on(now)
        except (ArgumentError, NotSupportedError) as error:
            yield ReleaseTask(*held, delay=_ELSEWHERE)
            return error
        edit = Edit(later.encode())

        def giving_back() -> ReleaseTask:
            # Some pass until there is space, or until the broker refuses no more.
            return ReleaseTask(*held, delay=_wait(now + passed(), later), edit=edit)

        if not schedule.is_to_put(now):
            yield giving_back()
            return None
        ids = target.settings.id
        id = f"{decode_id(taken.id)} {round(schedule.at * 1000)}"
        new = encode_id(id) if ids in ("required", "callable") else b""
        put = PutTasks([(new, schedule.data)], ids, **schedule.options)
        settling = Settling(
            request=lambda: ready_made(giving_back()),
            refusal=lambda why: self._not_forwarded(why, taken.id),
            done=lambda settled: None,
        )
        try:
            reply = yield On(there, _forward_in_time(source, settling, put))
            target._ids(reply)
        except TaskExists:  # of the id that only the task of this time has: it was put before
            yield giving_back()
        except (TaskNotFound, NotTaken, NotOwner):
            pass  # another process has the schedule
        return None

    def _schedule(self, task: DecodedTask) -> Schedule:
        return schedules.decode(task.data, str(decode_id(task.id)), self._owner)


def _forward_in_time(source: Binding, settling: Settling, put: PutTasks) -> Operation[Any]:
    """Forward as soon as there is space for the put."""
    while True:
        reply = yield from forward(source, settling, put)
        if not isinstance(reply, NoSpace):
            return reply
        yield Wait(reply, None)


def _removed(stats: TaskStats) -> int:
    """Count the schedules that were ever removed."""
    return sum(number for way, number in stats.transitions.items() if way.endswith(f"-{VOID}"))


def _wait(now: float, schedule: Schedule) -> int:
    """Return for how many milliseconds a schedule waits for its next time."""
    return max(round((schedule.at - now) * 1000), 1)
