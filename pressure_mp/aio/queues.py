"""What users of asyncio hold: the interface of ``asyncio.Queue``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic

from .. import events
from ..caller_warnings import warn_caller
from ..deadlines import deadline, seconds_left
from ..effects import AnyOperation, T
from ..encoding.large import Large
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
from ..handles.transactions import check_waits_for_nothing
from ..hidden import hide_in
from ..numeric import integer
from ..off_loop import off_loop
from ..sync import queues as sync
from ..sync.absent import Absent, refuse_hooks
from .administered import AdministeredQueue
from .buffered_put import BufferedPut
from .buffers import Buffers
from .handles import run_open

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Queue(AdministeredQueue[Item], Generic[Item]):
    """:class:`pressure_mp.Queue` for asyncio, with the interface of ``asyncio.Queue``.

    The methods do what those of :class:`pressure_mp.Queue` do; all that ask the broker are
    coroutines. A call that is cancelled has done nothing: an item that a get had taken goes back to
    the queue, and the next waiting client gets its turn. If a put is cancelled after it was sent to
    the broker, the put is completed, and the task is cancelled at its next ``await``.
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
        """Create the queue called ``name``. Raises QueueAlreadyExistsError."""
        return await cls._insist(How.CREATE, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    async def attach(cls, name: str, maxsize: int = 0, **options: Unpack[QueueOptions]) -> Self:
        """Attach to the existing queue called ``name``. Raises QueueDoesNotExistError."""
        return await cls._insist(How.ATTACH, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    def of(cls, handle: sync.Queue[Item]) -> Self:
        """Make a handle for asyncio to the queue of a handle for threads; see :meth:`Handle.of`."""
        return super().of(handle)

    #: Whether it was, through this handle: then each put asks the broker, which says so.
    _was_shut_down = False

    def _adopt(self, handle: Any) -> None:
        super()._adopt(handle)
        self._buffers: dict[asyncio.AbstractEventLoop, Buffers] = {}

    @property
    def _here(self) -> Buffers:
        """What this handle has on this side of the wire, in the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._buffers.get(loop)
        if found is None:
            for other in [other for other in self._buffers if other.is_closed()]:
                del self._buffers[other]
            found = self._buffers[loop] = Buffers(self._at)
        return found

    async def _run_behind(self, operation: AnyOperation[T]) -> T:
        """Run an operation that looks at the queued items, when the broker has all items that this
        loop put before, and nothing is reserved here."""
        await self._here.incoming.give_back()
        return await self._run(operation)

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
        queue.check_open()
        if connection is not None:
            check_waits_for_nothing("a timeout", timeout)
            block = False
        seconds = queue.seconds(timeout) if block else None
        encoded: bytes | Large | None = None
        try:
            ahead = queue.buffering.puts and not self._was_shut_down and connection is None
            if ahead and await self._may_buffer():
                headers = events.created(self._at.operations.destination)
                encoded = queue.codec.encode(item, headers)
                puts = self._here.outgoing
                if type(encoded) is bytes and isinstance(puts, BufferedPut):
                    await puts.put(encoded)
                    return
            end = deadline(bool(block), seconds)
            if connection is None:
                await self._here.outgoing.make_way(bool(block), end)
            order, left = queue.order.of(item, queue.name), seconds_left(end)
            if encoded is not None:
                putting = self._at.operations.put(encoded, bool(block), left)
            else:
                putting = self._at.operations.put_object(item, bool(block), left, order)
            await self._putting(putting, connection)
        except Full as error:
            error.item = item
            raise

    async def _may_buffer(self) -> bool:
        """Whether items may wait to be sent. On a queue with a bound each put asks the broker."""
        here = self._here
        if here.outgoing.is_unsure:
            if (await self._run_at_once(self._at.operations.stats())).maxsize:
                self._at.buffering = self._at.buffering._replace(puts=0)
                return False
            if not isinstance(here.outgoing, BufferedPut):
                here.outgoing = BufferedPut(partial(run_open, self._at), self._at)
        return True

    async def _putting(self, operation: AnyOperation[T], connection: object | None) -> T:
        """Run an operation that puts something through this handle; with a ``connection``, in its
        transaction."""
        queue = self._at
        if queue.eof:
            operation = self._at.operations.as_producer(queue.here, queue.token, operation)
        if connection is not None:
            return await self._run_in(connection, operation)
        return await self._run(operation)

    async def put_nowait(self, item: Item) -> None:
        """``put(item, block=False)``."""
        await self.put(item, False)

    async def put_many(
        self,
        items: Iterable[Item],
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put all ``items`` into the queue, in order; as :meth:`pressure_mp.Queue.put_many`."""
        queue = self._at
        queue.check_open()
        if connection is not None:
            check_waits_for_nothing("a timeout", timeout)
            block = False
        seconds = queue.seconds(timeout) if block else None
        await self.flush()
        given = list(items)
        try:
            orders = queue.order.of_all(given, queue.name)
            putting = self._at.operations.put_objects(given, bool(block), seconds, orders)
            await self._putting(putting, connection)
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise

    async def flush(self) -> None:
        """Wait until all items that were put through this handle are at the broker.

        Raises what :meth:`pressure_mp.Queue.flush` raises.
        """
        await self._here.outgoing.flush()

    # Getting

    async def get(self, block: bool = True, timeout: float | None = None) -> Item:
        """Take the next item out of the queue; as :meth:`pressure_mp.Queue.get`."""
        seconds = self._may_get(block, timeout)
        return await self._get_one(bool(block), seconds)

    async def get_nowait(self) -> Item:
        """``get(block=False)``."""
        return await self.get(False)

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
        """An item that is reserved for this handle, if there is one."""
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
        return await self._run_at_once(operation, queue.watching)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """The next item; the end when the queue is shut down and empty."""
        try:
            return await self.get()
        except ShutDown:
            raise StopAsyncIteration from None

    # Looking

    async def qsize(self) -> int:
        """How many items are queued; as :meth:`pressure_mp.Queue.qsize`."""
        return await self._run_behind(self._at.operations.length()) + len(self._here.outgoing)

    async def empty(self) -> bool:
        """Whether no item is queued, at one moment."""
        return await self.qsize() == 0

    async def full(self) -> bool:
        """Whether a put would have to wait for space, at one moment."""
        stats = await self._run_behind(self._at.operations.stats())
        return 0 < stats.maxsize <= stats.length + len(self._here.outgoing)

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

    async def task_done(self) -> None:
        """Report that the work for one item is done; as :meth:`pressure_mp.Queue.task_done`."""
        await self._acknowledging(self._at.operations.task_done())

    async def join(self) -> None:
        """Wait until the work for every item is done; as :meth:`pressure_mp.Queue.join`."""
        await self.flush()
        await self._run(self._at.operations.join())

    async def shutdown(self, immediate: bool = False) -> None:
        """Shut the queue down for all clients; as :meth:`pressure_mp.Queue.shutdown`."""
        if immediate:
            self._here.outgoing.discard()
        await self._here.outgoing.settle()
        if immediate:
            await self._here.incoming.give_back()
        closing = self._at.operations.close(True, None, once=False, immediate=bool(immediate))
        await self._run(closing)
        self._was_shut_down = True

    async def close(self) -> None:
        """Close this handle; as :meth:`pressure_mp.Queue.close`."""
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
        """Remove the queue and all its items; as :meth:`pressure_mp.Queue.delete`."""
        self._here.outgoing.discard()
        await self._here.incoming.give_back()
        await self._delete(True, timeout)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    __class_getitem__ = classmethod(GenericAlias)  # type: ignore[var-annotated]
