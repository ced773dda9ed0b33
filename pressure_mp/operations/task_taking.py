"""The operations of workers: to take tasks, and to acknowledge the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from .. import events
from ..deadlines import deadline, seconds_left, shown
from ..effects import Operation, Wait, WaitEnded, until
from ..encoding.reports import of_error
from ..encoding.task_values import decode_id
from ..engines.contract.replies import Closed, Lost, Missing, NoTask, Outcome
from ..engines.contract.task_records import LOST_DATA, StoredTask, TaskRecord
from ..engines.contract.tasks import (
    Acknowledged,
    BuryTask,
    Processed,
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
from .task_settling import HeldTasks, TaskSettling, batches

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


#: Tasks that were taken; the first error, if some could not be decoded and are buried; and the
#: errors of tasks that could not be acknowledged, by their places.
Delivery = tuple[list[T], PressureError | None, dict[int, PressureError]]


class TaskTaking(TaskSettling):
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
        done: Sequence[TaskToAcknowledge] = (),
        retries_alone: bool = False,
        apart: bool = False,
    ) -> Operation[Delivery[T]]:
        """Take the next tasks, up to ``limit`` and to what one call may take. Waits for one,
        without limit or for ``timeout`` seconds.

        ``call`` is a number that the process never used before. ``make`` makes a task from an id, a
        record and data. A task that cannot be decoded is buried; its error is raised if there was
        no other task. Raises Empty when the time is up, and ShutDown. ``done`` are tasks to
        acknowledge first, with their results. If one of them cannot be, this does not wait; if none
        of them can be, it takes nothing. With ``retries_alone`` a task that was delivered before is
        taken alone.
        """
        self.codec.prepare()  # without a key nothing is taken
        waits = timeout is None or timeout > 0
        end = None if timeout is None else deadline(waits, timeout)
        since, refused = events.now(), dict[int, PressureError]()
        how = waits, retries_alone, apart
        request = TakeTasks(incarnation(), call, limit, tube, ttr, (), *how)
        reply: TakeTasksReply
        try:
            if done:
                reply, refused = yield from self._take_after(request, done, here, end)
            else:
                reply = yield until(request, end)
            while not isinstance(reply, TakenTasks) or not reply.tasks:
                if refused:
                    return [], None, refused
                later = reply.later if isinstance(reply, TakenTasks) else reply
                if later is not None:
                    request = yield from self._wait(later, request, here, end, timeout)
                reply = yield until(request, end)
            first = reply.tasks[0].record
            longest = first.due - first.since if first.due else 0
            here.keep([task.id for task in reply.tasks], call, longest)
            data = self._decode_all(reply.tasks)
            if data is None:
                tasks, problem = yield from self._sort_out(make, reply.tasks, here, call, since)
                if problem is not None and not (tasks or refused):
                    raise problem
                return tasks, problem, refused
            both = zip(reply.tasks, data, strict=True)
            tasks = [make(task.id, task.record, one) for task, one in both]
            if events.listeners:
                self._tell_taken(tasks, reply.tasks, since)
            return tasks, None, refused
        except (BrokerError, BrokerUnavailable):
            here.doubt(call)
            raise

    def _take_after(
        self,
        request: TakeTasks,
        done: Sequence[TaskToAcknowledge],
        here: Taker,
        end: float | None,
    ) -> Operation[tuple[TakeTasksReply, dict[int, PressureError]]]:
        """Acknowledge tasks, and take in the request that acknowledges the last of them. Return
        its reply, and the errors of the tasks that could not be acknowledged."""
        held = [(task.id_bytes, task.record.call) for task in done]
        asked = {place: task for place, task in enumerate(done) if task.record.result_ttl}
        results = {place: task.result for place, task in asked.items()}
        said, refused = self._say_values(held, results)
        places = [place for place in range(len(done)) if place not in refused]
        *sooner, last = batches(places, said) or [[]]
        for chosen in sooner:
            more, processed = yield from self._ack_chosen(held, chosen, said, here)
            refused |= more
            self._become_processed(done, chosen, refused, processed)
        reply: TakeTasksReply = Outcome.LOST if last else TakenTasks([])
        while reply is Outcome.LOST:
            acks = []
            for place in last:
                result = yield from self._store(said.get(place, b""))
                acks.append(Acknowledged(done[place].id_bytes, done[place].record, result))
            since = events.now()
            reply = yield until(request._replace(acks=acks), end)
        if isinstance(reply, TakenTasks) and last:
            refused |= self._note_acknowledged(held, last, reply.refused, here, since)
            if reply.processed is not None:
                self._become_processed(done, last, refused, reply.processed)
        return reply, refused

    def _become_processed(
        self,
        done: Sequence[TaskToAcknowledge],
        chosen: Sequence[int],
        refused: Mapping[int, PressureError],
        processed: Processed,
    ) -> None:
        """Change the records of tasks that were acknowledged, as the broker did."""
        for task in [done[place] for place in chosen if place not in refused]:
            task.become_record(task.record.into(*processed))

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

    def _wait(
        self,
        reply: NoTask | Lost | Closed | Missing,
        request: TakeTasks,
        here: Taker,
        end: float | None,
        timeout: float | None,
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
                    try:
                        yield Wait(reply, left)
                    except WaitEnded:  # the last call takes only tasks that are there now
                        return request._replace(waits=False)
                return request
            case Outcome.LOST:
                raise AssertionError("it acknowledges nothing")
            case Outcome.CLOSED:
                raise self._shut_down()
            case Outcome.MISSING:
                raise self._missing()
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
    ) -> Operation[tuple[list[T], PressureError | None]]:
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
                burying = BuryTask(task.id, incarnation(), call, report=of_error(error))
                reply: SettledReply = yield burying
                if reply is Outcome.MISSING:
                    raise self._missing() from error
                here.lose([(task.id, call)])  # buried, or no longer ours
        if events.listeners:
            self._tell_taken(tasks, usable, since)
        return tasks, problem
