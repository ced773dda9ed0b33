"""Wait for the results of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...deadlines import deadline, seconds_left
from ...encoding.task_values import decode_id, encode_id
from ...exceptions import InboxLost
from ...handles.base_task import Data
from ...handles.task_verbs import AnyTask
from ...operations.task_results import TaskResult
from .handle import TaskHandle
from .inbox import DEFAULT_LEASE, TaskInbox, late, opening


class TaskResults(TaskHandle[Data, AnyTask]):
    """The part of :class:`pressure_mp.TaskQueue` that returns results."""

    def result(self, id: int | str, timeout: float | None = None) -> Any:
        """The result of a task that was put with ``result_ttl``.

        That is what its handler returned, or what ``ack(result=)`` stated; else None. Every process
        can ask for it, also several times, until ``result_ttl`` seconds after the task's end.

        Blocks until the task has ended, or was buried: without limit, or at most ``timeout``
        seconds. Raises the exception of the task's handler, when the task was buried because of it,
        with the traceback as the ``__cause__``; TaskFailed when the task was buried, killed or
        removed for another reason, or this process cannot load that exception; ResultNotKept, at
        once, when the task was put without ``result_ttl``; TaskNotFound when neither the task nor
        a result of it exists; ResultTimeout, a TimeoutError, when the time is up; DecodingError,
        AuthenticationError, QueueDoesNotExistError, HandleClosedError, BrokerUnavailable.
        """
        self._at.check_open()
        limit = self._at.seconds(timeout)
        return self._run(self._at.operations.result(encode_id(id), limit, self._at.here))

    def progress(self, id: int | str) -> Any:
        """Return the value that the handler which has a task told :meth:`pressure_mp.Task.progress`
        last; None if it told none, or no process has the task.

        Never waits. Raises TaskNotFound, DecodingError, AuthenticationError,
        QueueDoesNotExistError, HandleClosedError, BrokerUnavailable.
        """
        self._at.check_open()
        return self._run(self._at.operations.progress_of(encode_id(id)))

    def results(
        self, ids: Iterable[int | str], timeout: float | None = None
    ) -> Iterator[TaskResult]:
        """Iterate over the results of many tasks, in the order in which the tasks end.

        Each task is yielded once, as a :class:`TaskResult`. If the task failed, does not exist, or
        has no result that is kept, its ``error`` is the exception that its ``get()`` raises; see
        :meth:`result`.

        Each round trip has up to 1,000 tasks, over one connection. Each step blocks until another
        task has ended, or was buried. Raises ResultTimeout when some tasks have not ended
        ``timeout`` seconds after this call; QueueDoesNotExistError, HandleClosedError,
        BrokerUnavailable.
        """
        self._at.check_open()
        limit = self._at.seconds(timeout)
        return self._each(named(ids), deadline(True, limit), limit)

    def _each(
        self, pending: dict[int | str, None], end: float | None, limit: float | None
    ) -> Iterator[TaskResult]:
        if not pending:
            return
        number = len(pending)
        with self.inbox(takes=False) as inbox:
            inbox.watch(pending)
            while pending:
                try:
                    events = inbox.take(seconds_left(end))
                except InboxLost:  # the caller did something else for long
                    inbox.watch(pending)
                    continue
                if not events:
                    raise late(self.name, len(pending), number, limit)
                for event in events:
                    if event.result is not None and event.id in pending:
                        del pending[event.id]
                        yield event.result

    def inbox(self, lease: float = DEFAULT_LEASE, takes: bool = True) -> TaskInbox:
        """Make an inbox: it gets an event when one of its tasks is taken, each time a handler tells
        of its progress, and when one ends.

        It gets the events of the tasks that are put with it (``put(inbox=)``), and of the tasks
        that its ``watch`` is told.

        :param lease: seconds after its last use when the inbox is removed, with the results that
            were kept for it alone.
        :param takes: with False, there are events only for the ends of tasks, which costs the
            broker and the workers less.

        Never waits. Raises QueueDoesNotExistError, HandleClosedError, ArgumentError,
        ArgumentTypeError, BrokerUnavailable.
        """
        self._at.check_open()
        found = TaskInbox(self, lease, takes)
        self._run(opening(found))
        return found


def named(ids: Iterable[int | str]) -> dict[int | str, None]:
    """These ids as events name them, each once. Raises ArgumentError, ArgumentTypeError."""
    return dict.fromkeys(decode_id(encode_id(id)) for id in ids)
