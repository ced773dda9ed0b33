"""Run the operations of an attachment in asyncio: the base of all handles of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from ..background.lease import Lease
from ..drivers import Guard, adrive, ending
from ..effects import AnyOperation, Operation, T
from ..engines import registry
from ..engines.cancelled_calls import LAST_SECONDS, read_exception, to_its_end
from ..engines.contract.cancellation import is_unknown, was_waiting
from ..engines.contract.queues import How
from ..engines.contract.session import ONE_TRY, AsyncSession, AsyncSessionIn, Binding
from ..exceptions import (
    ArgumentTypeError,
    BrokerError,
    BrokerUnavailable,
    PressureError,
    QueueDoesNotExistError,
)
from ..handles.attachment import Attachment
from ..handles.forwarding import Forwarding
from ..handles.handle import BaseHandle
from ..handles.items import ItemAttachment
from ..handles.transactions import transactional
from ..hidden import hide_in
from ..identity.processes import host
from ..in_flight import Claim
from ..off_loop import off_loop
from ..sync import handles
from . import buffered_put
from .awaited import Awaiting, awaited
from .errors import raise_as_of_asyncio

if TYPE_CHECKING:
    from typing_extensions import Self


class Handle(Awaiting, BaseHandle):
    """One object that refers to a queue, for the tasks of any event loop; threads with loops of
    their own may share it. It may be pickled, once it is open.

    It is opened by the first call, which raises what the constructor of the class for threads does
    for the broker's sake; or before, by :meth:`open`, and where ``async with`` begins.
    """

    #: The class for threads.
    _kind: ClassVar[type[handles.Handle]]
    _sync: Any
    _module = "aio."
    _opens: asyncio.Task[None] | None = None

    def _prepare(self, how: How, *args: Any, **options: Any) -> None:
        """Make the handle for threads; does no I/O."""
        self._adopt(handles.make(self._kind, how, True, *args, **hide_in(options)))

    def _adopt(self, handle: Any) -> None:
        """Be the handle of asyncio to that one's queue."""
        self._sync = handle
        self._at = handles.attachment_of(handle)

    @classmethod
    async def _insist(cls, how: How, *args: Any, **options: Any) -> Self:
        """Make a handle as the class does, but open the queue in this way, now."""
        handle = cls.__new__(cls)
        handle._prepare(how, *args, **hide_in(options))
        await handle.open()
        return handle

    @classmethod
    def of(cls, handle: Any) -> Self:
        """Make a handle for asyncio to the queue of a handle for threads, which stays usable.

        Does not wait for items in the buffer of that handle: see its ``flush()``. Raises
        ArgumentTypeError for a handle of another class.
        """
        if not isinstance(handle, cls._kind):
            raise ArgumentTypeError(
                f"aio.{cls.__name__}.of() takes a {cls._kind.__name__}, not {type(handle).__name__}"
            )
        found = cls.__new__(cls)
        found._adopt(handle)
        return found

    @property
    def sync(self) -> Any:
        """The handle for threads that this handle uses.

        Unless it was given to :meth:`of`, it has no buffers of its own: each put through it waits
        for the broker.
        """
        return self._sync

    async def open(self) -> None:
        """Attach to the queue, or create it, unless it is already open.

        Waits for the connection, at most ``reconnect`` seconds and 5 more for the last attempt;
        with ``embedded://`` also until the server has started, in a thread. Raises what the class
        for threads raises.
        """
        if self._at.binding is None:
            await self._open()

    async def _open(self) -> Binding:
        """Open it once, however many tasks ask for it, and whichever of them is cancelled."""
        loop = asyncio.get_running_loop()
        while self._at.binding is None:
            opens = self._opens
            if opens is None or opens.done() or opens.get_loop() is not loop:
                opens = self._opens = asyncio.ensure_future(self._open_now())
                opens.add_done_callback(read_exception)  # no task may be left that waits
            try:
                await asyncio.shield(opens)
            except PressureError as error:
                raise_as_of_asyncio(error)
        self._opens = None
        return self._at.binding

    async def _open_now(self) -> None:
        await self._start_broker()
        await self._connect(self._at.first_use(self._at.options))

    async def _start_broker(self) -> None:
        """Start the server, if the address has one of this program's own."""
        queue = self._at
        if queue.address.capabilities.starts:
            queue.address = await off_loop(queue.address.started)
            await off_loop(registry.engine, queue.address)

    # Running operations, by methods with the names of the handles for threads

    async def _connect(self, operation: Operation[None]) -> None:
        """Run an operation that names the binding of each step; shorten the tracebacks of its
        errors, as threads do."""
        try:
            await adrive(operation, registry.engine(self._at.address).host(host()).asession())
        except (BrokerError, BrokerUnavailable) as error:
            raise error.with_traceback(None) from error.__cause__

    async def _run(self, operation: AnyOperation[T], guard: Guard | None = None) -> T:
        """Run it when the broker has what this loop put before."""
        if buffered_put.busy:
            await buffered_put.settle(registry.engine(self._at.address))
        return await self._run_at_once(operation, guard)

    async def _acknowledge(self, operation: AnyOperation[T], guard: Guard | None = None) -> T:
        """Run an operation that says that an item or a task is done: only when the broker has all
        items that this loop put before. Raises the error of a put that failed."""
        if buffered_put.busy:
            await buffered_put.flush(registry.engine(self._at.address), self._at.name)
        return await self._run_at_once(operation, guard)

    async def _run_unopened(self, operation: AnyOperation[T]) -> T:
        """Run an operation, for which the queue is not opened."""
        if self._at.binding is not None:
            return await self._run(operation)
        await self._start_broker()
        return await run_on(self._at, self._at.bind_unopened().asession(), operation)

    async def _run_in(self, connection: object, operation: AnyOperation[T]) -> T:
        """Run it in a transaction of the caller's, when the broker has what this loop put before.
        Raises what went wrong with that."""
        if isinstance(connection, Forwarding):
            binding = self._at.binding or await self._open()
            return await self._acknowledge(connection.settled_by(operation, self._at, binding))
        return await run_on(self._at, await self._session_in(connection), operation)

    async def _session_in(self, connection: object) -> AsyncSessionIn:
        """Begin a session for :meth:`_run_in`."""
        if buffered_put.busy:
            await buffered_put.flush(registry.engine(self._at.address))
        self._at.check_may_open(connection)
        binding = self._at.binding or await self._open()
        return transactional(binding, self._at.address).asession_in(connection)

    async def _run_at_once(self, operation: AnyOperation[T], guard: Guard | None = None) -> T:
        """Run it, whatever was put and is not yet sent."""
        binding = self._at.binding or await self._open()
        return await run_on(self._at, binding.asession(), operation, guard)

    async def _give_up(self, lease: Lease, claim: Claim, error: BaseException) -> None:
        """Give back what a call took that ``error`` ended, mostly a cancellation."""
        if not claim.call or was_waiting(error):
            return
        if isinstance(error, GeneratorExit):  # the task is garbage, and nothing can be awaited
            lease.doubt(claim.call)
            return
        with suppress(PressureError):  # the lease's next look tries again
            requeuing = ending(lease.disown(claim), ONE_TRY)
            await to_its_end(self._run_at_once(requeuing), LAST_SECONDS)
            if not is_unknown(error):
                lease.trust(claim)

    async def _close_handle(self) -> None:
        queue = self._at
        queue.is_closed = True
        if queue.hold:
            await self._connect(queue.hold.release())

    exists = awaited(handles.Handle.exists)

    def __getstate__(self) -> dict[str, Any]:
        return {"_sync": self._sync}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._adopt(state["_sync"])


class ItemHandle(Handle):
    """A handle to a queue of items, in whatever order it serves them."""

    _at: ItemAttachment

    stats = awaited(handles.ItemHandle.stats)
    why_blocked = awaited(handles.ItemHandle.why_blocked)

    async def _run_at_once(self, operation: AnyOperation[T], guard: Guard | None = None) -> T:
        binding = self._at.binding or await self._open()
        session = binding.asession()
        try:
            return await run_on(self._at, session, operation, guard)
        except PressureError as error:
            if not error.took_nothing and (taken := session.taken) is not None:
                self._at.here.take_back_later(taken)
            raise


async def run_on(
    queue: Attachment, session: AsyncSession, operation: AnyOperation[T], guard: Guard | None = None
) -> T:
    """Run an operation on a session, which ends with it."""
    try:
        return await adrive(operation, session, guard)
    except QueueDoesNotExistError:
        if queue.is_anonymous:
            queue.check_open()  # closed, and no other process had it
        raise
    except PressureError as error:
        raise_as_of_asyncio(error)


async def run_open(queue: Attachment, operation: AnyOperation[T]) -> T:
    """Run an operation on a queue that is open, also while items wait to be sent. It refers to no
    handle: so the buffers of a handle do not keep it alive."""
    binding = queue.binding
    assert binding is not None, "its first use opened it"
    return await run_on(queue, binding.asession(), operation)


#: Runs an operation on the queue of a handle.
Run = Callable[[Operation[Any]], Coroutine[Any, Any, Any]]


def runner_of(handle: Handle) -> Run:
    """Return the function that runs operations on a handle's queue, after this loop's puts."""
    return handle._run
