"""What takers say of what came of a task: its result is stored before the task is acknowledged."""

from __future__ import annotations

from ..effects import Operation
from ..encoding.large import Large
from ..engines.contract.replies import Outcome
from ..engines.contract.task_results import NO_RESULT, Result
from .large import store
from .task_queue import TaskQueueOperations


class TaskTelling(TaskQueueOperations):
    """The part of those that settle tasks which has to do with results."""

    def _store(self, said: bytes | Large) -> Operation[Result]:
        """Have the content of a large result at the broker, for a lease; returns what is to be
        told with the task."""
        if not isinstance(said, Large):
            return told(said)
        reply = yield from store(said, None)
        if reply is Outcome.MISSING:
            raise self._missing()
        return Result(said.manifest, said.token)


def told(said: bytes | Large) -> Result:
    """What is to be told with a task, as long as nothing is stored apart."""
    return Result(said) if said and isinstance(said, bytes) else NO_RESULT
