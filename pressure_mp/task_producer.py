"""What a producer does with a queue of tasks: put them, and wait until they are processed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from typing import overload

from . import states
from .exceptions import ArgumentError, ArgumentTypeError, PressureError
from .identity import ticket
from .operations.tasks import Raw
from .records import Record, check_tube, decode_id, encode_id, encode_priority
from .task import Data, Task
from .task_handle import TaskHandle, check_times


class TaskProducer(TaskHandle[Data]):
    """The part of :class:`pressure_mp.TaskQueue` that is for producers."""

    #: Makes ids, in a queue whose ids a callable makes.
    _make_id: Callable[[], int | str] | None

    @overload
    def put(
        self,
        data: Data,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        id: int | str | None = None,
        wait: None = None,
    ) -> int | str: ...

    @overload
    def put(
        self,
        data: Data,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        id: int | str | None = None,
        wait: float,
    ) -> tuple[Task[Data], bool]: ...

    def put(
        self,
        data: Data,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        id: int | str | None = None,
        wait: float | None = None,
    ) -> int | str | tuple[Task[Data], bool]:
        """Put a task; answers its id. When this returns, the broker has it.

        :param delay: seconds before it may be taken.
        :param ttl: seconds for which it is ready; not taken by then, it is dropped. Excludes
            ``delay``. Instead of the queue's own.
        :param priority: the lowest is taken first; an int or a float.
        :param tube: a part of the queue that :meth:`take` can ask for.
        :param id: the task's id, an int or a str, instead of one that the queue makes.
        :param wait: wait up to so many seconds until the task was processed, and answer what
            :meth:`wait` does.

        Blocks only for ``wait``. Raises TaskExists when there is a task of that id, ShutDown,
        EncodingError, AuthenticationError, ItemTooLargeError, QueueDoesNotExistError,
        HandleClosedError, ArgumentError, ArgumentTypeError; then nothing was put.
        BrokerUnavailable and NotDurable as for :meth:`pressure_mp.Queue.put`.
        """

        self._check_open()
        named = self._name_task(id)
        options = self._put_options(delay, ttl, priority, tube)
        payload = self._codec.encode_whole(data)
        if wait is None:
            args = self._operations.put_args([(named, payload)], self._settings.id, *options)
            reply = self._do("put", args)
            if len(reply) == 3 and not reply[1]:  # what happens mostly
                return decode_id(reply[2])
            return decode_id(self._run(self._operations.added(reply))[0])
        deadline = time.monotonic() + (self._seconds(wait) or 0.0)
        who = ticket()
        putting = self._operations.put([(named, payload)], self._settings.id, *options, who)
        (put,) = self._run(putting)
        delayed, _, urgency, where = options
        state = states.WAITING if delayed else states.READY
        moment = int(time.time() * 1000)  # it is not known better if the task is gone at once
        record = Record(state, urgency, 0, moment, moment, 0, 0, 0, where)
        known = Raw(put, record.pack(), payload)
        left = max(deadline - time.monotonic(), 0.0)
        return self._wait(put, who, left, known)

    def put_many(
        self,
        data: Iterable[Data],
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        ids: Iterable[int | str] | None = None,
    ) -> list[int | str]:
        """Put a task for each of ``data``, in order, up to 1,000 or 1 MB in each round trip.

        Answers their ids. The options are those of :meth:`put`, and hold for each; ``ids`` are as
        many as the tasks. Never waits. Raises what :meth:`put` does; then the error's ``accepted``
        says how many tasks were put, and ``rest`` has the data of the others.
        """

        self._check_open()
        given = list(data)
        try:
            names = [b""] * len(given) if ids is None else [encode_id(one) for one in ids]
            if ids is None:
                names = [self._name_task(None) for _ in given]
            if len(names) != len(given):
                raise ArgumentError(f"there are {len(names)} ids for {len(given)} tasks")
            options = self._put_options(delay, ttl, priority, tube)
            tasks = list(zip(names, self._codec.encode_many_whole(given), strict=True))
            put = self._run(self._operations.put(tasks, self._settings.id, *options))
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise
        return [decode_id(one) for one in put]

    def _name_task(self, id: int | str | None) -> bytes:
        """The id of a new task, empty if the broker makes it."""
        if id is not None:
            return encode_id(id)
        kind = self._settings.id
        if kind == "uuid":
            return uuid.uuid4().hex.encode()
        if kind == "required":
            raise ArgumentTypeError(
                f"queue {self._name!r} wants an id with each task: put(..., id=)"
            )
        if kind == "callable":
            if self._make_id is None:
                raise ArgumentTypeError(
                    f"the ids of queue {self._name!r} are made by a callable: attach(..., id=), or "
                    "put(..., id=)"
                )
            return encode_id(self._make_id())
        return b""

    def _put_options(
        self, delay: float | None, ttl: float | None, priority: float, tube: str | None
    ) -> tuple[int, int | None, bytes, str]:
        return *check_times(delay, ttl), encode_priority(priority), check_tube(tube)

    def qsize(self, tube: str | None = None) -> int:
        """How many tasks are ready to be taken, at one moment; in one tube, if one is given.

        How many are in other states is in :meth:`stats`. Never waits.
        """
        return self._run(self._operations.length(check_tube(tube)))

    def wait(self, id: int | str, timeout: float | None = None) -> tuple[Task[Data], bool]:
        """Wait until a task was processed: the task as it is then, and whether it was.

        It was not when the time is up, and when it was buried, killed or dropped. A task that is
        gone has the state ``TaskState.VOID``, and the data it had when this was called.

        Blocks without limit, or at most ``timeout`` seconds. Raises TaskNotFound when there is no
        such task at first, DecodingError, AuthenticationError, QueueDoesNotExistError,
        HandleClosedError, BrokerUnavailable.
        """

        self._check_open()
        named = encode_id(id)
        return self._wait(named, ticket(), self._seconds(timeout), None)

    def _wait(
        self, id: bytes, who: str, timeout: float | None, known: Raw | None
    ) -> tuple[Task[Data], bool]:
        with self._here:
            raw, processed = self._run(self._operations.wait(id, who, timeout, known))
        return self._task(raw), processed
