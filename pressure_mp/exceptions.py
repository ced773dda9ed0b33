"""Every error of this package: one tree, with :class:`PressureError` at its root.

Errors that the standard library also has inherit from its classes too, so that
``except queue.Empty`` and ``except ConnectionError`` in an existing program keep working.
"""

from __future__ import annotations

import queue
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .states import TaskState

if sys.version_info >= (3, 13):
    from queue import ShutDown as _StdlibShutDown
else:

    class _StdlibShutDown(Exception):
        """Stands where Python 3.13 has ``queue.ShutDown``."""


class PressureError(Exception):
    """The root of every error that this package raises on purpose.

    From ``put_many``: ``accepted`` is how many of the items are in the queue, and ``rest`` has the
    others, in order. With ``buffering``, ``rest`` has the items that were put and not sent.
    """

    accepted: int = 0
    rest: Sequence[Any] = ()

    #: Whether a get that raises it has nothing that would have to go back to the queue.
    took_nothing = False


class Empty(PressureError, queue.Empty):
    """No item came before the time was up."""

    took_nothing = True


class Full(PressureError, queue.Full):
    """No space came before the time was up. Specification: QueueFullError.

    ``current_size`` is how many items were queued, None when that is not known, and ``item`` the
    one that was to be put.
    """

    item: Any = None
    current_size: int | None = None


class ShutDown(PressureError, _StdlibShutDown):
    """The queue is closed for good, and for a get: empty. Specification: QueueClosedError."""

    took_nothing = True


#: The specification's names for the three conditions that the standard library also names.
QueueFullError = Full
QueueClosedError = ShutDown


class QueueAlreadyExistsError(PressureError):
    """Create found a queue of that name."""


class QueueDoesNotExistError(PressureError):
    """The queue was never created, or it was deleted."""

    took_nothing = True


class QueueInUseError(PressureError):
    """Another client has the role that the operation needs, and the time was up."""


class ProducerInUseError(QueueInUseError, Full):
    """A put found the producer role taken; also :class:`Full`, for stdlib-shaped callers."""


class ConsumerInUseError(QueueInUseError, Empty):
    """A get found the consumer role taken; also :class:`Empty`, for stdlib-shaped callers."""


class IncompleteQueueError(PressureError):
    """Keys of the queue are missing, which its clients would wait for without end."""


class QueueMismatchError(PressureError, ValueError):
    """The queue exists, but with another maxsize, discipline or format than asked for."""


class HandleClosedError(PressureError, ValueError, OSError):
    """This handle was closed with ``close()``; the queue itself goes on.

    ``multiprocessing`` raises ValueError from put and get, and OSError from the others.
    """


class TaskDoneError(PressureError, ValueError):
    """``task_done()`` was called more often than items were put."""


class TaskError(PressureError):
    """What was asked for cannot be done with this task. Nothing was done.

    ``task_id`` is which, and ``state`` the state it is in: ``TaskState.VOID`` when it is not in the
    queue.
    """

    def __init__(self, message: str, task_id: int | str | None = None, state: str = "X") -> None:
        super().__init__(message, task_id, state)
        self.task_id = task_id
        self._state = state

    @property
    def state(self) -> TaskState:
        """The state that the task is in."""
        from .states import named  # which only those who use tasks need

        return named(self._state)

    def __str__(self) -> str:
        return str(self.args[0])


class TaskNotFound(TaskError, LookupError):
    """The queue has no task of that id: it never had, or it was processed, killed, or expired."""


class TaskExists(TaskError, ValueError):
    """The queue has a task of that id already."""


class TaskFailed(TaskError):
    """The task has no value: it was buried, killed or dropped, or its handler raised an error that
    this process does not have. The message says which; then with the error's traceback."""


class ResultNotKept(TaskError, LookupError):
    """What came of the task is not known: to keep it was not asked for when the task was put, or
    the time for which it was to be kept is over."""


class ResultTimeout(PressureError, TimeoutError):
    """The task did not end before the time was up."""


class InboxLost(PressureError):
    """Nobody asked an inbox of tasks for longer than its lease: what it was to hear is lost."""


class RemoteTraceback(PressureError):
    """The ``__cause__`` of an error that was raised in another process: its traceback there, as
    text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class WrongState(TaskError, ValueError):
    """The task is in a state that the operation does not take it out of."""


class NotTaken(WrongState):
    """Nobody has taken the task: it was released meanwhile, or never taken."""


class NotOwner(WrongState):
    """The task is taken, but not by this process, or no longer by this take: another has it."""


class LateTaskDoneWarning(PressureError, RuntimeWarning):
    """``task_done()`` came for an item that was given to another consumer; it did not count."""


class RejectedItemWarning(PressureError, RuntimeWarning):
    """Among the items of a ``get_many`` was one that was set aside; the others were returned."""


class ArgumentError(PressureError, ValueError):
    """An argument has a value that cannot be used."""


class ArgumentTypeError(PressureError, TypeError):
    """An argument has a type that cannot be used."""


class AddressError(ArgumentError):
    """A broker's address cannot be understood."""


class EncodingError(PressureError, TypeError):
    """The serializer cannot encode this object. Nothing was queued."""


class DecodingError(PressureError, ValueError):
    """The serializer cannot decode an item, the data of a task or its result; ``payload`` has its
    bytes. An item was set aside. A task is buried when it is taken. A result stays as it is."""

    took_nothing = True

    def __init__(self, message: str, payload: bytes = b"") -> None:
        super().__init__(message, payload)
        self.payload = payload

    def __str__(self) -> str:
        return str(self.args[0])


class NotDurable(PressureError):
    """The effect is there, but it was not confirmed as ``durability`` asks; after a put, the item
    is in the queue. ``confirmed`` is how many replicas confirmed it, or 0 for the disk."""

    def __init__(self, message: str, confirmed: int = 0) -> None:
        super().__init__(message, confirmed)
        self.confirmed = confirmed

    def __str__(self) -> str:
        return str(self.args[0])


class ItemTooLargeError(PressureError, ValueError):
    """The broker refuses an item of this size. Nothing was queued."""


class BrokerUnavailable(PressureError, ConnectionError):
    """No broker answers at the address, or the connection to it broke."""


class WrongServerError(BrokerUnavailable):
    """What is at the address cannot be used as it is: it speaks another protocol, its certificate
    is not trusted, or this user may not open its socket. To try again would not help."""


class EmbeddedServerError(BrokerUnavailable):
    """The embedded server could not be started."""


class BrokerError(PressureError):
    """The broker answered with an error: no memory, no permission, read only, …"""

    took_nothing = True


class BrokerFull(BrokerError):
    """The broker has no memory, or no space on its disk, for what was to be put. Nothing was done,
    and nothing is lost; gets go on. To get items makes space."""


class WrongKeyTypeError(BrokerError, TypeError):
    """A key of the queue holds a value of a kind that no pressure client writes there."""


class EvictingServerError(BrokerError):
    """The server removes keys by itself when its memory is full, and with them what is queued."""


class EvictionWarning(PressureError, RuntimeWarning):
    """Queues are used on a server that removes keys by itself, since that was allowed."""


class UnsupportedServerError(BrokerError):
    """The server is older than what this package needs."""
