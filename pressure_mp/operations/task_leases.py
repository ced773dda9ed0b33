"""The operations of processes that have taken tasks, and of processes that return the tasks of
others."""

from __future__ import annotations

from collections.abc import Sequence

from ..effects import Operation
from ..encoding.reports import of_error
from ..engines.contract.items import MOST_ITEMS
from ..engines.contract.replies import Outcome
from ..engines.contract.task_records import HeldTask
from ..engines.contract.tasks import (
    ReleaseTask,
    RenewTaker,
    RenewTakerReply,
    RequeueTasks,
    RequeueTasksReply,
    SettledReply,
    Takers,
)
from ..identity.processes import incarnation
from .queues import QueueOperations
from .task_queue import TASKS


class TaskLeaseOperations(QueueOperations):
    """Times are milliseconds."""

    def __init__(self, name: str) -> None:
        super().__init__(name, TASKS)

    def renew(
        self,
        owner: str,
        holds: bool,
        workers: Sequence[str] | None = None,
        watched: Sequence[HeldTask] = (),
    ) -> Operation[Takers]:
        """Renew the owner's lease as a taker of tasks, if it ``holds`` any or has ``workers``. The
        broker keeps these texts; with None those that it has. Ask whether the owner still has the
        ``watched`` tasks."""
        reply: RenewTakerReply = yield RenewTaker(owner, holds, workers, watched)
        return self._found(reply)

    def release(self, task: HeldTask, error: str | None) -> Operation[None]:
        """Give back a task of this process, with ``error``, if it still has it. With None, no
        handler began it: the take counts as no delivery."""
        text = of_error(error or "")
        reply: SettledReply = yield ReleaseTask(
            task[0], incarnation(), task[1], report=text, unbegun=error is None
        )
        if reply is Outcome.MISSING:
            self._found(reply)

    def requeue(
        self, owner: str, error: str, seen: int | None = None, call: int | None = None
    ) -> Operation[int]:
        """Give back the tasks that ``owner`` has taken, with ``error``; return how many.

        With ``seen``, only if its lease still ends then. With ``call``, only the tasks that it took
        in that call.
        """
        number, text = 0, of_error(error)
        while True:
            reply: RequeueTasksReply = yield RequeueTasks(owner, text, MOST_ITEMS, seen, call)
            if reply is Outcome.RENEWED:
                return number
            found = self._found(reply)
            number += found
            if found < MOST_ITEMS:
                return number
