"""The tables of the functions that do requests to queues."""

from __future__ import annotations

from typing import NamedTuple

from ..contract.implementations import Implementations
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


class Pair(NamedTuple):
    """The places of two queues; of one queue twice the same object."""

    source: Slot | TaskPlace
    target: Slot | TaskPlace


#: For two queues, of which no other request is done meanwhile.
for_pairs: Implementations[Pair, [Caller]] = Implementations()
