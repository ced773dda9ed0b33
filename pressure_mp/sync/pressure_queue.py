"""The pressure protocol itself, in bytes, under the specification's own names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ..drivers import drive_on
from ..effects import Operation
from ..engines.contract.queues import How
from ..exceptions import ArgumentError, ArgumentTypeError, PressureError
from .handles import ItemHandle, check_max_items, check_maxsize
from .options import ConnectionOptions, SignatureOf, read

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PressureQueue(ItemHandle):
    """A queue that programs in other languages may share (specification: Queue Operations).

    A handle refers to the queue by name; making one neither creates nor looks for the queue.
    Items are bytes. ``timeout`` is in seconds, None for no limit; a negative one is 0. Every
    operation is atomic: whatever is raised, it was done wholly or not at all. Every one but
    ``exists`` and ``create`` raises QueueDoesNotExistError, and every one BrokerUnavailable.
    """

    __signature__ = SignatureOf(ConnectionOptions)

    def __init__(self, name: str, **options: Unpack[ConnectionOptions]) -> None:
        """The options are some of :class:`pressure_mp.Queue`. No connection is made yet."""
        given = read(ConnectionOptions, options, self)
        if name is None:
            raise ArgumentTypeError("a PressureQueue has a name")
        super().__init__(name, given)

    def create(self, bound: int = 0) -> None:
        """Create the queue; ``bound`` items make it full, 0 for no bound.

        Never waits. Raises QueueAlreadyExistsError (specification: Create).
        """
        self._connect(self._creating(bound))

    def _creating(self, bound: int) -> Operation[None]:
        if check_maxsize(bound) != bound:
            raise ArgumentError(f"a bound is 0 or more, not {bound}")
        return self._opening_bounded(How.CREATE, bound, True)

    def length(self) -> int:
        """How many items are queued. Never waits (specification: Length)."""
        return self._run(self._operations.length())

    def closed(self) -> bool:
        """Whether the queue was closed. Never waits (specification: Closed)."""
        return self._run(self._operations.closed())

    def put(self, item: bytes, timeout: float | None = None, *, overfill: bool = False) -> None:
        """Append ``item``; blocks for the producer role and for space (specification: Put).

        With ``overfill`` the bound is not looked at: for a program that must save all it has
        before it ends. Raises QueueFullError or ProducerInUseError when the time is up,
        QueueClosedError; NotDurable, when the item is in the queue, but was not confirmed as the
        handle's ``durability`` asks.
        """
        self._run(self._operations.put(check_item(item), True, self._seconds(timeout), overfill))

    def put_nowait(self, item: bytes, *, overfill: bool = False) -> None:
        """Append ``item`` at once (specification: Put (Non-Blocking)).

        Raises QueueFullError, ProducerInUseError, QueueClosedError.
        """
        self._run(self._operations.put(check_item(item), False, None, overfill))

    def put_many(
        self, items: Iterable[bytes], block: bool = True, timeout: float | None = None
    ) -> None:
        """Append all ``items``, in order, up to 1,000 or 1 MB of them in each round trip.

        Blocks as :meth:`put` does, for ``timeout`` seconds in all, or not at all. Raises what that
        does; then the error's ``accepted`` says how many items were appended, and ``rest`` has the
        others.
        """
        given = [check_item(item) for item in items]
        try:
            self._run(self._operations.put_many(given, bool(block), self._seconds(timeout)))
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise

    def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[bytes]:
        """Take the oldest items: 1 to ``max_items``, and at most 1,000 or about 1 MB.

        Blocks as :meth:`get` does until there is one, or not at all. Raises what that does.
        """
        check_max_items(max_items)
        operation = self._operations.get_many(max_items, bool(block), self._seconds(timeout))
        return self._handing_out(partial(drive_on, operation))

    def get(self, timeout: float | None = None) -> bytes:
        """Take the oldest item; blocks for the consumer role and for an item (specification: Get).

        Raises Empty or ConsumerInUseError when the time is up, QueueClosedError when the queue
        is closed and empty.
        """
        return self._get(True, self._seconds(timeout))

    def get_nowait(self) -> bytes:
        """Take the oldest item at once (specification: Get (Non-Blocking)).

        Raises Empty, ConsumerInUseError, QueueClosedError.
        """
        return self._get(False, None)

    def _get(self, block: bool, timeout: float | None) -> bytes:
        operation = self._operations.get(block, timeout)
        item: bytes = self._handing_out(partial(drive_on, operation))
        return item

    def close(self, timeout: float | None = None) -> None:
        """Close the queue for everyone, for good; blocks for the producer role.

        Raises QueueClosedError when it is closed already, QueueInUseError when the time is up
        (specification: Close).
        """
        self._run(self._operations.close(True, self._seconds(timeout), once=True))

    def close_nowait(self) -> None:
        """Close the queue at once. Raises QueueClosedError, QueueInUseError."""
        self._run(self._operations.close(False, None, once=True))

    def unlock(self, role: str) -> str | None:
        """Take the role ``"producer"`` or ``"consumer"`` from whoever has it. Never waits.

        For a queue that another implementation died on: nothing else takes its role away. Make
        sure that the client is dead: one that lives goes on as if it still had the role. A client
        of this package that had it was waiting, and stands in line again. Returns who had the role,
        or None when it was free. Raises ArgumentError for another role.
        """
        return self._run(self._operations.unlock(check_role(role)))

    def delete(self, timeout: float | None = None) -> None:
        """Remove the queue and every key of it; blocks for both roles (specification: Delete).

        From the first moment on the queue no longer exists for others. Raises QueueInUseError
        when the time is up: then another implementation still has a role, and to delete again
        goes on where this stopped.
        """
        self._delete(True, timeout)

    def delete_nowait(self) -> None:
        """Remove the queue at once, or not at all. Raises QueueInUseError."""
        self._delete(False, None)


def check_role(role: str) -> str:
    """Raises ArgumentError for what is no role."""
    if role not in ("producer", "consumer"):
        raise ArgumentError(f"a queue has the roles producer and consumer, not {role!r}")
    return role


def check_item(item: bytes) -> bytes:
    """Raises ArgumentTypeError for what is not bytes."""
    if not isinstance(item, bytes):
        raise ArgumentTypeError(f"an item of a PressureQueue is bytes, not {type(item).__name__}")
    return item
