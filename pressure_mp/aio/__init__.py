"""The queues of the package for asyncio: the same names, with ``await``.

A queue can have handles for asyncio and for threads at the same time, also in one program. Every
method that asks the broker is a coroutine, also where asyncio has a plain method or the package has
a property: ``await q.qsize()``. Errors are asyncio's own too: ``Empty`` is raised as an
``asyncio.QueueEmpty``.
"""

from typing import TYPE_CHECKING, Any

from .brokers import examine_broker, list_queues
from .errors import QueueEmpty, QueueFull, QueueShutDown
from .joinable_queue import JoinableQueue
from .ordered_queues import FairQueue, LifoQueue, PriorityQueue
from .pressure_queue import PressureQueue
from .queues import Queue
from .tasks.inbox import TaskInbox
from .tasks.task import Task
from .tasks.task_queue import TaskQueue

if TYPE_CHECKING:
    from .executor import Executor

__all__ = [
    "Executor",
    "FairQueue",
    "JoinableQueue",
    "LifoQueue",
    "PressureQueue",
    "PriorityQueue",
    "Queue",
    "QueueEmpty",
    "QueueFull",
    "QueueShutDown",
    "Task",
    "TaskInbox",
    "TaskQueue",
    "examine_broker",
    "list_queues",
]


def __getattr__(name: str) -> Any:
    """Import the executor when it is first used: it loads multiprocessing."""
    if name != "Executor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .executor import Executor

    return Executor
