"""Queues of asyncio whose items stay with the broker until they are acknowledged."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

from ..engines.contract.queues import How
from ..exceptions import PressureError
from ..handles.handle import check_forward
from ..handles.item import Item
from ..handles.objects import UntilDone
from ..handles.options import ForwardOptions, JoinableOptions, SignatureOf
from ..hidden import hide_in
from ..in_flight import Asking, Claim, mark_of
from ..sync import queues as sync
from .awaited import as_in
from .handles import run_on
from .queues import Queue

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


@as_in(sync.JoinableQueue)
class JoinableQueue(Queue[Item]):
    """:class:`pressure_mp.JoinableQueue` for asyncio.

    The broker keeps an item that was got, in flight, until ``task_done()`` is called, by the
    asyncio task that got it or by another one.
    """

    _kind = sync.JoinableQueue
    _at: UntilDone

    __signature__ = SignatureOf(JoinableOptions)

    def __init__(
        self, maxsize: int = 0, name: str | None = None, **options: Unpack[JoinableOptions]
    ) -> None:
        """See :class:`pressure_mp.JoinableQueue`."""
        self._prepare(How.OPEN, maxsize, name, **hide_in(options))

    @classmethod
    async def create(cls, name: str, maxsize: int = 0, **options: Unpack[JoinableOptions]) -> Self:
        return await cls._insist(How.CREATE, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    async def attach(cls, name: str, maxsize: int = 0, **options: Unpack[JoinableOptions]) -> Self:
        return await cls._insist(How.ATTACH, maxsize=maxsize, name=name, **hide_in(options))

    async def _get_one(self, block: bool, timeout: float | None) -> Item:
        (found,), _ = await self._get_some(1, block, timeout)
        return found

    async def _get_some(
        self, limit: int, block: bool, timeout: float | None
    ) -> tuple[list[Item], PressureError | None]:
        await self.open()
        here, claim = self._at.here, Claim(mark_of(asyncio.current_task()))
        taking = self._at.taking(claim, limit, block, timeout)
        await self._here.outgoing.settle()
        try:
            return await self._run_at_once(taking, self._at.while_open)
        except PressureError:
            raise
        except BaseException as error:  # cancelled
            await self._give_up(here.lease, claim, error)
            raise

    async def task_done(self, *, connection: object | None = None) -> None:
        """Acknowledge an item that was got; as :meth:`pressure_mp.JoinableQueue.task_done`.

        It is the first item in flight that this asyncio task got; if there is none, the first that
        this process got; if there is none, the oldest of all.
        """
        await self.open()
        asking = Asking(mark_of(asyncio.current_task()))
        if connection is not None:
            await self._acknowledge_in(connection, asking)
            return
        try:
            asks = self._at.operations.acknowledge_next(self._at.here, asking)
            if await self._acknowledge(asks):
                warnings.warn(sync.late_task_done(self.name), stacklevel=2)
            if asking.held is not None:
                asking.held.is_done = True
        except BaseException as error:
            try:
                self._at.note_end(asking, error)
            finally:
                asking.is_over = True
            raise

    async def forward(self, queue: Any, item: Any, **options: Unpack[ForwardOptions]) -> Any:
        """Acknowledge an item that was got, and put ``item`` on another queue, in one step; as
        :meth:`pressure_mp.JoinableQueue.forward`.

        It is the first item in flight that this asyncio task got; if there is none, the first that
        this process got.
        """
        check_forward(self, queue, options)
        await self.open()
        asking, at = Asking(mark_of(asyncio.current_task())), self._at
        try:
            return await queue.put(item, connection=at.forwarding(asking), **options)
        finally:
            asking.is_over = True

    async def _acknowledge_in(self, connection: object, asking: Asking) -> None:
        here = self._at.here
        session = await self._session_in(connection)
        acknowledging = self._at.operations.acknowledge_at_commit(here, asking)
        try:
            if await run_on(self._at, session, acknowledging):
                raise sync.late_task_done(self.name)
            if asking.held is not None:
                asking.held.transaction = session.transaction
        finally:
            asking.is_over = True

    async def join(self) -> None:
        await self.open()
        with self._at.here:
            await super().join()
