"""The base of the parts of a queue of tasks in asyncio."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...effects import AnyOperation, T
from ...exceptions import PressureError, RejectedItemWarning
from ...handles.base_task import Data
from ...handles.task_verbs import TaskVerbs
from ...handles.tasks import TaskAttachment
from ...in_flight import Claim
from ...operations.task_taking import Delivery
from ...sync.tasks import task_queue as sync
from ..handles import Handle
from .task import Task

if TYPE_CHECKING:
    from typing_extensions import Self


class TaskHandle(Handle, TaskVerbs[Data, Task[Data]]):
    """A handle to a queue of tasks."""

    _kind = sync.TaskQueue
    _task_class = Task

    _at: TaskAttachment

    @classmethod
    def of(cls, handle: sync.TaskQueue[Data]) -> Self:
        """Make a handle for asyncio to the queue of a handle for threads; see :meth:`Handle.of`."""
        return super().of(handle)

    async def _claim(
        self,
        take: Callable[[Claim], AnyOperation[Delivery[Task[Data]]]],
        hand_out: Callable[[Delivery[Task[Data]]], T],
        acknowledges: bool,
    ) -> T:
        queue, claim = self._at, Claim()
        run = self._acknowledge if acknowledges else self._run
        try:
            return hand_out(await run(take(claim), queue.while_open))
        except BaseException as error:
            # Cancelled; or a warning is an error in this program.
            if isinstance(error, RejectedItemWarning) or not isinstance(error, PressureError):
                await self._give_up(queue.here.lease, claim, error)
            raise
