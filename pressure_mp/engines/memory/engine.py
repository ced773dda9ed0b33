"""The memory engine: a table of queues."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass

from ..contract.address import SimpleAddress
from ..contract.brokers import ListQueues, QueuePage
from ..contract.hosts import QueueKey
from ..contract.session import DEFAULTS, Options
from ..requests.brokers import Broker
from .broker import MemoryBroker, find
from .clock import milliseconds
from .queue import NamedQueue
from .session import AsyncMemorySession, MemoryQueue, MemorySession


class MemoryEngine:
    """The queues of one ``memory://`` address in this process."""

    opens_at_once = False

    def __init__(self, address: SimpleAddress) -> None:
        self.address = address
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        #: The queues that exist or that handles refer to, by whether they have tasks, and name.
        self._queues: weakref.WeakValueDictionary[tuple[bool, str], NamedQueue] = (
            weakref.WeakValueDictionary()
        )
        self._existing: set[NamedQueue] = set()
        self._hosts: dict[str, set[QueueKey]] = {}
        self._broker = MemoryBroker(
            Broker(milliseconds, self._list, find, self._drop, set(), {}, {})
        )

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> MemoryBinding:
        return MemoryBinding(self._find(discipline == "tasks", name), discipline, options)

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> MemoryBinding:
        return MemoryBinding(self._find(discipline != "tasks", name), discipline, options)

    def _find(self, has_tasks: bool, name: str) -> NamedQueue:
        with self._lock:
            found = self._queues.get((has_tasks, name))
            if found is None:
                found = self._queues[has_tasks, name] = NamedQueue(has_tasks, self._existing)
            return found

    def broker(self, options: Options = DEFAULTS) -> MemoryBinding:
        return MemoryBinding(self._broker, "", options)

    def _list(self, request: ListQueues) -> QueuePage:
        found = [queue.summary(name) for (_, name), queue in list(self._queues.items())]
        return QueuePage([one for one in found if one is not None], "")

    def host(self, name: str, options: Options = DEFAULTS) -> MemoryBinding:
        host = self._broker.host(self._hosts.setdefault(name, set()))
        return MemoryBinding(host, "", options)

    def _drop(self, name: str, discipline: str) -> None:
        found = self._queues.pop((discipline == "tasks", name), None)
        if found is not None:
            self._existing.discard(found)

    def after_fork(self) -> None:
        # The parent's queues are not the child's: no process would get the items that it puts
        # there.
        self._begin()

    def close(self, kept: int = 0) -> None:
        """Do nothing: there are no connections."""


@dataclass(frozen=True)
class MemoryBinding:
    """One queue in memory, the notes of a host, or the broker."""

    queue: MemoryQueue
    discipline: str
    options: Options

    def is_beside(self, other: object) -> bool:
        return isinstance(other, MemoryBinding)

    def session(self) -> MemorySession:
        return MemorySession(self.queue, self.discipline, self.options.lease)

    def asession(self) -> AsyncMemorySession:
        return AsyncMemorySession(self.queue, self.discipline, self.options.lease)
