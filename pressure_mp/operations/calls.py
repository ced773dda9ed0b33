"""The operations of an executor on its calls, which are tasks."""

from __future__ import annotations

from ..effects import Operation
from ..engines.contract.task_administration import ChangeTask, ChangeTaskReply
from ..engines.contract.task_records import StoredTask
from ..engines.contract.tasks import GetTask, GetTaskReply
from ..states import READY, TAKEN, VOID, WAITING
from .tasks import TaskOperations


class CallOperations(TaskOperations):
    """The operations of a queue of calls: more than every queue of tasks has."""

    def is_taken(self, id: bytes) -> Operation[bool]:
        reply: GetTaskReply = yield GetTask(id)
        found = self._found(reply)
        return isinstance(found, StoredTask) and found.record.state == TAKEN

    def remove(self, id: bytes) -> Operation[str | None]:
        """Remove a call that has not ended. Returns the process that had it then, "" if none had it
        or it is not known; None if the call has ended."""
        while True:
            reply: GetTaskReply = yield GetTask(id)
            seen = self._found(reply)
            if not isinstance(seen, StoredTask) or seen.record.state not in READY + WAITING + TAKEN:
                return None
            # Only out of the state that was seen: a worker may give it back meanwhile.
            changed: ChangeTaskReply = yield ChangeTask(id, seen.record.state, VOID)
            if isinstance(changed, StoredTask):
                is_same = changed.record.deliveries == seen.record.deliveries
                return seen.record.owner if is_same else ""
