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
    NotOwner,
    NotTaken,
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
    TaskError,
    TaskExists,
    TaskNotFound,
    UnsupportedServerError,
    WrongKeyTypeError,
    WrongState,
)
from .operations.diagnosis import Diagnosis
from .operations.fifo import Stats
from .operations.task_stats import TaskStats, TubeStats
from .orders import FairQueue, LifoQueue, PriorityQueue, Snapshot
from .protocol import PressureQueue
from .queues import JoinableQueue, Queue, SimpleQueue
from .task import Task
from .tasks import TaskQueue

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
    "NotOwner",
    "NotTaken",
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
    "Task",
    "TaskDoneError",
    "TaskError",
    "TaskExists",
    "TaskNotFound",
    "TaskQueue",
    "TaskStats",
    "TubeStats",
    "UnsupportedServerError",
    "WrongKeyTypeError",
    "WrongState",
    "__version__",
]


def __getattr__(name: str) -> type[PressureError]:
    """AuthenticationError, without loading multiprocessing for all who import this."""
    if name != "AuthenticationError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return exceptions.AuthenticationError
