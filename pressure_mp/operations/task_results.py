"""The operations that wait for the results of tasks: of one task, and of many."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..deadlines import deadline, shown
from ..effects import Operation, until
from ..encoding import reports
from ..encoding.results import Failure, Value, progress_payload
from ..encoding.task_values import decode_id
from ..engines.contract.replies import NoNotice, Outcome, Unprocessed
from ..engines.contract.task_records import TaskRecord
from ..engines.contract.task_results import (
    ABSENT,
    PROGRESS,
    TAKEN,
    CloseInbox,
    InboxReply,
    Notice,
    OpenInbox,
    Result,
    TakenNotices,
    TakeNotices,
    TakeNoticesReply,
    WatchTasks,
    WatchTasksReply,
)
from ..engines.contract.tasks import AwaitTask, AwaitTaskReply, FinishedTask
from ..exceptions import PressureError, RemoteTraceback, ResultNotKept, ResultTimeout, TaskFailed
from ..exhaustive import assert_never
from ..states import BURIED, VOID, word
from .batches import batches
from .large import fetch
from .task_queue import TaskQueueOperations
from .waiting import served_after


@dataclass(frozen=True)
class TaskResult:
    """The end of a task.

    ``outcome`` is ``"processed"``, ``"buried"``, ``"killed"`` or ``"dropped"``; ``""`` when it is
    not known. ``error`` is the exception that :meth:`get` raises; without one, ``value`` is the
    task's result.
    """

    id: int | str
    outcome: str
    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        """Return the value. Raises the error of the task's handler, with its traceback as the
        cause; else TaskFailed, ResultNotKept, TaskNotFound, DecodingError or
        AuthenticationError."""
        if self.error is not None:
            raise self.error
        return self.value


class TaskEvent(NamedTuple):
    """An event of a task in an inbox: the task was ``"taken"``; its handler told of its
    ``"progress"``; or it has ended and has a ``result``.

    ``deliveries`` is how often the task was taken so far. ``progress`` is what the handler told;
    the DecodingError or AuthenticationError, if this process cannot decode that.
    """

    id: int | str
    event: str
    deliveries: int
    result: TaskResult | None
    progress: Any = None


class Heard(NamedTuple):
    """The events of an inbox, up to the notice of that number. ``is_lost``: the inbox was gone, and
    was opened again."""

    number: int
    events: list[TaskEvent]
    is_lost: bool = False


class TaskResults(TaskQueueOperations):
    """The part of :class:`~.tasks.TaskOperations` that has to do with results."""

    # One task

    def result(
        self, id: bytes, timeout: float | None, here: AbstractContextManager[None]
    ) -> Operation[Any]:
        """Wait until a task has ended; return its result. ``here`` is as for ``wait``.

        Raises what :meth:`TaskResult.get` does, and ResultTimeout.
        """
        end = deadline(True, timeout)
        request = AwaitTask(id, False, timeout is None or timeout > 0)
        reply: AwaitTaskReply = yield until(request, end)
        if isinstance(reply, Unprocessed) and reply.task.record.result_ttl:
            with here:
                reply = yield from served_after(reply, request, end)
        match reply:
            case FinishedTask():
                report = reply.task.record.report if reply.task else ""
                said = reply.outcome, report, reply.result
                told = yield from self._read(id, decode_id(id), *said)
                return told.get()
            case Outcome.ABSENT:
                raise self._refusal(reply, id, "result")
            case Outcome.MISSING:
                raise self._missing()
            case Unprocessed():
                state = reply.task.record.state
                if not reply.task.record.result_ttl:
                    raise self._error(ResultNotKept, id, state, _NOT_ASKED)
                raise self._late(id, state, timeout)
            case _:
                assert_never(reply)

    def progress_of(self, id: bytes) -> Operation[Any]:
        """Return what the delivery that has a task has told of its progress; None if it has told
        nothing, or no process has the task. Raises TaskNotFound, DecodingError,
        AuthenticationError."""
        reply: AwaitTaskReply = yield AwaitTask(id, False, False)
        match reply:
            case FinishedTask():
                return None
            case Outcome.ABSENT:
                raise self._refusal(reply, id, "progress")
            case Outcome.MISSING:
                raise self._missing()
            case Unprocessed():
                return self.read_progress(id, reply.task.record)
            case _:
                assert_never(reply)

    def read_progress(self, id: bytes, record: TaskRecord) -> Any:
        """Decode the progress in the record of a task, as :meth:`progress_of` does."""
        told = _told(record)
        return None if told is None else self._results.decode_progress(id, told)

    def _late(self, id: bytes, state: str, timeout: float | None) -> ResultTimeout:
        return ResultTimeout(
            f"task {decode_id(id)!r} of queue {self.name!r} is still {word(state)} after "
            f"{shown(timeout)}: ask again, or with more time"
        )

    # Many tasks

    def open_inbox(self, inbox: OpenInbox) -> Operation[None]:
        """Open an inbox. It stays for its lease after each use."""
        reply: InboxReply = yield inbox
        self._found(reply)

    def close_inbox(self, inbox: str) -> Operation[None]:
        reply: InboxReply = yield CloseInbox(inbox)
        self._found(reply)

    def watch(self, inbox: OpenInbox, ids: Sequence[bytes]) -> Operation[bool]:
        """Have an inbox notified of these tasks too, in batches. It is opened again if it is gone;
        returns whether it was."""
        was_gone = False
        for batch in batches(ids):
            reply: WatchTasksReply = yield WatchTasks(inbox.inbox, batch)
            while reply is Outcome.LOST:
                was_gone = True
                yield from self.open_inbox(inbox)
                reply = yield WatchTasks(inbox.inbox, batch)
            self._found(reply)
        return was_gone

    def take_notices(
        self,
        inbox: OpenInbox,
        seen: int,
        limit: int,
        timeout: float | None,
        here: AbstractContextManager[None],
    ) -> Operation[Heard]:
        """Return what an inbox was notified of since the number ``seen``.

        Waits for a notice, without limit or for ``timeout`` seconds; then returns nothing. An inbox
        that is gone is opened again.
        """
        end = deadline(True, timeout)
        request = TakeNotices(inbox.inbox, seen, limit, timeout is None or timeout > 0)
        reply: TakeNoticesReply = yield until(request, end)
        if isinstance(reply, NoNotice):
            with here:
                reply = yield from served_after(reply, request, end)
        match reply:
            case TakenNotices():
                events = yield from self._read_notices(reply.notices)
                return Heard(reply.notices[-1].number, events)
            case NoNotice():
                return Heard(seen, [])
            case Outcome.LOST:
                yield from self.open_inbox(inbox)
                return Heard(0, [], True)
            case Outcome.MISSING:
                raise self._missing()
            case _:
                assert_never(reply)

    def _read_notices(self, notices: Sequence[Notice]) -> Operation[list[TaskEvent]]:
        events = []
        for _, id, event, deliveries, report, kept in notices:
            result, progress, named = None, None, decode_id(id)
            if event == PROGRESS:
                progress = self._read_told(id, report)
            elif event != TAKEN:
                result = yield from self._read(id, named, event, report, kept)
            events.append(TaskEvent(named, event, deliveries, result, progress))
        return events

    def _read_told(self, id: bytes, report: str) -> Any:
        try:
            return self._results.decode_progress(id, reports.last_progress(report))
        except PressureError as problem:  # the other events can be read
            return problem

    # Kept results

    def _read(
        self, id: bytes, named: int | str, outcome: str, report: str, kept: Result | None
    ) -> Operation[TaskResult]:
        """Make the result of a task from what a broker keeps of it."""
        if outcome == ABSENT:
            return TaskResult(named, "", error=self._refusal(Outcome.ABSENT, id, "result"))
        try:
            if kept is not None and kept.data:
                said = yield from self._decode_result(id, kept)
                if isinstance(said, Value):
                    return TaskResult(named, outcome, said.value)
                failed = said.error or self._error(TaskFailed, id, _state(outcome), said.text)
                return TaskResult(named, outcome, error=failed)
        except PressureError as problem:
            return TaskResult(named, outcome, error=problem)
        if outcome != "processed":
            error, lines, _ = reports.read(report)
            why = f"it was {outcome}" + (f": {error}" if error else "")
            failure = self._error(TaskFailed, id, _state(outcome), why)
            if lines:
                failure.__cause__ = RemoteTraceback(lines)
            return TaskResult(named, outcome, error=failure)
        if kept is None:
            why = f"it was processed; {_NOT_ASKED}, or the time for that is over"
            return TaskResult(named, outcome, error=self._error(ResultNotKept, id, VOID, why))
        return TaskResult(named, outcome)

    def _decode_result(self, id: bytes, kept: Result) -> Operation[Value | Failure]:
        manifest = self._results.read_manifest(id, kept.data)
        if manifest is None:
            return self._results.decode(id, kept.data)
        content = yield from fetch(manifest)
        if content is None:
            why = "the time for which its result was kept ended while it was read"
            raise self._error(ResultNotKept, id, VOID, why)
        return self._results.decode(id, kept.data, manifest, content)


#: Why the result of a task is not known.
_NOT_ASKED = "its result is not kept, since it was put without result_ttl"


def _state(outcome: str) -> str:
    return BURIED if outcome == "buried" else VOID


def shown_progress(record: TaskRecord) -> bytes | None:
    """Return the serializer's bytes of the progress that the current delivery has told, unchecked,
    to show them; None if it has told nothing."""
    told = _told(record)
    return None if told is None else progress_payload(told)


def _told(record: TaskRecord) -> bytes | None:
    return reports.progress_of(record.report, record.call, record.owner)
