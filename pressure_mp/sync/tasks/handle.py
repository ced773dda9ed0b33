"""The common base of all handles of threads to a queue of tasks."""

from __future__ import annotations

from collections.abc import Callable

from ... import interrupts
from ...effects import AnyOperation, T
from ...engines.contract.levels import Level
from ...exceptions import PressureError
from ...handles.base_task import Data
from ...handles.task_verbs import AnyTask, TaskVerbs
from ...handles.tasks import TaskAttachment
from ...in_flight import Claim
from ...operations.task_taking import Delivery
from ...operations.tasks import TaskOperations
from ..handles import Handle
from .task import Task


class TaskHandle(Handle, TaskVerbs[Data, AnyTask]):
    """A handle to a queue of tasks."""

    _make_operations = TaskOperations
    _levels = (Level.TASKS,)
    _task_class = Task

    _at: TaskAttachment

    def _claim(
        self,
        take: Callable[[Claim], AnyOperation[Delivery[AnyTask]]],
        hand_out: Callable[[Delivery[AnyTask]], T],
        acknowledges: bool,
    ) -> T:
        queue, claim = self._at, Claim()
        here = queue.here
        try:
            taking = take(claim)
            session = queue.flushed_session() if acknowledges else queue.settled_session()
            return hand_out(queue.run_on(session, taking, queue.while_open))
        except PressureError:
            raise
        except BaseException:
            interrupts.abandoned += [(here.lease, claim)]
            interrupts.settle()
            raise
