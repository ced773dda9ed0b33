"""The operations that every part of a queue of tasks needs: to open it, decode tasks, and name a
refusal."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, NamedTuple

from ..caller_warnings import warn_caller
from ..effects import Operation
from ..encoding.as_queued import AsQueued
from ..encoding.results import ResultCodec
from ..encoding.task_values import decode_id
from ..engines.contract.queues import How, Mismatch
from ..engines.contract.replies import Outcome
from ..engines.contract.task_records import LOST_DATA, StoredTask, TaskRecord, TaskSettings
from ..engines.contract.tasks import (
    CloseTasks,
    CloseTasksReply,
    ConfigureTasks,
    ConfigureTasksReply,
    CountReady,
    CountReadyReply,
    DeleteTasks,
    DeleteTasksReply,
    ExistingTasks,
    LimitTasks,
    LimitTasksReply,
    OpenedTasks,
    OpenTasks,
    OpenTasksReply,
    OtherOwner,
    OtherState,
    PauseTasks,
    PauseTasksReply,
    Refusal,
)
from ..exceptions import (
    IncompleteQueueError,
    NotOwner,
    NotTaken,
    QueueAlreadyExistsError,
    QueueMismatchError,
    QueueMismatchWarning,
    ShutDown,
    TaskError,
    TaskNotFound,
    WrongState,
)
from ..exhaustive import assert_never
from ..states import TAKEN, VOID, word
from .queues import QueueOperations

TASKS = "tasks"

#: The operations that only the taker of a task may do.
_BY_TAKER = ("ack", "release", "bury", "touch", "progress", "snatch", "forward")


class DecodedTask(NamedTuple):
    """A task of a queue, with its data as an object."""

    id: bytes
    record: TaskRecord
    data: Any


#: For a queue that exists: its own options count.
_NO_MATTER = TaskSettings(0, 0, 0, False, 0, "", 0)


class TaskQueueOperations(QueueOperations):
    """Has more than every kind of queue has. Times are milliseconds, ids are bytes."""

    #: The queue's options. Given once the queue is open.
    settings: TaskSettings
    #: Whether the queue was opened, and the settings are known.
    is_open = False

    @cached_property
    def _results(self) -> ResultCodec[Any]:
        """Encodes and decodes the results of tasks."""
        return ResultCodec(self.codec)

    def __init__(self, name: str) -> None:
        super().__init__(name, TASKS)

    def open(
        self,
        how: How,
        settings: TaskSettings,
        user: str = "",
        stated: Collection[str] = (),
        mends: bool = False,
        strict: bool = True,
    ) -> Operation[TaskSettings]:
        """Create the queue, attach to it, or either; ``mends`` is as in :class:`OpenTasks`.

        A new queue gets ``settings``. Returns the queue's own settings. If they differ from
        ``settings`` in any that are ``stated``, raises QueueMismatchError; or warns, unless this is
        ``strict``. Raises QueueAlreadyExistsError, QueueDoesNotExistError.
        """
        reply: OpenTasksReply = yield OpenTasks(how, settings, user, mends)
        match reply:
            case ExistingTasks():
                raise QueueAlreadyExistsError(
                    f"queue {self.name!r} exists already, with {reply.settings}"
                )
            case Mismatch():
                raise self._mismatch(reply.what, reply.found, reply.wanted)
            case Outcome.MISSING:
                raise self._missing()
            case OpenedTasks():
                found = reply.settings
            case _:
                assert_never(reply)
        others = [name for name in stated if getattr(found, name) != getattr(settings, name)]
        if others:
            differs = (
                f"queue {self.name!r} exists with {found.tell(others)}, not {settings.tell(others)}"
            )
            if strict:
                raise QueueMismatchError(differs)
            warn_caller(f"{differs}: its own options hold", QueueMismatchWarning)
        return found

    def configure(self, change: Callable[[TaskSettings], TaskSettings]) -> Operation[TaskSettings]:
        """Replace the queue's options by what ``change`` makes of them; return them."""
        settings = yield from self.recorded()
        while True:
            wanted = change(settings)
            reply: ConfigureTasksReply = yield ConfigureTasks(wanted, settings)
            settings = self._found(reply).settings
            if settings == wanted:  # otherwise another client was faster
                return settings

    def recorded(self) -> Operation[TaskSettings]:
        """Return the queue's own options."""
        return (yield from self.open(How.ATTACH, _NO_MATTER))

    def length(self, tube: str) -> Operation[int]:
        """Return how many tasks are ready, of one tube or, if that is "", of all."""
        reply: CountReadyReply = yield CountReady(tube)
        return self._found(reply)

    def pause(self, tube: str, paused: bool) -> Operation[None]:
        """Pause the queue, or a tube unless that is "", for all processes; or resume it."""
        reply: PauseTasksReply = yield PauseTasks(tube, paused)
        self._found(reply)

    def limit(self, tube: str, number: int, per: int, each_key: bool = False) -> Operation[None]:
        """Limit the deliveries of the queue, or of a tube unless that is "", for all processes, to
        ``number`` in ``per`` milliseconds; with ``number`` 0 remove that limit. With ``each_key``
        limit those of each key by itself."""
        reply: LimitTasksReply = yield LimitTasks(tube, number, per, each_key)
        self._found(reply)

    def close(self) -> Operation[None]:
        """Shut the queue down for all processes, for good."""
        reply: CloseTasksReply = yield CloseTasks()
        self._found(reply)

    def delete(self) -> Operation[None]:
        reply: DeleteTasksReply = yield DeleteTasks()
        self._found(reply)

    def _decode(self, task: StoredTask) -> DecodedTask:
        """Decode a task. Raises DecodingError, AuthenticationError, IncompleteQueueError; a codec
        that only shows or moves tasks gets LOST_DATA instead of the last."""
        if task.data is LOST_DATA and not isinstance(self.codec, AsQueued):
            raise IncompleteQueueError(
                f"queue {self.name!r} has lost the data of task {decode_id(task.id)!r}: the server "
                "or another program removed them; drop the task, and put it again"
            )
        return DecodedTask(task.id, task.record, self.codec.decode(task.data))

    def _shut_down(self) -> ShutDown:
        return ShutDown(f"queue {self.name!r} is shut down")

    def _refusal(self, reply: Refusal, task: bytes, op: str) -> TaskError:
        """Return the error that says why a task stays as it is."""
        match reply:
            case Outcome.ABSENT:
                why = "it was never put, or it was processed, killed, or dropped"
                return self._error(TaskNotFound, task, VOID, why)
            case OtherOwner():
                why = f"{op} is for its owner, which is {reply.owner or 'another take'}"
                return self._error(NotOwner, task, TAKEN, why)
            case OtherState():
                if op not in _BY_TAKER:
                    why = f"{op} is not for that state"
                    return self._error(WrongState, task, reply.state, why)
                taken = "taken, or ready with a ttl" if op == "touch" else "taken"
                why = f"{op} is for a task that is {taken}"
                return self._error(NotTaken, task, reply.state, why)
            case _:
                assert_never(reply)

    def _error(self, kind: type[TaskError], task: bytes, state: str, why: str) -> TaskError:
        named = decode_id(task)
        text = f"task {named!r} of queue {self.name!r} is {word(state)} ({state}): {why}"
        return kind(text, named, state)
