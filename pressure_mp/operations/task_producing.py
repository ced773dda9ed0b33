"""The operations of producers of tasks: to put them, and to wait until they are processed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import Any

from .. import events, states
from ..deadlines import deadline, seconds_left, shown
from ..effects import MORE, AnyOperation, Ask, Operation, Until, Wait
from ..encoding.task_values import decode_id, encode_id, local_milliseconds, make_uuid
from ..engines.contract.replies import NoSpace, Outcome, Unprocessed
from ..engines.contract.task_records import Record, StoredTask
from ..engines.contract.tasks import (
    AwaitTask,
    AwaitTaskReply,
    FinishedTask,
    KeyTaken,
    PutTasks,
    PutTasksReply,
    TaskThere,
    UniqueKeys,
)
from ..exceptions import ArgumentError, ArgumentTypeError, Full, PressureError, TaskExists
from ..exhaustive import assert_never
from .batches import next_batch
from .phrases import are
from .task_queue import DecodedTask, TaskQueueOperations
from .waiting import served, served_after

NewTask = tuple[bytes, bytes]


#: What all tasks of one put have in common: delay, ttl, priority, tube, result_ttl, inbox and key,
#: as in :class:`PutTasks`.
PutOptions = tuple[int, "int | None", float, str, int, str, str]


class TaskProducing(TaskQueueOperations):
    """The part of :class:`~.tasks.TaskOperations` that is for producers."""

    #: Makes ids, in a queue whose ids a callable makes.
    make_id: Callable[[], int | str] | None = None

    def put(
        self,
        data: Any,
        id: int | str | None,
        options: PutOptions,
        unique: UniqueKeys | None = None,
        block: bool = True,
        timeout: float | None = None,
    ) -> AnyOperation[int | str]:
        """Put a task; return its id. With ``block`` wait for space, without limit or for
        ``timeout`` seconds. Raises what :meth:`pressure_mp.TaskQueue.put` does."""
        if events.listeners or not self.is_open:  # the queue is opened before it is asked
            return _only_the_id(self._put_one(data, id, options, unique, block, timeout))
        task = self._name(id), self.codec.encode_whole(data)
        request = PutTasks([task], self.settings.id, *options, unique)
        waits = block and (timeout is None or timeout > 0)
        if not waits:
            request = request._replace(waits=False)
        end = deadline(waits, timeout)
        return Ask(request, end, _only_id, self._put_on, (data, block, timeout))

    def _put_on(self, ask: Ask[int | str], reply: PutTasksReply) -> Operation[int | str]:
        reply = yield from served_after(reply, ask.request, ask.end)
        return decode_id(self._made(reply, *ask.how))

    def _put_one(
        self,
        data: Any,
        id: int | str | None,
        options: PutOptions,
        unique: UniqueKeys | None,
        block: bool,
        timeout: float | None,
        awaited: bool = False,
    ) -> Operation[tuple[bytes, bytes]]:
        """Put a task, and tell listeners; return its id, and its data as they are queued."""
        with events.sending(self.destination, 1) as headers:
            task = self._name(id), self.codec.encode_whole(data, headers)
            request = PutTasks([task], self.settings.id, *options, unique, True, awaited)
            reply: PutTasksReply = yield from served(request, block, timeout)
            return self._made(reply, data, block, timeout), task[1]

    def _made(self, reply: PutTasksReply, data: Any, block: bool, timeout: float | None) -> bytes:
        """Return the id of the task that was put."""
        try:
            return self._ids(reply, timeout if block else None)[0]
        except Full as error:
            error.item = data
            raise

    def put_many(
        self,
        data: Sequence[Any],
        ids: Iterable[int | str] | None,
        options: PutOptions,
        unique: UniqueKeys | None = None,
        block: bool = True,
        timeout: float | None = None,
    ) -> Operation[list[int | str]]:
        """Put a task for each of ``data``, in batches, as there is space; return their ids. An
        error's ``accepted`` says how many were put, and its ``rest`` has the data of the others."""
        put: list[bytes] = []
        end = deadline(block, timeout)
        try:
            with events.sending(self.destination, len(data)) as headers:
                names = self._names(len(data), ids)
                payloads = self.codec.encode_many_whole(data, headers)
                tasks = list(zip(names, payloads, strict=True))
                while len(put) < len(tasks):
                    batch = next_batch(tasks, len(put), _size)
                    limit = seconds_left(end)
                    if unique is None:
                        request = PutTasks(batch, self.settings.id, *options)
                        reply: PutTasksReply = yield from served(request, block, limit)
                        put += self._ids(reply, timeout if block else None)
                    else:
                        left = unique._replace(keys=unique.keys[len(put) :])
                        put += yield from self._put_unique(batch, options, left, block, limit)
        except PressureError as error:
            error.accepted = len(put)
            error.rest = list(data[len(put) :])
            raise
        return [decode_id(one) for one in put]

    def _put_unique(
        self,
        batch: Sequence[NewTask],
        options: PutOptions,
        unique: UniqueKeys,
        block: bool,
        timeout: float | None,
    ) -> Operation[list[bytes]]:
        """Put the first tasks of a batch, at least one; return their ids. A task whose key an
        earlier one has meets that one, as if it was put by itself."""
        new: list[NewTask] = []
        firsts: dict[str, int] = {}
        places: list[int] = []
        keys: list[str] = []
        for task, key in zip(batch, unique.keys):  # noqa: B905
            at = firsts.setdefault(key, len(new)) if key else len(new)
            if at == len(new):
                new.append(task)
                keys.append(key)
            elif unique.on_conflict == "error":
                break  # the broker refuses the next batch
            elif unique.on_conflict == "replace":
                new[at] = new[at][0], task[1]
            places.append(at)
        unique = unique._replace(keys=keys)
        request = PutTasks(new, self.settings.id, *options, unique)
        reply: PutTasksReply = yield from served(request, block, timeout)
        ids = self._ids(reply, timeout if block else None)
        return [ids[at] for at in takewhile(lambda at: at < len(ids), places)]

    def put_and_wait(
        self,
        data: Any,
        id: int | str | None,
        options: PutOptions,
        wait: float | None,
        here: AbstractContextManager[None],
        block: bool = True,
        timeout: float | None = None,
    ) -> Operation[tuple[DecodedTask, bool]]:
        """Put a task, and wait as :meth:`wait` does; the time counts from now on, also while there
        is no space."""
        end = deadline(True, wait)
        limit = min((given for given in (wait, timeout) if given is not None), default=None)
        made, payload = yield from self._put_one(data, id, options, None, block, limit, True)
        delay, _, priority, tube, _, _, key = options
        state = states.WAITING if delay else states.READY
        moment = local_milliseconds()  # the best guess if the task is gone at once
        record = Record(state, priority, moment, moment, 0, tube=tube, key=key)
        known = StoredTask(made, record, payload)
        return (yield from self._await(made, end, known, here))

    def wait(
        self, id: bytes, timeout: float | None, here: AbstractContextManager[None]
    ) -> Operation[tuple[DecodedTask, bool]]:
        """Wait until a task was processed; return it as it was last, and whether it was processed.
        ``here`` is a context to be in meanwhile, in which this process returns the tasks of ended
        processes. Raises TaskNotFound."""
        return (yield from self._await(id, deadline(True, timeout), None, here))

    def _await(
        self,
        id: bytes,
        end: float | None,
        known: StoredTask | None,
        here: AbstractContextManager[None],
    ) -> Operation[tuple[DecodedTask, bool]]:
        waits = True
        while True:
            request = AwaitTask(id, whole=known is None, waits=waits)
            reply: AwaitTaskReply = yield Until(request, end)
            match reply:
                case FinishedTask():
                    last = reply.task or _gone(known, id)
                    return self._decode(last), reply.outcome == "processed"
                case Outcome.ABSENT:
                    if known is None:
                        raise self._refusal(reply, id, "wait")
                    return self._decode(_gone(known, id)), False
                case Outcome.MISSING:
                    raise self._missing()
                case Unprocessed():
                    known = known._replace(record=reply.task.record) if known else reply.task
                    left = seconds_left(end)
                    if not waits:
                        return self._decode(known), False
                    waits = left is None or left > 0
                    if waits:
                        with here:
                            yield Wait(reply, left)
                case _:
                    assert_never(reply)

    def _ids(self, reply: PutTasksReply, timeout: float | None = None) -> list[bytes]:
        match reply:
            case list():
                return reply
            case NoSpace():
                still = f", still after {shown(timeout)}" if timeout else ""
                error = Full(
                    f"queue {self.name!r} is full: {are(reply.length, 'task')} ready or "
                    f"waiting{still}"
                )
                error.current_size = reply.length
                raise error
            case TaskThere():
                raise self._error(TaskExists, reply.id, reply.state, "there is one already")
            case KeyTaken():
                raise self._error(TaskExists, reply.id, reply.state, "it has this unique key")
            case Outcome.CLOSED:
                raise self._shut_down()
            case Outcome.MISSING:
                raise self._missing()
            case _:
                assert_never(reply)

    def _names(self, number: int, ids: Iterable[int | str] | None) -> list[bytes]:
        if ids is None:
            return [self._name(None) for _ in range(number)]
        names = [encode_id(one) for one in ids]
        if len(names) != number:
            raise ArgumentError(f"there are {len(names)} ids for {number} tasks")
        return names

    def _name(self, id: int | str | None) -> bytes:
        """Return the id of a new task, empty if the broker makes it."""
        if id is not None:
            return encode_id(id)
        kind = self.settings.id
        if kind == "uuid":
            return make_uuid()
        if kind == "required":
            raise ArgumentTypeError(
                f"queue {self.name!r} needs an id with each task: put(..., id=)"
            )
        if kind == "callable":
            if self.make_id is None:
                raise ArgumentTypeError(
                    f"the ids of queue {self.name!r} are made by a callable: attach(..., id=), or "
                    "put(..., id=)"
                )
            return encode_id(self.make_id())
        return b""


def _only_the_id(putting: Operation[tuple[bytes, bytes]]) -> Operation[int | str]:
    made, _ = yield from putting
    return decode_id(made)


def _only_id(reply: PutTasksReply) -> Any:
    return decode_id(reply[0]) if type(reply) is list else MORE


def _gone(known: StoredTask | None, id: bytes) -> StoredTask:
    """Return a task that is gone, as it was when it was last seen."""
    assert known is not None
    return known._replace(record=known.record.into(states.VOID))


def _size(task: NewTask) -> int:
    return len(task[1])
