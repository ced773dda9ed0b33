"""``multiprocessing.Queue`` across machines, on Redis or Valkey."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .authentication import AuthenticationError
    from .engines.contract.brokers import Finding, QueueSummary
    from .engines.contract.queues import Stats
    from .exceptions import (
        AddressError,
        ArgumentError,
        ArgumentTypeError,
        BrokerError,
        BrokerFull,
        BrokerUnavailable,
        CallCancelledError,
        ConsumerInUseError,
        DecodingError,
        EmbeddedServerError,
        Empty,
        EncodingError,
        EvictingServerError,
        EvictionWarning,
        Full,
        HandleClosedError,
        InboxLost,
        IncompleteQueueError,
        ItemTooLargeError,
        LateTaskDoneWarning,
        NotDurable,
        NotOwner,
        NotSupportedError,
        NotTaken,
        PressureError,
        ProducerInUseError,
        QueueAlreadyExistsError,
        QueueClosedError,
        QueueDoesNotExistError,
        QueueFullError,
        QueueInUseError,
        QueueMismatchError,
        QueueMismatchWarning,
        RejectedItemWarning,
        RemoteTraceback,
        ResultNotKept,
        ResultTimeout,
        ShutDown,
        TaskDoneError,
        TaskError,
        TaskExists,
        TaskFailed,
        TaskNotFound,
        UnsupportedServerError,
        WrongKeyTypeError,
        WrongServerError,
        WrongState,
    )
    from .executor.errors import (
        CallAborted,
        CallDecodingError,
        CallDropped,
        ExecutorBroken,
        ExecutorShutDown,
        WorkerLost,
    )
    from .executor.executor import Executor
    from .executor.future import Future
    from .handles.backoff import ExponentialBackoff
    from .operations.diagnosis import Diagnosis
    from .operations.periodic import PeriodicTask
    from .operations.task_diagnosis import TaskDiagnosis
    from .operations.task_results import TaskEvent, TaskResult
    from .operations.task_stats import RateLimit, TaskStats, TubeStats
    from .operations.task_workers import TaskWorker
    from .states import TaskState
    from .sync.brokers import examine_broker, list_queues
    from .sync.ordered_queues import FairQueue, LifoQueue, PriorityQueue, Snapshot
    from .sync.pressure_queue import PressureQueue
    from .sync.queues import JoinableQueue, Queue, SimpleQueue
    from .sync.tasks.inbox import TaskInbox
    from .sync.tasks.task import Task
    from .sync.tasks.task_queue import TaskQueue

__all__ = [
    "AddressError",
    "ArgumentError",
    "ArgumentTypeError",
    "AuthenticationError",
    "BrokerError",
    "BrokerFull",
    "BrokerUnavailable",
    "CallAborted",
    "CallCancelledError",
    "CallDecodingError",
    "CallDropped",
    "ConsumerInUseError",
    "DecodingError",
    "Diagnosis",
    "EmbeddedServerError",
    "Empty",
    "EncodingError",
    "EvictingServerError",
    "EvictionWarning",
    "Executor",
    "ExecutorBroken",
    "ExecutorShutDown",
    "ExponentialBackoff",
    "FairQueue",
    "Finding",
    "Full",
    "Future",
    "HandleClosedError",
    "InboxLost",
    "IncompleteQueueError",
    "ItemTooLargeError",
    "JoinableQueue",
    "LateTaskDoneWarning",
    "LifoQueue",
    "NotDurable",
    "NotOwner",
    "NotSupportedError",
    "NotTaken",
    "PeriodicTask",
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
    "QueueMismatchWarning",
    "QueueSummary",
    "RateLimit",
    "RejectedItemWarning",
    "RemoteTraceback",
    "ResultNotKept",
    "ResultTimeout",
    "ShutDown",
    "SimpleQueue",
    "Snapshot",
    "Stats",
    "Task",
    "TaskDiagnosis",
    "TaskDoneError",
    "TaskError",
    "TaskEvent",
    "TaskExists",
    "TaskFailed",
    "TaskInbox",
    "TaskNotFound",
    "TaskQueue",
    "TaskResult",
    "TaskState",
    "TaskStats",
    "TaskWorker",
    "TubeStats",
    "UnsupportedServerError",
    "WorkerLost",
    "WrongKeyTypeError",
    "WrongServerError",
    "WrongState",
    "__version__",
    "examine_broker",
    "list_queues",
]

#: Where the public names are that are no errors.
_MODULES = {
    "authentication": ("AuthenticationError",),
    "handles.backoff": ("ExponentialBackoff",),
    "operations.diagnosis": ("Diagnosis",),
    "engines.contract.brokers": ("Finding", "QueueSummary"),
    "engines.contract.queues": ("Stats",),
    "operations.task_results": ("TaskEvent", "TaskResult"),
    "sync.brokers": ("examine_broker", "list_queues"),
    "operations.task_diagnosis": ("TaskDiagnosis",),
    "executor.errors": (
        "CallAborted",
        "CallDecodingError",
        "CallDropped",
        "ExecutorBroken",
        "ExecutorShutDown",
        "WorkerLost",
    ),
    "executor.executor": ("Executor",),
    "executor.future": ("Future",),
    "operations.periodic": ("PeriodicTask",),
    "operations.task_stats": ("RateLimit", "TaskStats", "TubeStats"),
    "operations.task_workers": ("TaskWorker",),
    "sync.ordered_queues": ("FairQueue", "LifoQueue", "PriorityQueue", "Snapshot"),
    "sync.pressure_queue": ("PressureQueue",),
    "sync.queues": ("JoinableQueue", "Queue", "SimpleQueue"),
    "states": ("TaskState",),
    "sync.tasks.inbox": ("TaskInbox",),
    "sync.tasks.task": ("Task",),
    "sync.tasks.task_queue": ("TaskQueue",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import the module of a public name, when the name is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_MODULE_OF.get(name, 'exceptions')}", __name__)
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
