"""A queue of tasks for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ...engines.contract.queues import How
from ...engines.contract.task_records import TaskSettings
from ...handles.base_task import Data
from ...handles.options import (
    SignatureOf,
    TaskPutOptions,
    TaskQueueOptions,
    UniqueTaskOptions,
)
from ...hidden import hide_in
from ...sync.tasks import task_queue as sync
from ...sync.tasks.administration import TaskAdministration
from ...sync.tasks.inbox import BaseInbox
from ...sync.tasks.periodic import PeriodicTasks
from ...sync.tasks.producer import TaskProducer
from ...sync.tasks.results import TaskResults
from ...sync.tasks.taker import TaskTaker
from ..awaited import as_in, awaited, awaited_open, signed_as
from .results import Results
from .task import Task
from .workers import TaskWorkers

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_put: Any = awaited(TaskProducer.put)


@as_in(sync.TaskQueue)
class TaskQueue(Results[Data], TaskWorkers[Data]):
    """:class:`pressure_mp.TaskQueue` for asyncio.

    Each method does what the same method of :class:`pressure_mp.TaskQueue` does. All methods that
    ask the broker are coroutines: where a method blocks there, the asyncio task waits here.

    A take that is cancelled takes nothing: a task that it had got is ready for others at once, or
    when this process next renews its lease. Whether the task ``ack`` was acknowledged is not known
    then, unless its ``state`` says so. A put that is cancelled on its way to the broker is done,
    and returns: the asyncio task is cancelled at its next ``await``; with ``wait``, while it waits.
    If the broker does not answer for a second then, it is not known whether the task was put,
    unless it has an ``id``: to put it again then raises TaskExists. If another call is cancelled
    after it was sent to the broker, it is not known whether it was done.
    """

    __signature__ = SignatureOf(TaskQueueOptions)

    def __init__(self, name: str | None = None, **options: Unpack[TaskQueueOptions]) -> None:
        """Make a handle, as :class:`pressure_mp.TaskQueue`; the first call, or :meth:`open`, opens
        it.

        Does not connect to the broker. Raises AddressError, ArgumentError, ArgumentTypeError.
        """
        self._prepare(How.OPEN, name, **hide_in(options))

    @classmethod
    async def create(cls, name: str, **options: Unpack[TaskQueueOptions]) -> Self:
        return await cls._insist(How.CREATE, name, **hide_in(options))

    @classmethod
    async def attach(cls, name: str, **options: Unpack[TaskQueueOptions]) -> Self:
        return await cls._insist(How.ATTACH, name, **hide_in(options))

    @property
    def settings(self) -> TaskSettings:
        """The options that are stored with the queue; times in milliseconds, 0 for none.

        Raises ArgumentError before the queue is open.
        """
        return self._at.settings

    # Producers

    @overload
    async def put(
        self,
        data: Data,
        *,
        wait: None = None,
        inbox: BaseInbox | None = None,
        connection: object | None = None,
        **options: Unpack[UniqueTaskOptions],
    ) -> int | str: ...

    @overload
    async def put(
        self,
        data: Data,
        *,
        wait: float,
        inbox: BaseInbox | None = None,
        **options: Unpack[TaskPutOptions],
    ) -> tuple[Task[Data], bool]: ...

    @signed_as(TaskProducer.put)
    async def put(self, data: Data, **options: Any) -> Any:
        return await _put(self, data, **options)

    put_many = awaited(TaskProducer[Data, Task[Data]].put_many)
    qsize = awaited(TaskProducer[Data, Task[Data]].qsize)
    full = awaited(TaskProducer[Data, Task[Data]].full)
    wait = awaited_open(TaskProducer[Data, Task[Data]].wait)
    result = awaited_open(TaskResults[Data, Task[Data]].result)
    progress = awaited(TaskResults[Data, Task[Data]].progress)

    # Workers

    take = awaited_open(TaskTaker[Data, Task[Data]].take)
    take_many = awaited_open(TaskTaker[Data, Task[Data]].take_many)
    ack = awaited_open(TaskTaker[Data, Task[Data]].ack)
    ack_many = awaited_open(TaskTaker[Data, Task[Data]].ack_many)
    forward = awaited_open(TaskTaker[Data, Task[Data]].forward)
    release = awaited_open(TaskTaker[Data, Task[Data]].release)
    bury = awaited_open(TaskTaker[Data, Task[Data]].bury)
    touch = awaited_open(TaskTaker[Data, Task[Data]].touch)

    # Administrators

    stats = awaited(TaskAdministration[Data, Task[Data]].stats)
    configure = awaited_open(TaskAdministration[Data, Task[Data]].configure)
    pause = awaited(TaskAdministration[Data, Task[Data]].pause)
    resume = awaited(TaskAdministration[Data, Task[Data]].resume)
    limit = awaited(TaskAdministration[Data, Task[Data]].limit)
    why_blocked = awaited(TaskAdministration[Data, Task[Data]].why_blocked)
    workers = awaited(TaskAdministration[Data, Task[Data]].workers)
    kick = awaited(TaskAdministration[Data, Task[Data]].kick)
    kick_many = awaited(TaskAdministration[Data, Task[Data]].kick_many)
    kill = awaited(TaskAdministration[Data, Task[Data]].kill)
    every = awaited_open(PeriodicTasks[Data, Task[Data]].every)
    schedules = awaited_open(PeriodicTasks[Data, Task[Data]].schedules)
    unschedule = awaited_open(PeriodicTasks[Data, Task[Data]].unschedule)
    cancel = awaited(TaskAdministration[Data, Task[Data]].cancel)
    peek = awaited(TaskAdministration[Data, Task[Data]].peek)
    list = awaited(TaskAdministration[Data, Task[Data]].list)
    truncate = awaited(TaskAdministration[Data, Task[Data]].truncate)
    move = awaited(TaskAdministration[Data, Task[Data]].move)
    switch = awaited_open(TaskAdministration[Data, Task[Data]].switch)
    snatch = awaited(TaskAdministration[Data, Task[Data]].snatch)
    restart = awaited(TaskAdministration[Data, Task[Data]].restart)

    # All

    shutdown = awaited(sync.TaskQueue[Data].shutdown)
    delete = awaited(sync.TaskQueue[Data].delete)

    async def maxsize(self) -> int:
        """The queue's bound, 0 for none."""
        return (await self._run(self._at.operations.recorded())).maxsize

    async def is_shutdown(self) -> bool:
        """Whether the queue was shut down."""
        return await self._run(self._at.operations.closed())

    async def close(self) -> None:
        if not self._at.is_closed:
            await self._close_handle()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
