"""What a producer in asyncio does with a queue of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import overload

from ...encoding.task_values import check_tube
from ...handles.base_task import Data
from ...handles.transactions import check_waits_for_nothing
from ...sync.tasks.producer import put_options
from .handle import TaskHandle
from .inbox import TaskInbox
from .task import Task


class TaskProducer(TaskHandle[Data]):
    """The part of :class:`pressure_mp.aio.TaskQueue` that is for producers."""

    @overload
    async def put(
        self,
        data: Data,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        key: str | None = None,
        id: int | str | None = None,
        result_ttl: float | None = None,
        inbox: TaskInbox | None = None,
        wait: None = None,
        connection: object | None = None,
    ) -> int | str: ...

    @overload
    async def put(
        self,
        data: Data,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        key: str | None = None,
        id: int | str | None = None,
        result_ttl: float | None = None,
        inbox: TaskInbox | None = None,
        wait: float,
    ) -> tuple[Task[Data], bool]: ...

    async def put(
        self,
        data: Data,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        key: str | None = None,
        id: int | str | None = None,
        result_ttl: float | None = None,
        inbox: TaskInbox | None = None,
        wait: float | None = None,
        connection: object | None = None,
    ) -> int | str | tuple[Task[Data], bool]:
        """Put a task; returns its id. As :meth:`pressure_mp.TaskQueue.put`.

        A put that is cancelled on its way to the broker is done, and returns: the asyncio
        task is cancelled at its next ``await``; with ``wait``, while it waits. If the broker does
        not answer for a second then, it is not known whether the task was put, unless it has an
        ``id``: to put it again then raises TaskExists.
        """
        self._at.check_open()
        options = put_options(delay, ttl, priority, tube, result_ttl, inbox, key)
        queue = await self._opened()
        if connection is not None:
            check_waits_for_nothing("wait", wait)
            return await self._run_in(connection, queue.operations.put(data, id, options))
        if wait is None:
            return await self._run(queue.operations.put(data, id, options))
        task, processed = await self._run(queue.putting_and_waiting(data, id, options, wait))
        return self._task(*task), processed

    async def put_many(
        self,
        data: Iterable[Data],
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        key: str | None = None,
        ids: Iterable[int | str] | None = None,
        result_ttl: float | None = None,
        inbox: TaskInbox | None = None,
        connection: object | None = None,
    ) -> list[int | str]:
        """Put a task for each of ``data``, in order; as :meth:`pressure_mp.TaskQueue.put_many`."""
        self._at.check_open()
        queue = await self._opened()
        check = partial(put_options, delay, ttl, priority, tube, result_ttl, inbox, key)
        putting = queue.putting_many(data, ids, check)
        if connection is None:
            return await self._run(putting)
        return await self._run_in(connection, putting)

    async def qsize(self, tube: str | None = None) -> int:
        """How many tasks are ready to be taken, at one moment; in one tube, if one is given."""
        return await self._run(self._at.operations.length(check_tube(tube)))

    async def wait(self, id: int | str, timeout: float | None = None) -> tuple[Task[Data], bool]:
        """Wait until a task is processed; as :meth:`pressure_mp.TaskQueue.wait`."""
        self._at.check_open()
        queue = await self._opened()
        task, processed = await self._run(queue.waiting(id, timeout))
        return self._task(*task), processed
