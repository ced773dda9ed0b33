"""``multiprocessing.Queue`` across machines, on Redis or Valkey."""

from typing import TYPE_CHECKING

from . import exceptions
from ._version import __version__
from .exceptions import (
    AddressError,
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    BrokerUnavailable,
    ConsumerInUseError,
    DecodingError,
    EmbeddedServerError,
    Empty,
    EncodingError,
    Full,
    HandleClosedError,
    ItemTooLargeError,
    LateTaskDoneWarning,
    NotDurable,
    PressureError,
    ProducerInUseError,
    QueueAlreadyExistsError,
    QueueClosedError,
    QueueDoesNotExistError,
    QueueFullError,
    QueueInUseError,
    QueueMismatchError,
    RejectedItemWarning,
    ShutDown,
    TaskDoneError,
    UnsupportedServerError,
    WrongKeyTypeError,
)
from .operations.diagnosis import Diagnosis
from .operations.fifo import Stats
from .orders import FairQueue, LifoQueue, PriorityQueue, Snapshot
from .protocol import PressureQueue
from .queues import JoinableQueue, Queue, SimpleQueue

if TYPE_CHECKING:
    from .authentication import AuthenticationError

__all__ = [
    "AddressError",
    "ArgumentError",
    "ArgumentTypeError",
    "AuthenticationError",
    "BrokerError",
    "BrokerUnavailable",
    "ConsumerInUseError",
    "DecodingError",
    "Diagnosis",
    "EmbeddedServerError",
    "Empty",
    "EncodingError",
    "FairQueue",
    "Full",
    "HandleClosedError",
    "ItemTooLargeError",
    "JoinableQueue",
    "LateTaskDoneWarning",
    "LifoQueue",
    "NotDurable",
    "PressureError",
    "PressureQueue",
    "PriorityQueue",
    "ProducerInUseError",
    "Queue",
    "QueueAlreadyExistsError",
    "QueueClosedError",
    "QueueDoesNotExistError",
    "QueueFullError",
    "QueueInUseError",
    "QueueMismatchError",
    "RejectedItemWarning",
    "ShutDown",
    "SimpleQueue",
    "Snapshot",
    "Stats",
    "TaskDoneError",
    "UnsupportedServerError",
    "WrongKeyTypeError",
    "__version__",
]


def __getattr__(name: str) -> type[PressureError]:
    """AuthenticationError, without loading multiprocessing for all who import this."""
    if name != "AuthenticationError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return exceptions.AuthenticationError
