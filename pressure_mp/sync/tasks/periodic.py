"""Put tasks periodically: have schedules, and the thread beside a run that puts their tasks."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from ... import interrupts
from ...drivers import drive, waits_end_when
from ...effects import AnyOperation, On, Operation, T, WaitEnded
from ...encoding.schedules import Missed, Schedule, check
from ...exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerUnavailable,
    PressureError,
    QueueDoesNotExistError,
    ShutDown,
)
from ...handles.base_task import Data
from ...handles.task_verbs import AnyTask
from ...handles.tasks import TaskAttachment
from ...in_flight import Claim
from ...operations.periodic import PeriodicTask, ScheduleOperations
from ...operations.task_queue import DecodedTask
from ...operations.task_settling import UNCHANGED, Subject
from .handle import TaskHandle
from .outages import PAUSE
from .producer import put_options

#: Seconds until a run looks again whether its queue has schedules.
_LOOK = 10.0

_log = logging.getLogger("pressure_mp")


class PeriodicTasks(TaskHandle[Data, AnyTask]):
    """The part of :class:`pressure_mp.TaskQueue` that has schedules."""

    def every(
        self,
        when: float | str,
        data: Data,
        *,
        name: str | None = None,
        timezone: str | None = None,
        missed: Missed = "once",
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        key: str | None = None,
        result_ttl: float | None = None,
    ) -> str:
        """Have a task put every ``when`` seconds, or at the times of a cron line.

        The broker keeps the schedule, for all programs, until :meth:`unschedule` removes it, or the
        queue is deleted. Whichever :meth:`run` of the queue is there puts the task when its time
        comes, once for each time, also if processes die. A program may call this whenever it
        starts: a schedule of the same name that is the same goes on; another one takes its place,
        and begins now. Returns the name.

        :param when: a number of seconds, the first of which begin now; or a cron line such as
            ``"*/5 * * * *"``, with a field for seconds in front if it has six. Cron lines need
            ``pip install 'pressure_mp[cron]'``.
        :param name: the name of the schedule; else it is made of ``when`` and ``data``.
        :param timezone: in which a cron line is read, such as ``"Europe/Paris"``; None is UTC. In
            the hours when clocks change, each time comes once, as Debian's cron does it.
        :param missed: what to do for the times at which no run was there. ``"once"``: put one task
            for all of them. ``"all"``: one for each. ``"skip"``: none for a time that is over for
            more than 10 seconds.

        The other options are for each task, as in :meth:`put`. The times are by the broker's clock.
        A run that was begun before the queue had a schedule finds it within 10 seconds. While the
        queue is full, the run waits for space beside its handlers; times that pass meanwhile are
        missed. Never waits. Raises ArgumentError for an anonymous queue, and for a line or a time
        zone that there is not; NotSupportedError, EncodingError, QueueDoesNotExistError,
        ArgumentTypeError.
        """
        if self._at.is_anonymous:
            raise ArgumentError("periodic tasks are for a queue with a name")
        line, zone = check(when, timezone, missed)
        _, life, urgency, where, kept, _, of = put_options(
            None, ttl, priority, tube, result_ttl, None, key
        )
        options = {"ttl": life, "priority": urgency, "tube": where, "result_ttl": kept, "key": of}
        payload = self._at.codec.encode_whole(data)
        if name is None:
            name = f"{when} {hashlib.sha256(payload).hexdigest()[:8]}"
        elif not isinstance(name, str):
            raise ArgumentTypeError(f"the name of a schedule is a str, not {type(name).__name__}")
        schedule, named = Schedule(line, zone, missed, options, payload), name
        setting = on_schedules(self._at, lambda there: there.every(named, schedule), None)
        return self._then(self._run(setting), lambda _: named)

    def schedules(self) -> list[PeriodicTask]:
        """The schedules of the queue, the next one first; at most 1,000. Never waits."""
        return self._run(on_schedules(self._at, ScheduleOperations.schedules, []))

    def unschedule(self, name: str) -> bool:
        """Remove the schedule of that name; tasks that it has put stay. Returns False if there is
        none. Never waits."""
        return self._run(on_schedules(self._at, lambda there: there.unschedule(name), False))


def on_schedules(
    at: TaskAttachment, act: Callable[[ScheduleOperations], Operation[T]], none: T
) -> Operation[T]:
    """Run an operation on the queue of schedules that belongs to a queue; if there are no
    schedules, return ``none``."""
    operations = ScheduleOperations(at.name, at.address.prefix)
    there, _ = at.beside(operations.name)
    try:
        found: T = yield On(there, act(operations))
    except QueueDoesNotExistError:
        return none
    return found


def deleting(at: TaskAttachment) -> Operation[None]:
    """Delete a queue, with its schedules."""
    yield from at.leave(at.operations.delete())
    if not at.is_anonymous:
        yield from on_schedules(at, ScheduleOperations.delete, None)


class PeriodicPuts:
    """The thread beside a run that puts periodic tasks when their time comes."""

    def __init__(self, at: TaskAttachment) -> None:
        self._at = at
        self._operations = ScheduleOperations(at.name, at.address.prefix)
        #: The queue of schedules, and this process as its taker.
        self._binding, self._here = at.beside(self._operations.name)
        self._over = threading.Event()
        self._are_there = False
        #: A schedule that this process has taken and not yet given back; and the call that took it.
        self._taken: DecodedTask | None = None
        self._claim = Claim()

    def __enter__(self) -> None:
        if not self._at.is_anonymous:
            thread = threading.Thread(
                target=self._work, name=f"{self._at.name} periodic tasks", daemon=True
            )
            interrupts.start(thread)

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()  # its wait ends within a second

    def _work(self) -> None:
        pause = 0.0
        while not self._over.wait(pause):
            pause = self._step()
        self._give_back()

    def _run(self, operation: AnyOperation[T]) -> T:
        return drive(operation, self._binding.session())

    def _step(self) -> float:
        """Put the next task; return in how many seconds to call again."""
        try:
            if not self._are_there:
                self._are_there = self._run(self._operations.exists())
                return 0.0 if self._are_there else _LOOK
            if self._taken is None:
                self._taken = self._take()
            self._put(self._taken)
        except WaitEnded:
            return 0.0
        except BrokerUnavailable:  # the run tells of that
            return PAUSE
        except (QueueDoesNotExistError, ShutDown):  # there are no schedules, or no puts
            self._give_back()
            self._are_there = False
            return _LOOK
        except PressureError as error:
            self._bury(error)
        return 0.0

    def _take(self) -> DecodedTask:
        """Wait for the next time of a schedule."""
        how = self._here, self._claim.begin(), 1, "", None, None
        with waits_end_when(self._over.is_set):
            (taken,), _, _ = self._run(self._operations.take(DecodedTask, *how))
        return taken

    def _put(self, taken: DecodedTask) -> None:
        bindings = self._binding, self._at.attached()
        with waits_end_when(self._over.is_set):
            self._run(self._operations.put_due(self._at.operations, bindings, taken))
        self._here.lose([(taken.id, self._claim.call)])
        self._taken = None

    def _give_back(self) -> None:
        """Have another run put what this one has not put."""
        if self._taken is None:
            return
        self._taken = None
        with suppress(PressureError):  # the lease does it later
            self._run(self._here.lease.disown(self._claim))

    def _bury(self, error: PressureError) -> None:
        """Set aside a schedule whose task cannot be put."""
        _log.error("a periodic task of %r cannot be put", self._at.name, exc_info=error)
        if self._taken is None:
            return
        held = Subject(self._taken.id, self._claim.call)
        with suppress(PressureError):
            self._run(self._operations.bury(held, self._here, UNCHANGED, 0, None, error))
            self._taken = None
        self._give_back()
