"""Store the result of a task at the broker, before the task is acknowledged."""

from __future__ import annotations

from ..effects import Operation
from ..encoding.large import Large
from ..engines.contract.task_results import NO_RESULT, Result
from .large import store
from .task_queue import TaskQueueOperations


class TaskResultStorage(TaskQueueOperations):
    """Stores results, for the operations that take and settle tasks."""

    def _store(self, said: bytes | Large) -> Operation[Result]:
        """Store a large result for a lease; return the bytes to send with the acknowledgement."""
        if not isinstance(said, Large):
            return told(said)
        reply = yield from store(said, None)
        self._found(reply)
        return Result(said.manifest, said.token)


def told(said: bytes | Large) -> Result:
    """Return the bytes to send with an acknowledgement, if the result is not stored apart."""
    return Result(said) if said and isinstance(said, bytes) else NO_RESULT
