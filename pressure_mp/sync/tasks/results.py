"""What came of tasks: of one, of many, and in an inbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...deadlines import deadline, seconds_left
from ...effects import Operation
from ...encoding.task_values import decode_id, encode_id
from ...exceptions import InboxLost
from ...operations.task_results import TaskResult
from .base_task import Data
from .handle import TaskHandle
from .inbox import DEFAULT_LEASE, TaskInbox, late


class TaskResults(TaskHandle[Data]):
    """The part of :class:`pressure_mp.TaskQueue` that is for those who want results."""

    def result(self, id: int | str, timeout: float | None = None) -> Any:
        """What a task came to that was put with ``result_ttl``: what its handler returned, or
        ``ack(result=)`` said; None, when nothing was.

        It can be asked for by anybody, and again, for ``result_ttl`` from its end on.

        Blocks until the task has ended, or was buried: without limit, or at most ``timeout``
        seconds. Raises the error of the task's handler, when it was buried for that, with its
        traceback as the ``__cause__``; TaskFailed when it was buried, killed or dropped, or when
        that error is not known here; ResultNotKept when it was put without ``result_ttl``, at once;
        TaskNotFound when there is no such task, nor a result of it; ResultTimeout, a TimeoutError,
        when the time is up; DecodingError, AuthenticationError, QueueDoesNotExistError,
        HandleClosedError, BrokerUnavailable.
        """
        self._check_open()
        return self._run(self._asking(id, timeout))

    def _asking(self, id: int | str, timeout: float | None) -> Operation[Any]:
        return self._operations.result(encode_id(id), self._seconds(timeout), self._here)

    def results(
        self, ids: Iterable[int | str], timeout: float | None = None
    ) -> Iterator[TaskResult]:
        """What came of many tasks, each once, the first that has ended first.

        Of a task that failed, of which no result is kept, or that is not there, the
        :class:`TaskResult` has the ``error`` that its ``get()`` raises; see :meth:`result`.

        Up to 1,000 are in each round trip, over one connection. Blocks, at each step, until another
        one has ended, or was buried. Raises ResultTimeout ``timeout`` seconds after this call, when
        some have not ended; QueueDoesNotExistError, HandleClosedError, BrokerUnavailable.
        """
        self._check_open()
        limit = self._seconds(timeout)
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
                except InboxLost:  # who called did something else for long
                    inbox.watch(pending)
                    continue
                if not events:
                    raise late(self._name, len(pending), number, limit)
                for event in events:
                    if event.result is not None and event.id in pending:
                        del pending[event.id]
                        yield event.result

    def inbox(self, lease: float = DEFAULT_LEASE, takes: bool = True) -> TaskInbox:
        """An inbox that hears of the tasks that are put with it (``put(inbox=)``), and of those
        that it is told to watch: when they are taken, and when they end.

        :param lease: seconds after its last use, when it is gone, and with it the results that were
            kept for it alone.
        :param takes: without it, it hears only that tasks end, which costs the broker and the
            workers less.

        Never waits. Raises QueueDoesNotExistError, HandleClosedError, ArgumentError,
        ArgumentTypeError, BrokerUnavailable.
        """
        self._check_open()
        found = TaskInbox(self, lease, takes)
        self._run(found._opening())
        return found


def named(ids: Iterable[int | str]) -> dict[int | str, None]:
    """These ids as events name them, each once. Raises ArgumentError, ArgumentTypeError."""
    return dict.fromkeys(decode_id(encode_id(id)) for id in ids)
