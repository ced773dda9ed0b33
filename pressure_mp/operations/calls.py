"""The operations of an executor on its calls, which are tasks."""

from __future__ import annotations

from ..effects import Operation
from ..engines.contract.replies import Outcome
from ..engines.contract.task_administration import ChangeTask, ChangeTaskReply
from ..engines.contract.task_records import StoredTask
from ..engines.contract.tasks import GetTask, GetTaskReply, OtherState
from ..exhaustive import assert_never
from ..states import READY, TAKEN, VOID, WAITING
from .tasks import TaskOperations


class CallOperations(TaskOperations):
    """The operations of a queue of calls: more than every queue of tasks has."""

    def is_taken(self, id: bytes) -> Operation[bool]:
        reply: GetTaskReply = yield GetTask(id)
        found = self._found(reply)
        return isinstance(found, StoredTask) and found.record.state == TAKEN

    def withdraw(self, id: bytes) -> Operation[bool]:
        """Remove a call that no worker has taken; return whether that was so."""
        return isinstance((yield from self._void(id, READY + WAITING)), StoredTask)

    def remove(self, id: bytes) -> Operation[str | None]:
        """Remove a call that has not ended. Returns the process that had it then, "" if none had it
        or it is not known; None if the call has ended."""
        while True:
            reply: GetTaskReply = yield GetTask(id)
            seen = self._found(reply)
            if not isinstance(seen, StoredTask) or seen.record.state not in READY + WAITING + TAKEN:
                return None
            # Only out of the state that was seen: a worker may give it back meanwhile.
            found = yield from self._void(id, seen.record.state)
            if found is None:
                return None
            if isinstance(found, StoredTask):
                is_same = found.record.deliveries == seen.record.deliveries
                return seen.record.owner if is_same else ""

    def _void(self, id: bytes, states: str) -> Operation[StoredTask | OtherState | None]:
        """Remove a call that is in one of these states. Returns it as it was, or its other state;
        None if it is not there."""
        reply: ChangeTaskReply = yield ChangeTask(id, states, VOID)
        match reply:
            case StoredTask() | OtherState():
                return reply
            case Outcome.ABSENT:
                return None
            case Outcome.MISSING:
                raise self._missing()
            case Outcome.CHANGED:
                raise AssertionError("nothing was to be edited")
            case _:
                assert_never(reply)
