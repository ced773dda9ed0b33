"""The tables of the functions that do requests to queues."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..contract.brokers import QueueSummary
from ..contract.implementations import Implementations
from ..contract.requests import Request
from .life import Life, TaskPlace
from .line import Caller
from .state import QueueState, Slot

#: For queues of items that exist; otherwise the reply is MISSING.
for_items: Implementations[QueueState, [Caller]] = Implementations()

#: For queues of items, whether they exist or not.
for_slots: Implementations[Slot, [Caller]] = Implementations()

#: For queues of tasks that exist; otherwise the reply is MISSING.
for_tasks: Implementations[Life, [Caller]] = Implementations()

#: For queues of tasks, whether they exist or not.
for_places: Implementations[TaskPlace, [Caller]] = Implementations()


class Rules(Protocol):
    """The rules of a kind of queue: the modules :mod:`.queue` and :mod:`.task_queue`."""

    def do(self, place: Any, request: Request, caller: Caller, /) -> Any:
        """Do a request, and wake the callers that can be served because of it."""

    def leave(self, place: Any, caller: Caller, /) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""

    def summarize(self, place: Any, name: str, /) -> QueueSummary | None:
        """Make the summary with which the queue is listed; None when it does not exist."""


class Pair(NamedTuple):
    """The places of two queues; of one queue twice the same object."""

    source: Slot | TaskPlace
    target: Slot | TaskPlace


#: For two queues, of which no other request is done meanwhile.
for_pairs: Implementations[Pair, [Caller]] = Implementations()
