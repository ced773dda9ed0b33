"""What an administrator in asyncio does with a queue of tasks."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...effects import Operation
from ...encoding.task_values import encode_id
from ...handles.base_task import BaseTask, Data, TaskOrId
from ...identity.processes import incarnation
from ...operations.task_queue import DecodedTask
from ...operations.task_settling import UNCHANGED
from ...operations.task_stats import TaskStats
from ...states import TaskState
from .handle import TaskHandle
from .task import Task

if TYPE_CHECKING:
    from ...operations.task_diagnosis import TaskDiagnosis


class TaskAdministration(TaskHandle[Data]):
    """The part of :class:`pressure_mp.aio.TaskQueue` that is for administrators. Nothing here waits
    for others."""

    async def stats(self) -> TaskStats:
        """Count the tasks in each state; as :meth:`pressure_mp.TaskQueue.stats`."""
        return await self._run(self._at.counting())

    async def why_blocked(self) -> TaskDiagnosis:
        """Explain what a take would wait for; as :meth:`pressure_mp.TaskQueue.why_blocked`."""
        return await self._run(self._at.operations.why_blocked(incarnation()))

    async def kick(
        self,
        task: Task[Data] | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
    ) -> Task[Data]:
        """Make a buried task ready; as :meth:`pressure_mp.TaskQueue.kick`."""
        return await self._change(task, self._at.kicking(task, delay, ttl, update))

    async def kick_many(
        self, limit: int | None = None, *, delay: float | None = None, ttl: float | None = None
    ) -> int:
        """Make the oldest buried tasks ready; as :meth:`pressure_mp.TaskQueue.kick_many`."""
        return await self._run(self._at.kicking_many(limit, delay, ttl))

    async def kill(self, task: Task[Data] | int | str) -> Task[Data]:
        """Remove a task, in whatever state it is."""
        return await self._change(task, self._at.killing(task))

    async def peek(self, id: int | str) -> Task[Data]:
        """Return a task without changing it; as :meth:`pressure_mp.TaskQueue.peek`."""
        return self._task(*await self._run(self._at.operations.peek(encode_id(id))))

    async def list(
        self, state: TaskState | str | None = None, tube: str | None = None, limit: int = 100
    ) -> builtins.list[Task[Data]]:
        """Up to ``limit`` tasks; as :meth:`pressure_mp.TaskQueue.list`."""
        found = await self._run(self._at.listing(state, tube, limit))
        return [self._task(*task) for task in found]

    async def truncate(self) -> int:
        """Remove all tasks, whatever state they are in; returns how many."""
        return await self._run(self._at.operations.truncate())

    async def move(self, task: Task[Data] | int | str, tube: str | None) -> Task[Data]:
        """Move a task to another tube, or out of its own with None."""
        return await self._change(task, self._at.moving(task, tube))

    async def switch(
        self, task: Task[Data] | int | str, state: TaskState | str, *, delay: float | None = None
    ) -> Task[Data]:
        """Change the state of a task; as :meth:`pressure_mp.TaskQueue.switch`."""
        queue = await self._opened()
        return await self._change(task, queue.switching(task, state, delay))

    async def snatch(
        self, task: Task[Data] | int | str, *, delay: float | None = None
    ) -> Task[Data]:
        """Take a taken task away from its worker; as :meth:`pressure_mp.TaskQueue.snatch`."""
        return await self._change(task, self._at.beginning_again("snatch", task, delay))

    async def restart(
        self, task: Task[Data] | int | str, *, delay: float | None = None
    ) -> Task[Data]:
        """Make a waiting, done or zombie task ready, or waiting for ``delay`` seconds."""
        return await self._change(task, self._at.beginning_again("restart", task, delay))

    async def _change(self, task: TaskOrId, changing: Operation[DecodedTask]) -> Task[Data]:
        changed = self._task(*await self._run(changing))
        if isinstance(task, BaseTask):
            task.become(changed)
        return changed
