"""What a worker does with a queue of tasks: take them, and say what became of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from ... import interrupts, states
from ...effects import Operation
from ...encoding.task_values import (
    check_priority,
    check_times,
    check_tube,
    encode_id,
    milliseconds,
)
from ...engines.contract.task_records import Held, TaskRecord
from ...exceptions import ArgumentError, ArgumentTypeError, PressureError, RejectedItemWarning
from ...in_flight import Claim
from ...operations.task_queue import DecodedTask
from ...operations.task_settling import UNCHANGED, Subject
from ...operations.task_taking import Delivery
from ..handles import check_max_items
from .base_task import Backoff, BaseTask, Data, TaskOrId, check_on_error
from .handle import TaskHandle
from .task import Task

#: A task of either world.
AnyTask = TypeVar("AnyTask")


class TaskTaker(TaskHandle[Data]):
    """The part of :class:`pressure_mp.TaskQueue` that is for workers."""

    def take(
        self,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
        ack: Task[Data] | None = None,
    ) -> Task[Data]:
        """Take the next task; of one tube, if one is given.

        Blocks until there is one: without limit, or at most ``timeout`` seconds; with 0 or less not
        at all. Those who wait are served in the order in which they came. A take that was sent is
        settled, which takes up to ``reconnect`` seconds longer when the connection breaks.

        :param ttr: seconds until the task is ready again if nothing is said of it; instead of the
            queue's own.
        :param on_error: what becomes of the task when a ``with`` block over it raises.
        :param backoff: after that, seconds until it may be taken again; or a callable that is given
            how often the task was delivered, and returns them.
        :param ack: a task to acknowledge first: as :meth:`ack` does, for up to ``reconnect``
            seconds whatever ``timeout`` is. Raises what that does; then nothing is taken. Mostly
            both are one round trip.

        Raises Empty when the time is up, ShutDown when the queue is shut down and no task is ready,
        DecodingError for a task that cannot be decoded and AuthenticationError for one that is not
        signed with a key of this handle (they are buried), QueueDoesNotExistError,
        HandleClosedError, ArgumentError, ArgumentTypeError, BrokerUnavailable.
        """

        limit = None if timeout is None else self._seconds(timeout)
        if ack is None:
            return self._take(1, limit, ttr, tube, on_error, backoff)[0]
        check_done(ack)
        return self._take(1, limit, ttr, tube, on_error, backoff, ack)[0]

    def take_many(
        self,
        max_tasks: int,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> list[Task[Data]]:
        """Take the next tasks: 1 to ``max_tasks``, and at most 1,000 or about 1 MB.

        Blocks as :meth:`take` does until there is one; the others are those that are ready too.
        Raises what :meth:`take` does. Those that cannot be decoded are buried: with a
        RejectedItemWarning when others are returned, else with the error of the first.
        """

        check_max_items(max_tasks)
        limit = self._seconds(timeout)
        return self._take(max_tasks, limit, ttr, tube, on_error, backoff)

    def _take(
        self,
        number: int,
        timeout: float | None,
        ttr: float | None,
        tube: str | None,
        on_error: str,
        backoff: Backoff | None,
        ack: Task[Data] | None = None,
    ) -> list[Task[Data]]:
        self._check_open()
        check_on_error(on_error, backoff)
        here, claim = self._here, Claim()
        try:
            taking = self._taking(self._task, claim, number, timeout, ttr, tube, ack)
            run = self._run if ack is None else self._acknowledging
            tasks, problem = run(taking)
            hand_out(tasks, problem, on_error, backoff)
            return tasks
        except PressureError:
            raise
        except BaseException:
            interrupts.abandoned += [(here.lease, claim)]
            interrupts.settle()
            raise

    def _taking(
        self,
        make: Callable[[bytes, TaskRecord, Any], AnyTask],
        claim: Claim,
        number: int,
        timeout: float | None,
        ttr: float | None,
        tube: str | None,
        ack: BaseTask[Any] | None,
    ) -> Operation[Delivery[AnyTask]]:
        where = check_tube(tube)
        own_ttr = None if ttr is None else milliseconds("ttr", ttr, least=0.001)
        call = claim.begin()
        return self._operations.take(make, self._here, call, number, where, own_ttr, timeout, ack)

    def ack(
        self,
        task: Task[Data] | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
        result: Any = UNCHANGED,
        connection: object | None = None,
    ) -> Task[Data]:
        """The task is processed: it is removed, or stays as a zombie or as done.

        Returns the task as it is now, with the state ``TaskState.VOID`` if it is removed. So do
        :meth:`release`, :meth:`bury` and :meth:`touch`, which take these arguments too:

        :param task: a task that was taken, or its id.
        :param update: what the data is from now on; or a callable that is given the data, and
            returns the new. With an id, when the data was changed meanwhile, it is called again.
        :param delay: seconds as a zombie, instead of the queue's own; for a queue without ``keep``.
        :param tube: move it there.
        :param result: what the task came to, instead of what its ``result`` was set to, see
            :meth:`result`. It is encoded and kept if somebody asked for it.

        Never waits. Raises NotTaken when nobody has the task, NotOwner when another process or a
        later take has it, TaskNotFound, EncodingError, QueueDoesNotExistError, ArgumentError,
        ArgumentTypeError, BrokerUnavailable. It works on a closed handle.

        :param connection: of :meth:`ack` and :meth:`ack_many` only: a connection to the queue's own
            PostgreSQL database, as for :meth:`pressure_mp.Queue.put`. The task is processed if and
            only if its transaction commits, with whatever else that does; until then it is taken,
            and is returned as it is. If this process no longer has it by then, since its ``ttr`` is
            over, the commit fails, and nothing of the transaction is done.
        """

        acking = self._acking(task, update, delay, tube, result, connection is not None)
        if connection is None:
            return self._task(*self._acknowledging(acking))
        found = self._task(*self._run_in(connection, acking))
        note_staged([task, found])
        return found

    def _acking(
        self,
        task: TaskOrId,
        update: Any,
        delay: float | None,
        tube: str | None,
        result: Any,
        at_commit: bool,
    ) -> Operation[DecodedTask]:
        wait = None if delay is None else milliseconds("delay", delay, least=0.001)
        if wait is not None and self._settings.keep:
            raise ArgumentError(f"queue {self._name!r} keeps its tasks: there is no zombie's delay")
        where = None if tube is None else check_tube(tube)
        if result is UNCHANGED:
            result = task.result if isinstance(task, BaseTask) else None
        ack = self._operations.ack_at_commit if at_commit else self._operations.ack
        return ack(self._subject(task), self._here, update, wait, where, result)

    def _settle(self, settling: Operation[DecodedTask]) -> Task[Data]:
        return self._task(*self._run(settling))

    def _subject(self, task: TaskOrId) -> Subject:
        """A task, with the number of the take by which this process has it."""
        if isinstance(task, BaseTask):
            return Subject(task.id_bytes, task.call, True, task.data, bool(task.record.result_ttl))
        return Subject(*self._held(task))

    def _held(self, task: TaskOrId) -> Held:
        if isinstance(task, BaseTask):
            return task.id_bytes, task.record.call
        id = encode_id(task)
        return id, self._here.call_of(id)

    def ack_many(
        self, tasks: Iterable[Task[Data] | int | str], *, connection: object | None = None
    ) -> None:
        """Acknowledge tasks, up to 1,000 or 1 MB of results in each round trip. Never waits.

        A ``result`` of theirs that somebody asked for is told with them. A large one is stored
        first, as for :meth:`ack`.

        Those that cannot be are left out; then what :meth:`ack` raises for the first of them is
        raised in the end: ``accepted`` is how many were acknowledged, and ``rest`` are the others.

        :param connection: as for :meth:`ack`; what is raised then is for all, so that the
            transaction is to be rolled back.
        """

        given = list(tasks)
        if connection is None:
            self._acknowledging(self._acking_many(given))
        else:
            self._run_in(connection, self._acking_many_at_commit(given))
            note_staged(given)

    def _acking_many_at_commit(self, given: Sequence[TaskOrId]) -> Operation[None]:
        helds = [self._held(task) for task in given]
        return self._operations.ack_many_at_commit(helds, self._here, _results_of(given))

    def _acking_many(self, given: Sequence[TaskOrId]) -> Operation[None]:
        return self._acking_held(given, [self._held(task) for task in given])

    def _acking_held(self, given: Sequence[TaskOrId], helds: list[Held]) -> Operation[None]:
        problems = yield from self._operations.ack_many(helds, self._here, _results_of(given))
        processed = self._settings.processed
        for place, task in enumerate(given):
            if place not in problems and isinstance(task, BaseTask):
                task.become_record(task.record.into(processed))
        if problems:
            left = sorted(problems)
            first = problems[left[0]]
            first.accepted = len(given) - len(left)
            first.rest = [given[place] for place in left]
            raise first

    def release(
        self,
        task: Task[Data] | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        error: str | BaseException | None = None,
    ) -> Task[Data]:
        """Give the task back: it is ready for others, in its old place, or waits for a delay.

        :param delay: seconds before it may be taken again.
        :param ttl: seconds for which it is ready, instead of the queue's own. Excludes ``delay``.
        :param priority: its priority from now on.
        :param error: what went wrong, a text or an error: its text is kept with the task. An error
            is what :meth:`result` raises, if the task is buried for it.

        The rest is as for :meth:`ack`. After ``max_deliveries`` the task is buried instead.
        """

        return self._settle(self._releasing(task, update, delay, ttl, priority, tube, error))

    def _releasing(
        self,
        task: TaskOrId,
        update: Any,
        delay: float | None,
        ttl: float | None,
        priority: float | None,
        tube: str | None,
        error: str | BaseException | None,
    ) -> Operation[DecodedTask]:
        wait, life = check_times(delay, ttl)
        urgency = None if priority is None else check_priority(priority)
        where = None if tube is None else check_tube(tube)
        options = wait, life, urgency, where, error
        return self._operations.release(self._subject(task), self._here, update, *options)

    def bury(
        self,
        task: Task[Data] | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        ttl: float | None = None,
        tube: str | None = None,
        error: str | BaseException | None = None,
    ) -> Task[Data]:
        """Put the task aside, until an administrator kicks, kills or switches it.

        :param ttl: seconds for which it is buried; then it is dropped. None is for good.
        :param error: why, a text or an error: its text is kept with the task. An error is what
            :meth:`result` raises.

        The rest is as for :meth:`ack`.
        """

        return self._settle(self._burying(task, update, ttl, tube, error))

    def _burying(
        self,
        task: TaskOrId,
        update: Any,
        ttl: float | None,
        tube: str | None,
        error: str | BaseException | None,
    ) -> Operation[DecodedTask]:
        where = None if tube is None else check_tube(tube)
        life = milliseconds("ttl", ttl, least=0.001)
        return self._operations.bury(self._subject(task), self._here, update, life, where, error)

    def touch(
        self,
        task: Task[Data] | int | str,
        increment: float | None = None,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
    ) -> Task[Data]:
        """Have the task for ``increment`` seconds more; without, for the queue's ``ttr`` from now.

        A task that is ready is kept for longer too: it is dropped so much later; without
        ``increment``, after the queue's ``ttl`` from now. Anybody may do that, with the task's id
        or a :class:`Task` that was ready when it was looked at or given back. Who had taken a task
        and lost it is told so.

        Nothing changes for a task without a ttr, or a ready one without a ttl. The rest is as for
        :meth:`ack`.
        """

        return self._settle(self._touching(task, increment, update))

    def _touching(
        self, task: TaskOrId, increment: float | None, update: Any
    ) -> Operation[DecodedTask]:
        more = None if increment is None else milliseconds("increment", increment, least=0.001)
        subject = self._subject(task)
        if isinstance(task, BaseTask) and task.state == states.READY:
            subject = self._subject(task.id)  # it is nobody's
        return self._operations.touch(subject, self._here, update, more)


def note_staged(tasks: Iterable[TaskOrId]) -> None:
    """They are acknowledged if a transaction commits."""
    for task in tasks:
        if isinstance(task, BaseTask):
            task.is_staged = True


def check_done(ack: object) -> None:
    """Raises ArgumentTypeError for what take(ack=) cannot acknowledge."""
    if not isinstance(ack, BaseTask):
        raise ArgumentTypeError(f"ack is a task that was taken, not {type(ack).__name__}")


def hand_out(
    tasks: Sequence[BaseTask[Any]],
    problem: PressureError | None,
    on_error: str,
    backoff: Backoff | None,
) -> None:
    """What was taken is for the caller of a verb; warns of what could not be decoded."""
    for task in tasks:
        task.on_error, task.backoff = on_error, backoff
    if problem is not None:
        warnings.warn(str(problem), RejectedItemWarning, stacklevel=4)


def _results_of(given: Sequence[TaskOrId]) -> dict[int, Any]:
    """What tasks came to of which somebody asked for the result, by their place."""
    return {
        place: task.result
        for place, task in enumerate(given)
        if isinstance(task, BaseTask) and task.record.result_ttl and task.result is not None
    }
