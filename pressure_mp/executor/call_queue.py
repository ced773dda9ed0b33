"""The queue of tasks that has an executor's calls, and one client of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..encoding.task_values import check_key, check_priority, check_times, check_tube, encode_id
from ..exceptions import QueueMismatchError
from ..hidden import hide_in
from ..operations.calls import CallOperations
from ..operations.task_producing import PutOptions
from ..states import READY, WAITING
from ..sync.tasks.taker import all_usable, first
from ..sync.tasks.task import Task
from ..sync.tasks.task_queue import TaskQueue

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..handles.options import RecordedOptions

#: Every executor's queue is made with these; other queues of tasks rarely are.
RECORDED: RecordedOptions = {"ttr": None, "id": "required"}


class Options(NamedTuple):
    """The options of a call, as for :meth:`pressure_mp.TaskQueue.put`."""

    priority: float = 0
    delay: float | None = None
    ttl: float | None = None
    tube: str | None = None
    key: str | None = None

    def checked(self) -> Options:
        """Return the options, checked. Raises ArgumentError, ArgumentTypeError."""
        check_times(self.delay, self.ttl)
        check_priority(self.priority)
        check_tube(self.tube)
        check_key(self.key)
        return self


class CallQueue(TaskQueue[bytes]):
    """A handle to the calls of an executor. It can be pickled, as any handle."""

    _make_operations = CallOperations

    @classmethod
    def attach(cls, name: str, **options: Any) -> Self:
        """Attach as TaskQueue does; QueueMismatchError also says that the queue is of no
        executor."""
        try:
            return super().attach(name, strict=True, **RECORDED, **hide_in(options))
        except QueueMismatchError as error:
            raise QueueMismatchError(f"{error}; no executor made it") from error

    @property
    def _operations(self) -> CallOperations:
        assert isinstance(self._at.operations, CallOperations)
        return self._at.operations

    @property
    def is_persistent(self) -> bool:
        """Whether other processes can reach the calls."""
        return self._at.address.capabilities.persistent

    @property
    def may_have_several(self) -> bool:
        """Tell whether it may help to ask for several calls, by the options that this process
        knows. By the queue's own, the broker gives one at a time where others that have not begun
        would take the turns of calls of their key, or where a call is lost with its first worker,
        or is given to only one more."""
        return not self._at.settings.are_alone

    def take_one(self, done: Task[bytes] | None, tube: str | None, worker: int) -> Task[bytes]:
        """Take the next call, after acknowledging ``done``, as the worker of that number; wait for
        one. Raises what a take does."""
        acks = () if done is None else (done,)
        how = None, None, tube, "release", None, acks
        return self._take(first, 1, *how, worker=worker)

    def take_several(self, most: int, tube: str | None, worker: int) -> list[Task[bytes]]:
        """Take the calls that are ready, ``most`` at most; a call that was delivered before comes
        alone. Raises what a take without waiting does."""
        how = 0.0, None, tube, "release", None
        return self._take(all_usable, most, *how, retries_alone=True, worker=worker)

    def release_unbegun(self, call: Task[bytes]) -> None:
        """Give back a call that has not begun: the take counts as no delivery. Raises what a
        release does."""
        self._release_unbegun(call)

    def put_calls(self, ids: Sequence[str], payloads: Sequence[bytes], options: PutOptions) -> None:
        """Put calls. Raises what a put does."""
        self._at.check_open()
        if len(ids) == 1:  # this needs fewer steps
            self._run(self._operations.put(payloads[0], ids[0], options))
        else:
            self._run(self._operations.put_many(payloads, ids, options))

    def withdraw(self, id: str) -> bool:
        """Remove a call that no worker has taken; return whether that was so."""
        return self._run(self._operations.remove_from(encode_id(id), READY + WAITING))

    def is_taken(self, id: str) -> bool:
        """Tell whether a worker has a call now."""
        return self._run(self._operations.is_taken(encode_id(id)))

    def remove(self, id: str) -> str | None:
        """Remove a call that has not ended; return the process that had it, "" for none, None if it
        has ended."""
        return self._run(self._operations.remove(encode_id(id)))
