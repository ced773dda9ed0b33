"""The queues with the interface of ``asyncio.Queue``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..caller_warnings import warn_caller
from ..effects import AnyOperation, T
from ..engines.contract.queues import How
from ..exceptions import (
    ArgumentError,
    Full,
    PressureError,
    RejectedItemWarning,
    ShutDown,
)
from ..handles.arguments import check_maxsize
from ..handles.item import Item
from ..handles.objects import ObjectAttachment
from ..handles.options import QueueOptions, SignatureOf
from ..hidden import hide_in
from ..numeric import integer
from ..off_loop import off_loop
from ..sync import queues as sync
from ..sync.absent import Absent, refuse_hooks
from .awaited import as_in, awaited
from .buffers import Buffers
from .handles import ItemHandle

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

U = TypeVar("U")


@as_in(sync.Queue)
class Queue(ItemHandle, Generic[Item]):
    """:class:`pressure_mp.Queue` for asyncio, with the interface of ``asyncio.Queue``.

    Each method does what the same method of :class:`pressure_mp.Queue` does. All methods that ask
    the broker are coroutines: where a method blocks there, the asyncio task waits here. A call that
    is cancelled has done nothing: an item that a get had taken goes back to the queue, and the next
    waiting client gets its turn. If a put is cancelled after it was sent to the broker, the put is
    completed, and the task is cancelled at its next ``await``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_hooks(cls)

    _queue = Absent("the items are at the broker: purge() drops them, peek() shows the next")

    _kind = sync.Queue
    _at: ObjectAttachment
    __signature__ = SignatureOf(QueueOptions)

    def __init__(
        self, maxsize: int = 0, name: str | None = None, **options: Unpack[QueueOptions]
    ) -> None:
        """Make a handle, as :class:`pressure_mp.Queue`; the first call, or :meth:`open`, opens it.

        :param buffering: as for :class:`pressure_mp.Queue`, but an asyncio task sends the items.
        :param prefetch: cannot be used here; :meth:`get_many` is as fast.

        Does not connect to the broker. Raises AddressError, ArgumentError, ArgumentTypeError.
        """
        self._prepare(How.OPEN, maxsize, name, **hide_in(options))

    def _prepare(self, how: How, *args: Any, **options: Any) -> None:
        if options.get("prefetch"):
            raise ArgumentError("a queue of asyncio does not prefetch: use get_many()")
        super()._prepare(how, *args, **hide_in(options))

    @classmethod
    async def create(cls, name: str, maxsize: int = 0, **options: Unpack[QueueOptions]) -> Self:
        return await cls._insist(How.CREATE, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    async def attach(cls, name: str, maxsize: int = 0, **options: Unpack[QueueOptions]) -> Self:
        return await cls._insist(How.ATTACH, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    def of(cls, handle: sync.Queue[Item]) -> Self:
        """Make a handle for asyncio to the queue of a handle for threads; see :meth:`Handle.of`."""
        return super().of(handle)

    def _adopt(self, handle: Any) -> None:
        super()._adopt(handle)
        self._buffers: dict[asyncio.AbstractEventLoop, Buffers] = {}

    @property
    def _here(self) -> Buffers:
        """The buffers of this handle in the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._buffers.get(loop)
        if found is None:
            for other in [other for other in self._buffers if other.is_closed()]:
                del self._buffers[other]
            found = self._buffers[loop] = Buffers(self._at)
        return found

    # Putting

    async def put(
        self,
        item: Item,
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put ``item`` into the queue; as :meth:`pressure_mp.Queue.put`.

        A ``connection`` is a ``psycopg.AsyncConnection``, or one of SQLAlchemy over it.
        """
        queue = self._at
        block, end = queue.limit_put(block, timeout, connection)
        try:
            if connection is not None:
                putting: AnyOperation[None] | None = queue.putting(item, block, end)
            else:
                if queue.binding is None:
                    await self.open()
                putting = await self._here.put(item, block, end)
            if putting is not None:
                await self._putting(putting, connection)
        except Full as error:
            error.item = item
            raise

    put_nowait = awaited(sync.Queue[Item].put_nowait)
    put_many = awaited(sync.Queue[Item].put_many)

    async def _put_many(
        self, given: list[Item], block: bool, end: float | None, connection: object | None
    ) -> None:
        try:
            await self._here.outgoing.make_way(block, end)
        except Full as error:
            error.rest = given
            raise
        await self._putting(self._at.putting_many(given, block, end), connection)

    async def _putting(self, operation: AnyOperation[T], connection: object | None) -> T:
        """Run an operation that puts something through this handle; with a ``connection``, in its
        transaction."""
        queue = self._at
        if queue.eof:
            operation = self._at.operations.as_producer(queue.here, queue.token, operation)
        if connection is not None:
            return await self._run_in(connection, operation)
        return await self._run(operation)

    async def flush(self) -> None:
        await self._here.outgoing.flush()

    # Getting

    async def get(self, block: bool = True, timeout: float | None = None) -> Item:
        """Take the next item out of the queue; as :meth:`pressure_mp.Queue.get`."""
        seconds = self._may_get(block, timeout)
        return await self._get_one(bool(block), seconds)

    get_nowait = awaited(sync.Queue[Item].get_nowait)

    async def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[Item]:
        """Take the next items, 1 to ``max_items``; as :meth:`pressure_mp.Queue.get_many`."""
        max_items = integer("max_items", max_items, 1)
        seconds = self._may_get(block, timeout)
        await self._here.incoming.give_back()
        found, problem = await self._get_some(max_items, bool(block), seconds)
        if problem is not None:
            warn_caller(str(problem), RejectedItemWarning)
        return found

    def _may_get(self, block: bool, timeout: float | None) -> float | None:
        self._at.check_open()
        return self._at.seconds(timeout) if block else None

    async def _get_one(self, block: bool, timeout: float | None) -> Item:
        queue = self._at
        if queue.buffering.reserves:
            item = await self._reserved()
            if item is not None:
                return await self._accept(item)
        found: Item = await self._getting(self._at.operations.get_object(block, timeout, queue.eof))
        return found

    async def _reserved(self) -> bytes | None:
        """Return an item that is reserved for this handle, if there is one."""
        here = self._here
        item = here.incoming.take()
        if item is not None:
            return item
        await self.open()
        await here.outgoing.settle()
        return await here.incoming.next()

    async def _accept(self, item: bytes) -> Item:
        try:
            found: Item = self._at.codec.decode(item)
            self._at.operations.tell_received([item])
            return found
        except PressureError:
            await self._run(self._at.operations.reject(item))
            raise

    async def _get_some(
        self, limit: int, block: bool, timeout: float | None
    ) -> tuple[list[Item], PressureError | None]:
        return await self._getting(
            self._at.operations.get_objects(limit, block, timeout, self._at.eof)
        )

    async def _getting(self, operation: AnyOperation[T]) -> T:
        queue = self._at
        await self._here.outgoing.settle()
        if queue.eof:
            with queue.here:
                return await self._run_at_once(operation, queue.while_open)
        return await self._run_at_once(operation, queue.while_waiting)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """Get the next item; end the iteration when the queue is shut down and empty."""
        try:
            return await self.get()
        except ShutDown:
            raise StopAsyncIteration from None

    # Looking

    qsize = awaited(sync.Queue[Item].qsize)
    full = awaited(sync.Queue[Item].full)
    peek = awaited(sync.Queue[Item].peek)
    purge = awaited(sync.Queue[Item].purge)
    rejected = awaited(sync.Queue[Item].rejected)
    requeue_rejected = awaited(sync.Queue[Item].requeue_rejected)
    drop_rejected = awaited(sync.Queue[Item].drop_rejected)

    async def _run_behind(self, operation: AnyOperation[T]) -> T:
        await self._here.incoming.give_back()
        return await self._run(operation)

    async def _count(self, operation: AnyOperation[T], then: Callable[[T, int], U]) -> U:
        found = await self._run_behind(operation)
        return then(found, len(self._here.outgoing))

    async def empty(self) -> bool:
        return await self.qsize() == 0

    async def maxsize(self) -> int:
        """The queue's bound, 0 for none."""
        return (await self.stats()).maxsize

    async def set_maxsize(self, maxsize: int) -> None:
        """Change the queue's bound for all clients; items stay in the queue, also those over it."""
        bound = check_maxsize(maxsize)
        if bound:
            self._at.buffering = self._at.buffering._replace(puts=0)
            await self.flush()
        await self._run(self._at.operations.set_bound(bound))

    async def unfinished_tasks(self) -> int:
        """How many items were put whose work is not yet done."""
        return (await self._run_behind(self._at.operations.stats())).unfinished

    async def is_shutdown(self) -> bool:
        """Whether the queue was shut down."""
        return await self._run(self._at.operations.closed())

    # What was got, and the end

    task_done = awaited(sync.Queue[Item].task_done)

    async def join(self) -> None:
        await self.flush()
        await self._run(self._at.operations.join())

    async def shutdown(self, immediate: bool = False) -> None:
        if immediate:
            self._here.outgoing.discard()
        await self._here.outgoing.settle()
        if immediate:
            await self._here.incoming.give_back()
        closing = self._at.operations.close(True, None, once=False, immediate=bool(immediate))
        await self._run(closing)
        self._here.is_off = True

    async def close(self) -> None:
        queue = self._at
        if queue.is_closed:
            return
        try:
            await self.flush()
            await self._here.incoming.give_back()
        finally:
            if queue.eof:
                await off_loop(queue.here.stop_producing, queue.token)
            await self._close_handle()

    async def delete(self, timeout: float | None = None) -> None:
        self._here.outgoing.discard()
        await self._here.incoming.give_back()
        await self._run(self._at.deleting(True, timeout))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    __class_getitem__ = classmethod(GenericAlias)  # type: ignore[var-annotated]
