"""The operations that settle a task that was taken, or change a task's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .. import events
from ..effects import Operation
from ..encoding.large import Large
from ..encoding.reports import of_error, with_progress
from ..encoding.task_values import decode_id
from ..engines.contract.replies import Outcome
from ..engines.contract.task_administration import ChangeTask
from ..engines.contract.task_records import Edit, HeldTask, StoredTask, TaskRecord
from ..engines.contract.task_results import NO_RESULT, Result
from ..engines.contract.tasks import (
    AcknowledgedTasks,
    AckTask,
    AckTasks,
    AckTasksReply,
    BuryTask,
    GetTask,
    GetTaskReply,
    OtherOwner,
    OtherState,
    Processed,
    Refusal,
    ReleaseTask,
    SettledReply,
    TouchTask,
)
from ..events import Message
from ..exceptions import EncodingError, PressureError
from ..exhaustive import assert_never
from ..identity.processes import incarnation
from ..states import TAKEN
from .batches import next_batch
from .settling import Settling
from .task_queue import DecodedTask
from .task_result_storage import TaskResultStorage

#: The ``update`` that leaves the data as it is.
UNCHANGED: Any = type("_Unchanged", (), {"__repr__": lambda self: "UNCHANGED"})()


#: The operations of a taker after which a task is no longer taken.
_SETTLES = ("ack", "release", "bury")


class Subject(NamedTuple):
    """The task of an operation: its id, and the number of the take that has it. ``is_known``: the
    caller has its ``data``, so the broker need not send it. ``wants_result``: its result may have
    been asked for. ``report``: what the caller knows as the report on it."""

    id: bytes
    call: int = 0
    is_known: bool = False
    data: Any = None
    wants_result: bool = True
    report: str = ""


class HeldTasks(Protocol):
    """The tasks that this process has taken."""

    def keep(self, tasks: list[bytes], call: int, longest: int) -> None:
        """Note that this process has these tasks by the take of that number, for so many
        milliseconds, 0 for no end."""

    def lose(self, tasks: Sequence[HeldTask]) -> None:
        """Note that this process has these tasks no more."""

    def lose_later(self, tasks: Sequence[HeldTask]) -> None:
        """Note that this process loses these tasks when a transaction commits; it is not told
        when."""


#: Makes the request: of a change of the data, of whether the reply is to have the data, and of a
#: result.
Making = Callable[
    ["Edit | None", bool, Result], "AckTask | ReleaseTask | BuryTask | TouchTask | ChangeTask"
]


class TaskSettling(TaskResultStorage):
    """The part of :class:`~.tasks.TaskOperations` that settles a task: says what becomes of it.

    ``update`` is the new data, or a callable that gets the data and returns the new data. It is
    called again when another process changed the data of a task that the caller does not know. Each
    operation returns the task as it is then.
    """

    def ack(
        self,
        task: Subject,
        here: HeldTasks,
        update: Any,
        delay: int | None,
        tube: str | None,
        result: Any = None,
    ) -> Operation[DecodedTask]:
        """Acknowledge a task with its ``result``. Raises NotTaken, NotOwner, TaskNotFound, as the
        next three do; and EncodingError, if the result was asked for."""
        said = self._say_value(task, result)
        return self._by_taker("ack", task, here, update, _acking(task, delay, tube), said)

    def ack_at_commit(
        self,
        task: Subject,
        here: HeldTasks,
        update: Any,
        delay: int | None,
        tube: str | None,
        result: Any = None,
    ) -> Operation[DecodedTask]:
        """Acknowledge a task when a transaction of the caller's commits. Until then the task is
        taken, and is returned as it is."""
        said = self._say_value(task, result)
        settled, _ = yield from self._edit("ack", task, update, _acking(task, delay, tube), said)
        here.lose_later([(task.id, task.call)])
        return self._tell(task, settled, None)

    def forwarding(
        self, task: Subject, here: HeldTasks, result: Any, become: Callable[[TaskRecord], None]
    ) -> Settling:
        """Acknowledge a task with its ``result`` by a put on another queue; ``become`` is given its
        record then."""
        said, since = self._say_value(task, result), events.now()
        stored: list[Result] = []

        def request() -> Operation[AckTask]:
            if not stored:
                stored.append((yield from self._store(said)))
            return AckTask(task.id, incarnation(), task.call, result=stored[0])

        def refusal(why: Any) -> PressureError | None:
            if why is Outcome.LOST:
                stored.clear()
                return None
            return self._not_forwarded(why, task.id)

        def done(settled: StoredTask | None) -> None:
            assert settled is not None
            here.lose([(task.id, task.call)])
            become(settled.record)
            if events.listeners:
                events.settled(self.destination, "ack", [Message({}, decode_id(task.id))], since)

        return Settling(request, refusal, done)

    def _not_forwarded(self, why: Any, id: bytes) -> PressureError:
        """Return the error for the refusal to settle a task by a put."""
        return self._missing() if why is Outcome.MISSING else self._refusal(why, id, "forward")

    def release(
        self,
        task: Subject,
        here: HeldTasks,
        update: Any = UNCHANGED,
        delay: int = 0,
        ttl: int | None = None,
        priority: float | None = None,
        tube: str | None = None,
        error: str | BaseException | None = None,
        unbegun: bool = False,
    ) -> Operation[DecodedTask]:
        """Give a task back. If it is ``unbegun``, the take counts as no delivery."""
        text = of_error(error or "")

        def make(edit: Edit | None, whole: bool, told: Result) -> ReleaseTask:
            fence = task.id, incarnation(), task.call
            return ReleaseTask(*fence, delay, ttl, priority, tube, text, edit, whole, told, unbegun)

        return self._by_taker("release", task, here, update, make, self._tell_error(task, error))

    def bury(
        self,
        task: Subject,
        here: HeldTasks,
        update: Any,
        ttl: int,
        tube: str | None,
        error: str | BaseException | None,
    ) -> Operation[DecodedTask]:
        """Set a task aside."""
        text = of_error(error or "")

        def make(edit: Edit | None, whole: bool, told: Result) -> BuryTask:
            return BuryTask(task.id, incarnation(), task.call, ttl, tube, text, edit, whole, told)

        return self._by_taker("bury", task, here, update, make, self._tell_error(task, error))

    def _say_value(self, task: Subject, result: Any) -> bytes | Large:
        """Encode a result, if it was asked for."""
        return self._results.encode_value(task.id, result) if task.wants_result else b""

    def _tell_error(self, task: Subject, error: str | BaseException | None) -> bytes:
        """Encode an error, if the result of the task was asked for."""
        if task.wants_result and isinstance(error, BaseException):
            return self._results.encode_error(task.id, error)
        return b""

    def touch(
        self, task: Subject, here: HeldTasks, update: Any, increment: int | None
    ) -> Operation[DecodedTask]:
        """Keep a task taken for longer, or ready."""

        def make(edit: Edit | None, whole: bool, told: Result) -> TouchTask:
            return TouchTask(task.id, incarnation(), task.call, increment, edit, whole)

        return self._by_taker("touch", task, here, update, make)

    def progress(self, task: Subject, here: HeldTasks, value: Any) -> Operation[DecodedTask]:
        """Store how far the work on a task is. Raises EncodingError, ItemTooLargeError."""
        owner, said = incarnation(), self._results.encode_progress(task.id, value)
        report = with_progress(task.report, task.call, owner, said)

        def make(edit: Edit | None, whole: bool, told: Result) -> TouchTask:
            return TouchTask(task.id, owner, task.call, 0, edit, whole, report)

        return self._by_taker("progress", task, here, UNCHANGED, make)

    def _by_taker(
        self,
        op: str,
        task: Subject,
        here: HeldTasks,
        update: Any,
        make: Making,
        said: bytes | Large = b"",
    ) -> Operation[DecodedTask]:
        since = events.now()
        settled, edit = yield from self._edit(op, task, update, make, said)
        if events.listeners and op in _SETTLES:
            events.settled(self.destination, op, [Message({}, decode_id(task.id))], since)
        record = settled.record
        if record.state != TAKEN:
            here.lose([(task.id, task.call)])
        elif record.due:
            here.keep([task.id], task.call, max(record.due - record.since, 1))
        return self._tell(task, settled, edit)

    def _edit(
        self,
        op: str,
        task: Subject,
        update: Any,
        make: Making,
        said: bytes | Large = b"",
    ) -> Operation[tuple[StoredTask, Edit | None]]:
        """Make a request that may change the data, until no other process changes the data
        meanwhile."""
        while True:
            edit = None
            if update is not UNCHANGED:
                edit = yield from self._make_edit(op, task, update)
            told = (yield from self._store(said)) if said else NO_RESULT
            reply: SettledReply = yield make(edit, not task.is_known, told)
            match reply:
                case StoredTask():
                    return reply, edit
                case Outcome.CHANGED | Outcome.LOST:
                    continue
                case Outcome.ABSENT | OtherState() | OtherOwner():
                    raise self._refusal(reply, task.id, op)
                case Outcome.MISSING:
                    raise self._missing()
                case _:
                    assert_never(reply)

    def _make_edit(self, op: str, task: Subject, update: Any) -> Operation[Edit]:
        if not callable(update):
            return Edit(self.codec.encode_whole(update))
        if task.is_known:
            return Edit(self.codec.encode_whole(update(task.data)))
        found = yield from self._get(task.id)
        return Edit(self.codec.encode_whole(update(self.codec.decode(found.data))), found.data)

    def _get(self, id: bytes) -> Operation[StoredTask]:
        reply: GetTaskReply = yield GetTask(id)
        match reply:
            case StoredTask():
                return reply
            case Outcome.ABSENT:
                raise self._refusal(reply, id, "peek")
            case Outcome.MISSING:
                raise self._missing()
            case _:
                assert_never(reply)

    def _tell(self, task: Subject, settled: StoredTask, edit: Edit | None) -> DecodedTask:
        """Return the task as it is now, decoded."""
        if not task.is_known:
            return self._decode(settled)
        data = task.data if edit is None else self.codec.decode(edit.data)
        return DecodedTask(task.id, settled.record, data)

    def ack_many(
        self,
        tasks: Sequence[HeldTask],
        here: HeldTasks,
        results: Mapping[int, Any],
        become: Callable[[int, Processed], None],
    ) -> Operation[dict[int, PressureError]]:
        """Acknowledge tasks, in batches; ``results`` has the results of some, by their place in
        ``tasks``. ``become`` is told each acknowledged task's place, and what it is then. Returns
        the errors of the others, by their place."""
        said, problems = self._say_values(tasks, results)
        places = [place for place in range(len(tasks)) if place not in problems]
        for chosen in batches(places, said):
            more, processed = yield from self._ack_chosen(tasks, chosen, said, here)
            problems |= more
            for place in chosen:
                if place not in more:
                    become(place, processed)
        return problems

    def _ack_chosen(
        self,
        tasks: Sequence[HeldTask],
        chosen: Sequence[int],
        said: Mapping[int, bytes | Large],
        here: HeldTasks,
    ) -> Operation[tuple[dict[int, PressureError], Processed]]:
        """Acknowledge some of the tasks in one request. Returns the error of each task that
        cannot be acknowledged, and what the others are then."""
        since = events.now()
        batch = [tasks[place] for place in chosen]
        reply = yield from self._ack_batch(batch, [said.get(place, b"") for place in chosen])
        problems = self._note_acknowledged(tasks, chosen, reply.refused, here, since)
        return problems, reply.processed

    def _note_acknowledged(
        self,
        tasks: Sequence[HeldTask],
        chosen: Sequence[int],
        refused: Mapping[int, Refusal],
        here: HeldTasks,
        since: int,
    ) -> dict[int, PressureError]:
        """Note which of the chosen tasks this process has no more; return the errors of the
        others."""
        problems: dict[int, PressureError] = {}
        for index, why in refused.items():
            problems[chosen[index]] = self._refusal(why, tasks[chosen[index]][0], "ack")
        done = [tasks[place] for place in chosen if place not in problems]
        here.lose(done)
        if events.listeners and done:
            told = [Message({}, decode_id(id)) for id, _ in done]
            events.settled(self.destination, "ack", told, since)
        return problems

    def _say_values(
        self, tasks: Sequence[HeldTask], results: Mapping[int, Any]
    ) -> tuple[dict[int, bytes | Large], dict[int, PressureError]]:
        """Encode results by the places of the tasks; return with them the errors of the others."""
        said: dict[int, bytes | Large] = {}
        problems: dict[int, PressureError] = {}
        for place, result in results.items():
            try:
                said[place] = self._results.encode_value(tasks[place][0], result)
            except EncodingError as error:
                problems[place] = error
        return said, problems

    def _ack_batch(
        self, tasks: Sequence[HeldTask], said: Sequence[bytes | Large]
    ) -> Operation[AcknowledgedTasks]:
        """Acknowledge tasks with their encoded results."""
        while True:
            told = []
            for place, one in enumerate(said):
                if one:
                    told.append((place, (yield from self._store(one))))
            reply: AckTasksReply = yield AckTasks(incarnation(), tasks, told)
            if reply is Outcome.MISSING:
                raise self._missing()
            if reply is not Outcome.LOST:  # else all is stored again
                return reply

    def ack_many_at_commit(
        self, tasks: Sequence[HeldTask], here: HeldTasks, results: Mapping[int, Any]
    ) -> Operation[None]:
        """Acknowledge tasks when a transaction of the caller's commits. Raises the error of the
        first that cannot be acknowledged."""
        said, problems = self._say_values(tasks, results)
        for error in problems.values():
            raise error
        for chosen in batches(range(len(tasks)), said):
            batch = [tasks[place] for place in chosen]
            reply = yield from self._ack_batch(batch, [said.get(place, b"") for place in chosen])
            for place in sorted(reply.refused):
                raise self._refusal(reply.refused[place], batch[place][0], "ack")
            here.lose_later(batch)


def batches(places: Sequence[int], said: Mapping[int, bytes | Large]) -> list[Sequence[int]]:
    """Split the places of tasks so that one request can have the tasks with their results."""

    def size(place: int) -> int:
        one = said.get(place, b"")
        return len(one.manifest if isinstance(one, Large) else one)

    found, at = list[Sequence[int]](), 0
    while at < len(places):
        found.append(next_batch(places, at, size))
        at += len(found[-1])
    return found


def _acking(task: Subject, delay: int | None, tube: str | None) -> Making:
    def make(edit: Edit | None, whole: bool, told: Result) -> AckTask:
        return AckTask(task.id, incarnation(), task.call, delay, tube, edit, whole, told)

    return make
