"""Every error of this package: one tree, with :class:`PressureError` at its root.

Errors that the standard library also has inherit from its classes too, so that
``except queue.Empty`` and ``except ConnectionError`` in an existing program keep working.
"""

from __future__ import annotations

import queue
import sys
from collections.abc import Sequence
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .states import TaskState

if sys.version_info >= (3, 13):
    from queue import ShutDown as _StdlibShutDown
else:

    class _StdlibShutDown(Exception):
        """Stands where Python 3.13 has ``queue.ShutDown``."""


class PressureError(Exception):
    """The base class of all errors that this package raises on purpose.

    When ``put_many`` raises: ``accepted`` is how many of the items are in the queue, and ``rest``
    has the others, in order. With ``buffering``, ``rest`` has the items that were put and not sent.
    """

    accepted: int = 0
    rest: Sequence[Any] = ()

    #: Whether a get that raises it has nothing that would have to go back to the queue.
    took_nothing = False


class Empty(PressureError, queue.Empty):
    """A get or take got nothing before its timeout was over. Also :class:`queue.Empty`."""

    took_nothing = True


class Full(PressureError, queue.Full):
    """A put found no space before its timeout was over. Also :class:`queue.Full`.

    ``item`` is the item that was not put. ``current_size`` is how many items were queued, or None
    when that is not known. Specification: QueueFullError.
    """

    item: Any = None
    current_size: int | None = None


class ShutDown(PressureError, _StdlibShutDown):
    """The queue was shut down; from a get: and is empty. Also ``queue.ShutDown``.

    ``immediate``, of a put: whether it was shut down with ``immediate``. Specification:
    QueueClosedError.
    """

    immediate: bool = False

    took_nothing = True


#: The specification's names for the three conditions that the standard library also names.
QueueFullError = Full
QueueClosedError = ShutDown


class QueueAlreadyExistsError(PressureError):
    """``create`` found an existing queue of this name."""


class QueueDoesNotExistError(PressureError):
    """The queue was never created, or it was deleted. A queue of another kind that was created
    under its name is another queue."""

    took_nothing = True


class QueueInUseError(PressureError):
    """Another client had the producer or consumer role until the timeout was over.

    The operation needs this role: the right to put, or to get, which one client has at a time.
    """


class ProducerInUseError(QueueInUseError, Full):
    """Another client had the producer role until the timeout of a put was over; also Full."""


class ConsumerInUseError(QueueInUseError, Empty):
    """Another client had the consumer role until the timeout of a get was over; also Empty."""


class IncompleteQueueError(PressureError):
    """Keys of the queue are missing at the server; without them clients would wait for ever."""


class NotSupportedError(PressureError, NotImplementedError):
    """The engine of the broker does not have what a class, an option or a method needs."""


class QueueMismatchError(PressureError, ValueError):
    """The queue exists, but with another maxsize, discipline, format or stated option."""


class HandleClosedError(PressureError, ValueError, OSError):
    """This handle was closed with ``close()``; the queue itself still exists.

    It is a ValueError and an OSError because ``multiprocessing`` raises ValueError from put and
    get, and OSError from other methods.
    """

    took_nothing = True


class TaskDoneError(PressureError, ValueError):
    """``task_done()`` was called more often than items were put."""


class TaskError(PressureError):
    """The operation is not possible for this task. Nothing was done.

    ``task_id`` is the task's id, and ``state`` is its state: ``TaskState.VOID`` when it is not in
    the queue.
    """

    def __init__(self, message: str, task_id: int | str | None = None, state: str = "X") -> None:
        super().__init__(message, task_id, state)
        self.task_id = task_id
        self._state = state

    @property
    def state(self) -> TaskState:
        """The state that the task is in."""
        from .states import named  # only programs with tasks need it

        return named(self._state)

    def __str__(self) -> str:
        return str(self.args[0])


class TaskNotFound(TaskError, LookupError):
    """The queue has no task of this id: it was never put, or is processed, killed or expired."""


class TaskExists(TaskError, ValueError):
    """The queue already has a task of this id."""


class TaskFailed(TaskError):
    """The task has no result: it was buried, killed or removed after its ``ttl``; or its handler
    raised an exception that this process cannot load.

    The message says which, and has the traceback of that exception.
    """


class ResultNotKept(TaskError, LookupError):
    """The result of the task is not kept: the task was put without ``result_ttl``, or this time is
    over."""


class ResultTimeout(PressureError, TimeoutError):
    """The task did not end before the timeout was over."""


class InboxLost(PressureError):
    """An inbox of tasks was not used for longer than its lease: its events are lost."""


class RemoteTraceback(PressureError):
    """The traceback of an error that was raised in another process, as text.

    It is the ``__cause__`` of that error.
    """

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class WrongState(TaskError, ValueError):
    """The operation is not possible for a task in this state."""


class NotTaken(WrongState):
    """The task is not taken: it was given back meanwhile, or never taken."""


class NotOwner(WrongState):
    """The task is taken by another process, or by a later take of this process."""


class LateTaskDoneWarning(PressureError, RuntimeWarning):
    """``task_done()`` came for an item that was given to another consumer; it did not count."""


class RejectedItemWarning(PressureError, RuntimeWarning):
    """An item or task of a ``get_many`` or ``take_many`` was set aside or buried, because it could
    not be decoded; the others were returned."""


class QueueMismatchWarning(PressureError, RuntimeWarning):
    """A queue of tasks exists with other options than were stated: the queue's own options hold."""


class ArgumentError(PressureError, ValueError):
    """An argument has a value that cannot be used."""


class ArgumentTypeError(PressureError, TypeError):
    """An argument has a type that cannot be used."""


class AddressError(ArgumentError):
    """The broker's address (``url``, ``host``, ``port``, ``db``) cannot be understood."""


class EncodingError(PressureError, TypeError, PicklingError):
    """The serializer cannot encode this object. Nothing was queued.

    ``__cause__`` is the error that the serializer raised. Also ``pickle.PicklingError``.
    """


class DecodingError(PressureError, ValueError):
    """The serializer cannot decode an item, the data of a task or its result.

    ``payload`` has the bytes. A get sets the item aside, a take buries the task, and a result stays
    as it is.
    """

    took_nothing = True

    def __init__(self, message: str, payload: bytes = b"") -> None:
        super().__init__(message, payload)
        self.payload = payload

    def __str__(self) -> str:
        return str(self.args[0])


class NotDurable(PressureError):
    """The operation is done, but was not confirmed as ``durability`` asks.

    After a put, the item is in the queue. ``confirmed`` is how many replicas confirmed it, or 0 for
    the disk.
    """

    def __init__(self, message: str, confirmed: int = 0) -> None:
        super().__init__(message, confirmed)
        self.confirmed = confirmed

    def __str__(self) -> str:
        return str(self.args[0])


class ItemTooLargeError(PressureError, ValueError):
    """The broker refuses an item of this size. Nothing was queued."""


class BrokerUnavailable(PressureError, ConnectionError):
    """No broker answered at the address for ``reconnect`` seconds, or the connection broke."""


class WrongServerError(BrokerUnavailable):
    """The server at the address cannot be used: it speaks another protocol, its certificate is not
    trusted, or this user may not open its socket. Trying again does not help."""


class EmbeddedServerError(BrokerUnavailable):
    """The embedded server could not be started."""


class BrokerError(PressureError):
    """The broker answered with an error: no memory, no permission, read only, …"""

    took_nothing = True


class BrokerFull(BrokerError):
    """The broker has no memory, or no space on its disk, for a put. Nothing was put or lost.

    Gets still work, and make space.
    """


class CallCancelledError(BrokerError):
    """The database ended the call: an operator cancelled it, or ``statement_timeout`` or
    ``lock_timeout`` was over; or another connection kept the file of SQLite locked for 30 seconds.
    Nothing was done, and another try may succeed."""


class WrongKeyTypeError(BrokerError, TypeError):
    """A key of the queue has a value of a type that no pressure client writes there."""


class EvictingServerError(BrokerError):
    """The server removes keys by itself when its memory is full, and so would lose items."""


class EvictionWarning(PressureError, RuntimeWarning):
    """The server removes keys by itself when its memory is full, and so may lose items.

    It is used because ``PRESSURE_ALLOW_EVICTION`` allows it.
    """


class UnsupportedServerError(BrokerError):
    """The server is older than the oldest version that this package supports."""
