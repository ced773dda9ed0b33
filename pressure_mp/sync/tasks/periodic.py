"""Put tasks periodically: have schedules, and the thread beside a run that puts their tasks."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ... import interrupts
from ...drivers import drive, waits_end_when
from ...effects import AnyOperation, On, Operation, T, WaitEnded
from ...encoding.schedules import Missed, Schedule, check
from ...encoding.task_values import decode_id
from ...exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    BrokerUnavailable,
    IncompleteQueueError,
    NotDurable,
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

#: Refusals by the state of the broker or of its queues, after which a try can succeed. After a put
#: that was not confirmed (NotDurable), the next try finds the task there.
_PASSING = (BrokerError, IncompleteQueueError, NotDurable)

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
        starts: a schedule under that name that is equal, and not buried, goes on. A different or a
        buried schedule is replaced, and the new schedule begins now. Returns the name.

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
        """The schedules of the queue, the next one first; at most 1,000. Never waits. Raises
        DecodingError for a schedule that this version of the package cannot decode."""
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
        #: A schedule that this process has taken and not yet given back; the call that took it, and
        #: when that was done, on the monotonic clock.
        self._taken: DecodedTask | None = None
        self._claim = Claim()
        self._since = 0.0
        #: The kinds of refusals that the log was told of, until a first try is not refused.
        self._told: set[type[PressureError]] = set()
        #: The schedules that this machine cannot read, as the log was told.
        self._unreadable: set[bytes] = set()

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
            is_new = self._taken is None
            if self._taken is None:
                self._taken = self._take()
            self._put(self._taken)
            if is_new:
                self._told.clear()
        except WaitEnded:
            return 0.0
        except BrokerUnavailable:  # the run tells of that
            return PAUSE
        except (QueueDoesNotExistError, ShutDown):  # there are no schedules, or no puts
            self._give_back()
            self._are_there = False
            return _LOOK
        except PressureError as error:
            return self._answer_refusal(error)
        return 0.0

    def _take(self) -> DecodedTask:
        """Wait for the next time of a schedule."""
        how = self._here, self._claim.begin(), 1, "", None, None
        with waits_end_when(self._over.is_set):
            (taken,), _, _ = self._run(self._operations.take(DecodedTask, *how))
        self._since = time.monotonic()
        return taken

    def _put(self, taken: DecodedTask) -> None:
        bindings = self._binding, self._at.attached()
        since = self._since
        putting = self._operations.put_due(
            self._at.operations, bindings, taken, lambda: time.monotonic() - since
        )
        with waits_end_when(self._over.is_set):
            why = self._run(putting)
        self._here.lose([(taken.id, self._claim.call)])
        self._taken = None
        if why is None:
            self._unreadable.discard(taken.id)
        elif taken.id not in self._unreadable:
            self._unreadable.add(taken.id)
            _log.warning(
                "the schedule %r of %r is left to other machines: %s",
                *(decode_id(taken.id), self._at.name, why),
            )

    def _give_back(self) -> None:
        """Have another run put what this one has not put."""
        if self._taken is None:
            return
        self._taken = None
        with suppress(PressureError):  # the lease does it later
            self._run(self._here.lease.disown(self._claim))

    def _answer_refusal(self, error: PressureError) -> float:
        """Set aside a schedule whose task can never be put, and try again after any other refusal;
        return in how many seconds."""
        if self._taken is not None and not isinstance(error, _PASSING):
            return 0.0 if self._bury(self._taken, error) else PAUSE
        if type(error) not in self._told:
            self._told.add(type(error))
            _log.warning("periodic tasks of %r are tried again: %s", self._at.name, error)
        return PAUSE

    def _bury(self, taken: DecodedTask, error: PressureError) -> bool:
        """Set a schedule aside, or give it back if that is refused; return whether it is set
        aside."""
        held = Subject(taken.id, self._claim.call)
        try:
            self._run(self._operations.bury(held, self._here, UNCHANGED, 0, None, error))
        except PressureError:
            self._give_back()
            return False
        self._taken = None
        _log.error("a periodic task of %r cannot be put", self._at.name, exc_info=error)
        return True
