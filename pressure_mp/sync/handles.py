"""The common base of all handles of threads: an attachment to their queue, which can be pickled."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..drivers import Guard
from ..effects import AnyOperation, Operation, T
from ..engines.contract.levels import Level
from ..engines.contract.queues import How, Stats
from ..handles.attachment import Attachment, Traits
from ..handles.handle import BaseHandle
from ..handles.items import ItemAttachment
from ..hidden import hide_in

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..operations.diagnosis import Diagnosis

AnyHandle = TypeVar("AnyHandle", bound="Handle")
U = TypeVar("U")


class Blocking:
    """Runs operations in a thread.

    The last step of most methods is a call of one of these. In asyncio these calls return
    coroutines: so the same methods, awaited, are methods of asyncio.
    """

    __slots__ = ()

    _at: Any

    def _run(self, operation: AnyOperation[T], guard: Guard | None = None) -> T:
        """Run an operation when the broker has all items that this process put before. ``guard`` is
        as for :func:`~.drivers.drive`."""
        found: T = self._at.run_on(self._at.settled_session(), operation, guard)
        return found

    def _then(self, found: T, then: Callable[[T], U]) -> U:
        """Return what ``then`` makes of the result of another call."""
        return then(found)


class Handle(Blocking, BaseHandle):
    """One object that refers to a queue. Threads may share it; it may be pickled."""

    _at: Attachment

    # The traits of the class's queues.
    _make_operations: Callable[[str], Any]
    _levels: tuple[Level, ...] = (Level.ITEMS,)
    _refuses_negative_timeouts = False
    _buffers_unasked = False

    #: How the constructor opens the queue, and whether the handle is one of asyncio.
    _opens = How.OPEN, False

    @classmethod
    def _insist(cls, how: How, *args: Any, **options: Any) -> Self:
        """Make a handle as the class itself does, but open the queue in this way."""
        return make(cls, how, False, *args, **hide_in(options))

    def _traits(self) -> Traits:
        return Traits(
            type(self).__name__,
            self._make_operations,
            self._levels,
            self._refuses_negative_timeouts,
            self._buffers_unasked,
        )

    def _acknowledge(self, operation: AnyOperation[T]) -> T:
        """Run an operation that says that an item or a task is done: only when the broker has all
        items that this process put before. Raises the error of a put that failed."""
        return self._at.run_on(self._at.flushed_session(), operation)

    def _run_in(self, connection: object, operation: AnyOperation[T]) -> T:
        """Run an operation in a transaction of the caller, when the broker has all items that this
        process put before. Raises the error of a put that failed."""
        return self._at.run_in(connection, operation)

    def _run_unopened(self, operation: AnyOperation[T]) -> T:
        """Run an operation, for which the queue is not opened."""
        if self._at.binding is None:
            return self._at.run_on(self._at.bind_unopened().session(), operation)
        return self._run(operation)

    def _connect(self, operation: Operation[None]) -> None:
        """Run an operation that opens the queue."""
        self._at.connect(operation)

    def open(self) -> None:
        """Create the queue or attach to it, unless a call through this handle has done so.

        The first call through a handle that names its queue does this. Blocks for the connection,
        at most ``reconnect`` seconds and 5 more for the last attempt. Raises BrokerUnavailable;
        WrongServerError when something other than a broker answers; BrokerError for a refused
        login; QueueMismatchError when the queue exists with another bound or discipline.
        """
        self._at.attached()

    def exists(self) -> bool:
        """Whether the queue exists. Does not create it, and never waits (specification: Exists)."""
        operation: AnyOperation[bool] = self._at.operations.exists()
        return self._run_unopened(operation)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("__orig_class__", None)  # of Queue[int](): what it names may not be picklable
        return state

    def __copy__(self) -> Self:
        """Make another handle to the queue, as a pickle does."""
        copied = type(self).__new__(type(self))
        copied.__setstate__({**self.__getstate__(), "_at": copy.copy(self._at)})
        return copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._at.begin(self._traits())


class ItemHandle(Handle):
    """A handle to a queue of items, in whatever order it serves them."""

    _at: ItemAttachment

    def stats(self) -> Stats:
        """Counts of the queue at one moment; see :class:`Stats`.

        Waits for no other client. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.operations.stats())

    def why_blocked(self) -> Diagnosis:
        """Explain what a put and a get would wait for now.

        The diagnosis says which clients are in the way, which have items in flight, and whether
        they are alive.
        ``print(queue.why_blocked())`` shows it in words. If a process of this host has ended and
        still has a role (the right to put or to get), the role is free after this call. Waits for
        no other client. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.operations.why_blocked())


def make(
    cls: type[AnyHandle], how: How, is_of_asyncio: bool, *args: Any, **options: Any
) -> AnyHandle:
    """Make a handle as ``cls(...)`` does, but open the queue in this way; with ``is_of_asyncio``,
    at the first use of the handle, and do no I/O now."""
    handle = cls.__new__(cls)
    handle._opens = how, is_of_asyncio
    cls.__init__(handle, *args, **hide_in(options))
    del handle._opens
    return handle


def attachment_of(handle: Handle) -> Any:
    """The attachment of a handle, of which the handle of asyncio to the same queue is made, too."""
    return handle._at
