"""The pressure protocol itself, in bytes, under the specification's own names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ..drivers import drive_on
from ..effects import AnyOperation, Operation, T
from ..engines.contract.queues import How
from ..exceptions import ArgumentError, ArgumentTypeError, PressureError
from ..handles.arguments import check_maxsize
from ..handles.items import ItemAttachment
from ..handles.options import ConnectionOptions, SignatureOf, read
from ..numeric import integer
from ..operations.control import FIFO
from ..operations.items import ItemOperations
from .handles import ItemHandle

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PressureQueue(ItemHandle):
    """A queue of bytes that programs in other languages can share.

    It has the operations of the pressure protocol (specification: Queue Operations). A handle
    refers to the queue by name; making a handle does not create the queue, nor check that it
    exists. ``timeout`` is in seconds; None means no limit, and a negative one means 0. Every
    operation is atomic: if it raises, it was done completely or not at all. Every operation may
    raise BrokerUnavailable, and all but ``exists`` and ``create`` QueueDoesNotExistError.

    The protocol has two roles, producer and consumer. A client needs the producer role to put and
    the consumer role to get; one client at a time has each.
    """

    _at: ItemAttachment
    _make_operations = staticmethod(partial(ItemOperations, discipline=FIFO))

    __signature__ = SignatureOf(ConnectionOptions)

    def __init__(self, name: str, **options: Unpack[ConnectionOptions]) -> None:
        """Make a handle, with the options of :class:`pressure_mp.Queue` with these names.

        Does not connect to the broker. Raises AddressError, ArgumentError, ArgumentTypeError.
        """
        given = read(ConnectionOptions, options, self)
        if name is None:
            raise ArgumentTypeError("a PressureQueue has a name")
        self._at = ItemAttachment(self._traits(), name, given)

    def create(self, bound: int = 0) -> None:
        """Create the queue, which holds at most ``bound`` items; 0 means no bound.

        Never waits. Raises QueueAlreadyExistsError, and ArgumentError for a bound below 0
        (specification: Create).
        """
        if check_maxsize(bound) != bound:
            raise ArgumentError(f"a bound is 0 or more, not {bound}")
        return self._connect(self._at.opening_bounded(How.CREATE, bound, True))

    def length(self) -> int:
        """How many items are queued. Never waits (specification: Length)."""
        return self._run(self._at.operations.length())

    def closed(self) -> bool:
        """Whether the queue was closed. Never waits (specification: Closed)."""
        return self._run(self._at.operations.closed())

    def put(self, item: bytes, timeout: float | None = None, *, overfill: bool = False) -> None:
        """Append ``item``; blocks for the producer role and for space (specification: Put).

        With ``overfill`` the bound is ignored: for a program that must save its items before it
        ends. Raises QueueFullError or ProducerInUseError when ``timeout`` is over, QueueClosedError
        when the queue is closed, and ArgumentTypeError for an item that is not bytes. Raises
        NotDurable when the item is in the queue, but was not confirmed as the handle's
        ``durability`` asks.
        """
        seconds = self._at.seconds(timeout)
        return self._run(self._at.operations.put(_check_item(item), True, seconds, overfill))

    def put_nowait(self, item: bytes, *, overfill: bool = False) -> None:
        """Append ``item`` at once (specification: Put (Non-Blocking)).

        Raises QueueFullError, ProducerInUseError, QueueClosedError.
        """
        return self._run(self._at.operations.put(_check_item(item), False, None, overfill))

    def put_many(
        self, items: Iterable[bytes], block: bool = True, timeout: float | None = None
    ) -> None:
        """Append all ``items``, in order, up to 1,000 or 1 MB of them in each round trip.

        Blocks as :meth:`put` does, for at most ``timeout`` seconds in all; not at all when
        ``block`` is false. Raises what :meth:`put` raises; the error's ``accepted`` then says how
        many items were appended, and ``rest`` has the others.
        """
        given = [_check_item(item) for item in items]
        seconds = self._at.seconds(timeout)
        return self._run(_putting(self._at.operations, given, bool(block), seconds))

    def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[bytes]:
        """Take the oldest items: 1 to ``max_items``, and at most 1,000 or about 1 MB.

        Blocks as :meth:`get` does until there is one; not at all when ``block`` is false. Raises
        what :meth:`get` raises, and ArgumentError for ``max_items`` below 1.
        """
        max_items = integer("max_items", max_items, 1)
        seconds = self._at.seconds(timeout)
        return self._take(self._at.operations.get_many(max_items, bool(block), seconds))

    def get(self, timeout: float | None = None) -> bytes:
        """Take the oldest item; blocks for the consumer role and for an item (specification: Get).

        Raises Empty or ConsumerInUseError when the time is up, QueueClosedError when the queue
        is closed and empty.
        """
        return self._take(self._at.operations.get(True, self._at.seconds(timeout)))

    def get_nowait(self) -> bytes:
        """Take the oldest item at once (specification: Get (Non-Blocking)).

        Raises Empty, ConsumerInUseError, QueueClosedError.
        """
        return self._take(self._at.operations.get(False, None))

    def _take(self, operation: AnyOperation[T]) -> T:
        return self._at.hand_out(partial(drive_on, operation))

    def close(self, timeout: float | None = None) -> None:
        """Close the queue for all clients, for good; blocks for the producer role.

        Raises QueueClosedError when the queue is closed already, QueueInUseError when ``timeout``
        is over (specification: Close).
        """
        seconds = self._at.seconds(timeout)
        return self._run(self._at.operations.close(True, seconds, once=True))

    def close_nowait(self) -> None:
        """Close the queue at once. Raises QueueClosedError, QueueInUseError."""
        return self._run(self._at.operations.close(False, None, once=True))

    def unlock(self, role: str) -> str | None:
        """Take the role ``"producer"`` or ``"consumer"`` from the client that has it. Never waits.

        This is for a client of another implementation that died: it keeps its role for ever
        otherwise. Make sure that the client is dead: a client that is alive continues as if it
        still had the role. A client of this package has a role only while it waits; it then waits
        for the role again. Returns the id of the client that had the role, or None when the role
        was free. Raises ArgumentError for another role.
        """
        if role not in ("producer", "consumer"):
            raise ArgumentError(f"a queue has the roles producer and consumer, not {role!r}")
        return self._run(self._at.operations.unlock(role))

    def delete(self, timeout: float | None = None) -> None:
        """Remove the queue and every key of it; blocks for both roles (specification: Delete).

        For other clients the queue does not exist any more as soon as this begins. Raises
        QueueInUseError when ``timeout`` is over and a client of another implementation still has a
        role; calling this again continues the deletion.
        """
        return self._run(self._at.deleting(True, timeout))

    def delete_nowait(self) -> None:
        """Remove the queue at once, or not at all. Raises QueueInUseError."""
        return self._run(self._at.deleting(False, None))


def _putting(
    operations: ItemOperations, given: list[bytes], block: bool, timeout: float | None
) -> Operation[None]:
    try:
        yield from operations.put_many(given, block, timeout)
    except PressureError as error:
        error.rest = given[error.accepted :]
        raise


def _check_item(item: bytes) -> bytes:
    """Raise ArgumentTypeError for an item that is not bytes."""
    if not isinstance(item, bytes):
        raise ArgumentTypeError(f"an item of a PressureQueue is bytes, not {type(item).__name__}")
    return item
