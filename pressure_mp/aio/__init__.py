"""The queues of the package for asyncio: the same names, with ``await``.

Handles to one queue may be of either kind, in one program too. Whatever asks the broker is a
coroutine, also what is a property, or is not awaited, elsewhere: ``await q.qsize()``. Errors are
asyncio's own too: ``Empty`` is raised as an ``asyncio.QueueEmpty``.
"""

from .brokers import examine_broker, list_queues
from .errors import QueueEmpty, QueueFull, QueueShutDown
from .ordered_queues import FairQueue, LifoQueue, PriorityQueue
from .pressure_queue import PressureQueue
from .queues import JoinableQueue, Queue
from .tasks.inbox import TaskInbox
from .tasks.task import Task
from .tasks.task_queue import TaskQueue

__all__ = [
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
