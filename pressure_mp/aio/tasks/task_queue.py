"""A queue of tasks for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engines.contract.queues import How
from ...engines.contract.task_records import TaskSettings
from ...exceptions import ArgumentError
from ...handles.base_task import Data
from ...handles.options import SignatureOf, TaskQueueOptions
from ...hidden import hide_in
from .administration import TaskAdministration
from .producer import TaskProducer
from .results import TaskResults
from .workers import TaskWorkers

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class TaskQueue(TaskProducer[Data], TaskResults[Data], TaskWorkers[Data], TaskAdministration[Data]):
    """:class:`pressure_mp.TaskQueue` for asyncio.

    The methods do what those of :class:`pressure_mp.TaskQueue` do; all that ask the broker are
    coroutines. A take that is cancelled takes nothing. If another call is cancelled after it was
    sent to the broker, it is not known whether it was done.
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
        """Create the queue called ``name``. Raises QueueAlreadyExistsError."""
        return await cls._insist(How.CREATE, name, **hide_in(options))

    @classmethod
    async def attach(cls, name: str, **options: Unpack[TaskQueueOptions]) -> Self:
        """Attach to the existing queue called ``name``. Raises QueueDoesNotExistError."""
        return await cls._insist(How.ATTACH, name, **hide_in(options))

    @property
    def settings(self) -> TaskSettings:
        """The options that are stored with the queue; times in milliseconds, 0 for none.

        Raises ArgumentError before the queue is open.
        """
        if self._at.opening is not None:
            raise ArgumentError(
                f"queue {self.name!r} is not open yet: await open() before you read its settings"
            )
        return self._at.settings

    async def shutdown(self) -> None:
        """Shut the queue down for all clients; as :meth:`pressure_mp.TaskQueue.shutdown`."""
        await self._run(self._at.operations.close())

    async def is_shutdown(self) -> bool:
        """Whether the queue was shut down."""
        return await self._run(self._at.operations.closed())

    async def close(self) -> None:
        """Close this handle; as :meth:`pressure_mp.TaskQueue.close`.

        Tasks that were taken can still be acknowledged, released, buried and touched.
        """
        if not self._at.is_closed:
            await self._close_handle()

    async def delete(self) -> None:
        """Remove the queue and all its tasks, for all clients. Raises QueueDoesNotExistError."""
        await self._run(self._at.leave(self._at.operations.delete()))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
