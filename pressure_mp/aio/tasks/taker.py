"""What a worker in asyncio does with a queue of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from ...effects import Operation
from ...exceptions import PressureError, RejectedItemWarning
from ...handles.base_task import Backoff, Data, check_on_error
from ...in_flight import Claim
from ...numeric import integer
from ...operations.task_queue import DecodedTask
from ...operations.task_settling import UNCHANGED
from ...sync.tasks.taker import check_done, hand_out, note_staged
from .handle import TaskHandle
from .task import Task


class TaskTaker(TaskHandle[Data]):
    """The part of :class:`pressure_mp.aio.TaskQueue` that is for workers."""

    async def take(
        self,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
        ack: Task[Data] | None = None,
    ) -> Task[Data]:
        """Take the next task; as :meth:`pressure_mp.TaskQueue.take`.

        A call that is cancelled takes nothing: a task that it had got is ready for others at once,
        or when this process next renews its lease. Whether the task ``ack`` was acknowledged is not
        known then, unless its ``state`` says so.
        """
        limit = self._at.seconds(timeout)
        if ack is not None:
            check_done(ack)
        return (await self._take(1, limit, ttr, tube, on_error, backoff, ack))[0]

    async def take_many(
        self,
        max_tasks: int,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> list[Task[Data]]:
        """Take the next tasks, 1 to ``max_tasks``; as :meth:`pressure_mp.TaskQueue.take_many`, and
        cancelled as :meth:`take`."""
        max_tasks = integer("max_tasks", max_tasks, 1)
        limit = self._at.seconds(timeout)
        return await self._take(max_tasks, limit, ttr, tube, on_error, backoff)

    async def _take(
        self,
        number: int,
        timeout: float | None,
        ttr: float | None,
        tube: str | None,
        on_error: str,
        backoff: Backoff | None,
        ack: Task[Data] | None = None,
    ) -> list[Task[Data]]:
        self._at.check_open()
        check_on_error(on_error, backoff)
        queue = await self._opened()
        claim = Claim()
        taking = queue.taking(self._task, claim, number, timeout, ttr, tube, ack)
        run = self._run if ack is None else self._acknowledging
        try:
            tasks, problem = await run(taking, queue.while_open)
            hand_out(tasks, problem, on_error, backoff)
            return tasks
        except BaseException as error:
            # Cancelled; or a warning is an error in this program.
            if isinstance(error, RejectedItemWarning) or not isinstance(error, PressureError):
                await self._give_up(queue.here.lease, claim, error)
            raise

    async def ack(
        self,
        task: Task[Data] | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
        result: Any = UNCHANGED,
        connection: object | None = None,
    ) -> Task[Data]:
        """Acknowledge a task that is processed; as :meth:`pressure_mp.TaskQueue.ack`."""
        queue = await self._opened()
        acking = queue.acking(task, update, delay, tube, result, connection is not None)
        if connection is None:
            return self._task(*await self._acknowledging(acking))
        found = self._task(*await self._run_in(connection, acking))
        note_staged([task, found])
        return found

    async def ack_many(
        self, tasks: Iterable[Task[Data] | int | str], *, connection: object | None = None
    ) -> None:
        """Acknowledge tasks; as :meth:`pressure_mp.TaskQueue.ack_many`."""
        queue, given = await self._opened(), list(tasks)
        if connection is None:
            await self._acknowledging(queue.acking_many(given))
        else:
            await self._run_in(connection, queue.acking_many_at_commit(given))
            note_staged(given)

    async def release(
        self,
        task: Task[Data] | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        error: str | BaseException | None = None,
    ) -> Task[Data]:
        """Give the task back; as :meth:`pressure_mp.TaskQueue.release`."""
        queue = await self._opened()
        releasing = queue.releasing(task, update, delay, ttl, priority, tube, error)
        return await self._settle(releasing)

    async def bury(
        self,
        task: Task[Data] | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        ttl: float | None = None,
        tube: str | None = None,
        error: str | BaseException | None = None,
    ) -> Task[Data]:
        """Set the task aside; as :meth:`pressure_mp.TaskQueue.bury`."""
        queue = await self._opened()
        return await self._settle(queue.burying(task, update, ttl, tube, error))

    async def touch(
        self,
        task: Task[Data] | int | str,
        increment: float | None = None,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
    ) -> Task[Data]:
        """Extend the time for the task; as :meth:`pressure_mp.TaskQueue.touch`."""
        queue = await self._opened()
        return await self._settle(queue.touching(task, increment, update))

    async def _settle(self, settling: Operation[DecodedTask]) -> Task[Data]:
        return self._task(*await self._run(settling))
