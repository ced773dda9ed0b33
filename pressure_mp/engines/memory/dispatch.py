"""Which function does which request to a queue in memory."""

from __future__ import annotations

from ..contract.implementations import Implementations
from .life import Life
from .line import Caller
from .state import QueueState, Slot

#: Of queues of items. If there is no queue, the reply is MISSING.
for_items: Implementations[QueueState, [Caller]] = Implementations()

#: Of queues of items, whether there is one or not.
for_slots: Implementations[Slot, [Caller]] = Implementations()

#: Of queues of tasks. If there is no queue, the reply is MISSING.
for_tasks: Implementations[Life, [Caller]] = Implementations()
