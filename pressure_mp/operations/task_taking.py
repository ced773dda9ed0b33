"""The operations of workers: to take tasks, and to acknowledge the one before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from .. import events
from ..deadlines import deadline, seconds_left, shown
from ..effects import Operation, Wait, WaitEnded, until
from ..encoding.large import Large
from ..encoding.task_values import decode_id
from ..engines.contract.replies import Closed, Lost, Missing, NoTask, Outcome
from ..engines.contract.task_records import LOST_DATA, StoredTask, TaskRecord
from ..engines.contract.tasks import (
    Acknowledged,
    BuryTask,
    OtherOwner,
    OtherState,
    Refusal,
    SettledReply,
    TakenTasks,
    TakeTasks,
    TakeTasksReply,
)
from ..events import Message
from ..exceptions import BrokerError, BrokerUnavailable, Empty, PressureError
from ..exhaustive import assert_never
from ..identity.processes import incarnation
from ..interrupts import is_from_outside
from .task_queue import error_text
from .task_result_storage import TaskResultStorage, told
from .task_settling import HeldTasks

T = TypeVar("T")


class Taker(HeldTasks, AbstractContextManager[None], Protocol):
    """This process as a worker that takes tasks; a context to be in while it waits for tasks that
    others have."""

    def doubt(self, call: int) -> None:
        """Note that this process may have got tasks in that call, which no caller has."""


class TaskToAcknowledge(Protocol):
    """A task to be acknowledged, as its taker has it."""

    @property
    def id_bytes(self) -> bytes:
        """The task's id."""

    @property
    def record(self) -> TaskRecord:
        """The record of the task when it was taken."""

    @property
    def result(self) -> Any:
        """The task's result."""

    def become_record(self, record: TaskRecord) -> None:
        """Replace the record: the task has changed."""


#: Tasks that were taken; and the first error, if some could not be decoded and are buried.
Delivery = tuple[list[T], PressureError | None]


class TaskTaking(TaskResultStorage):
    """The part of :class:`~.tasks.TaskOperations` that takes tasks."""

    def take(
        self,
        make: Callable[[bytes, TaskRecord, Any], T],
        here: Taker,
        call: int,
        limit: int,
        tube: str,
        ttr: int | None,
        timeout: float | None,
        done: TaskToAcknowledge | None = None,
        retries_alone: bool = False,
        apart: bool = False,
        note: Callable[[bool], None] | None = None,
    ) -> Operation[Delivery[T]]:
        """Take the next tasks, up to ``limit`` and to what one call may take. Waits for one,
        without limit or for ``timeout`` seconds.

        ``call`` is a number that the process never used before. ``make`` makes a task from an id, a
        record and data. A task that cannot be decoded is buried; its error is raised if there was
        no other task. Raises Empty when the time is up, and ShutDown. ``done`` is a task to
        acknowledge first, with its result; then EncodingError too. With ``retries_alone`` a task
        that was delivered before is taken alone. ``note`` is told when this begins to wait, and
        when it stops.
        """
        self.codec.prepare()  # without a key nothing is taken
        waits = timeout is None or timeout > 0
        end = None if timeout is None else deadline(waits, timeout)
        since = events.now()
        said = self._say(done)
        before = None if done is None else Acknowledged(done.id_bytes, done.record, told(said))
        how = waits, retries_alone, apart
        request = TakeTasks(incarnation(), call, limit, tube, ttr, before, *how)
        try:
            while True:
                if request.ack is not None and isinstance(said, Large):
                    stored = yield from self._store(said)
                    request = request._replace(ack=request.ack._replace(result=stored))
                reply: TakeTasksReply = yield until(request, end)
                if not isinstance(reply, TakenTasks):
                    request = yield from self._wait(reply, request, here, end, timeout, note)
                    continue
                _note(reply, here, call, self.settings.ttr if ttr is None else ttr, done)
                if events.listeners and done is not None:
                    acked = Message({}, decode_id(done.id_bytes))
                    events.settled(self.destination, "ack", [acked])
                if reply.tasks:
                    data = self._decode_all(reply.tasks)
                    if data is None:
                        return (yield from self._sort_out(make, reply.tasks, here, call, since))
                    both = zip(reply.tasks, data, strict=True)
                    tasks = [make(task.id, task.record, one) for task, one in both]
                    if events.listeners:
                        self._tell_taken(tasks, reply.tasks, since)
                    return tasks, None
                request, done = request._replace(ack=None), None
                if reply.later is not None:
                    request = yield from self._wait(reply.later, request, here, end, timeout, note)
        except (BrokerError, BrokerUnavailable):
            here.doubt(call)
            raise

    def _tell_taken(self, tasks: list[Any], taken: list[StoredTask], since: int) -> None:
        """Tell listeners of taken tasks; note for each task what to tell them when it is
        processed."""
        for task, stored in zip(tasks, taken, strict=True):
            record = stored.record
            is_first = record.deliveries == 1
            task.message = Message(
                self.codec.headers_of(stored.data),
                decode_id(stored.id),
                max(record.since - record.created, 0) / 1000 if is_first else None,
            )
        events.received(self.destination, [task.message for task in tasks], since)

    def _say(self, done: TaskToAcknowledge | None) -> bytes | Large:
        """Encode the result of a task, if it was asked for."""
        if done is None or not done.record.result_ttl:
            return b""
        return self._results.encode_value(done.id_bytes, done.result)

    def _wait(
        self,
        reply: NoTask | Refusal | Lost | Closed | Missing,
        request: TakeTasks,
        here: Taker,
        end: float | None,
        timeout: float | None,
        note: Callable[[bool], None] | None,
    ) -> Operation[TakeTasks]:
        """Wait until there may be a task; return the request to make then."""
        match reply:
            case NoTask():
                left = seconds_left(end)
                is_late = timeout is not None and (left is None or left <= 0)
                with here:
                    if not request.waits:
                        raise self._empty(request.tube, timeout) if is_late else WaitEnded
                    if is_late:
                        return request._replace(waits=False)
                    if note is not None:
                        note(True)
                    try:
                        yield Wait(reply, left)
                    except WaitEnded:  # the last call takes only tasks that are there now
                        return request._replace(waits=False)
                    finally:
                        if note is not None:
                            note(False)
                return request
            case Outcome.LOST:
                return request  # it is stored again
            case Outcome.CLOSED:
                raise self._shut_down()
            case Outcome.MISSING:
                raise self._missing()
            case Outcome.ABSENT | OtherState() | OtherOwner():
                assert request.ack is not None
                raise self._refusal(reply, request.ack.id, "ack")
            case _:
                assert_never(reply)

    def _decode_all(self, taken: list[StoredTask]) -> list[Any] | None:
        """Decode the data of the tasks; None when the data of any cannot be used."""
        data = [task.data for task in taken]
        if LOST_DATA in data:
            return None
        try:
            return self.codec.decode_many(data)
        except Exception as error:
            if is_from_outside(error):
                raise
            return None

    def _empty(self, tube: str, timeout: float | None) -> Empty:
        where = f"tube {tube!r} of queue {self.name!r}" if tube else f"queue {self.name!r}"
        still = f", still after {shown(timeout)}" if timeout else ""
        return Empty(f"{where} has no task that is ready{still}")

    def _sort_out(
        self,
        make: Callable[[bytes, TaskRecord, Any], T],
        taken: list[StoredTask],
        here: Taker,
        call: int,
        since: int,
    ) -> Operation[Delivery[T]]:
        """Return the tasks that can be used; bury the others."""
        tasks: list[T] = []
        usable: list[StoredTask] = []
        problem: PressureError | None = None
        for task in taken:
            try:
                tasks.append(make(*self._decode(task)))
                usable.append(task)
            except PressureError as error:
                problem = problem or error
                burying = BuryTask(task.id, incarnation(), call, error=error_text(error))
                reply: SettledReply = yield burying
                if reply is Outcome.MISSING:
                    raise self._missing() from error
                here.lose([(task.id, call)])  # buried, or no longer ours
        if problem is not None and not tasks:
            raise problem
        if events.listeners:
            self._tell_taken(tasks, usable, since)
        return tasks, problem


def _note(
    reply: TakenTasks, here: Taker, call: int, longest: int, done: TaskToAcknowledge | None
) -> None:
    """Note which process has which task now."""
    ids = [task.id for task in reply.tasks]
    if done is None or reply.acknowledged is None:
        here.keep(ids, call, longest)
        return
    here.keep(ids, call, longest, (done.id_bytes, done.record.call))
    done.become_record(reply.acknowledged)
