"""A queue whose tasks have a life: ready, waiting, taken, buried, zombie, done."""

from __future__ import annotations

import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from . import serializers, signing, states, task_settings
from .codec import Codec
from .effects import Operation
from .engines import registry
from .exceptions import (
    ArgumentError,
    ArgumentTypeError,
    PressureError,
    RejectedItemWarning,
    TaskError,
)
from .handles import DEFAULT_LEASE, DEFAULT_RECONNECT, check_max_items
from .identity import ticket
from .operations.tasks import NO_EDIT, Edit, Raw
from .processes import incarnation
from .records import Record, check_tube, decode_id, encode_id, encode_priority, unpack
from .serializers import Serializer
from .signing import AuthKey
from .task import UNCHANGED, Backoff, Task, check_on_error
from .task_administration import TaskAdministration, check_times
from .task_settings import IdKind, TaskSettings, milliseconds

Self = TypeVar("Self", bound="TaskQueue")

#: Makes the operation for a task's id, the number of its take, a change of its data, and whether
#: the data is to be answered.
MakeOperation = Callable[[bytes, int, Edit, bool], Operation[Raw]]


class TaskQueue(TaskAdministration):
    """A queue of tasks that producers, workers and administrators on any machine share.

    A task is *ready* (R) or, for the time of a delay, *waiting* (W). A worker *takes* it (T), for
    ``ttr`` seconds at most, and then *acknowledges* it, which removes it, or keeps it as *done*
    (D), or for some time as a *zombie* (Z); or *releases* it, at once or with a delay; or *buries*
    it (B), until an administrator kicks it out again. A task whose worker dies is ready again:
    within a second when another process of the same host waits in :meth:`take`, on other hosts
    after ``lease``. Only who has taken a task may acknowledge, release, bury or touch it, and only
    while it has it.

    All times are the broker's; nothing needs to run for a task to become due. The lowest priority
    is taken first, and of these the one that was put first, also when it was released meanwhile.

    A handle can be pickled: pass it to a process, or through another queue.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        ttr: float | None = 60.0,
        ttl: float | None = None,
        zombie: float | None = None,
        keep: bool = False,
        max_deliveries: int | None = None,
        id: IdKind = "time64",
        url: str | None = None,
        host: str | None = None,
        port: int | None = None,
        db: int | None = None,
        prefix: str | None = None,
        serializer: str | Serializer = "pickle",
        authkey: AuthKey | None = None,
        lease: float = DEFAULT_LEASE,
        reconnect: float = DEFAULT_RECONNECT,
        durability: str | None = None,
        _how: str = "open",
    ) -> None:
        """Attach to the queue called ``name``, or create it when it is not there.

        The first six are recorded with the queue: to attach with others is an error, but for
        :meth:`attach`, which takes them as they are. Times are in seconds.

        :param name: without one, an anonymous queue, which lives until the last process that uses
            it has ended.
        :param ttr: time to release: a task that was taken for so long is ready again. None is no
            limit.
        :param ttl: time to live: a task that was ready for so long, and was not taken, is dropped.
            It begins anew whenever the task becomes ready. None is no limit.
        :param zombie: a task that was acknowledged stays for so long as a zombie.
        :param keep: a task that was acknowledged stays as done. Excludes ``zombie``.
        :param max_deliveries: a task that was taken so often is buried where it would become ready
            again, with the text of the last error. None is no limit.
        :param id: where ids come from: ``"time64"``, the broker's time in microseconds;
            ``"auto_increment"``, 1 and so on; ``"uuid"``; ``"required"``: each put gives one; or a
            callable without arguments that answers an int or a str, which must be one that can be
            pickled where the handle is.
        :param lease: seconds after which others may take over what a process has taken that stopped
            answering and is not on their host.

        The others are those of :class:`pressure_mp.Queue`. Blocks for the connection, at most 5
        seconds. Raises BrokerUnavailable, QueueMismatchError (the queue has other options, or is of
        another kind), AddressError, ArgumentError, ArgumentTypeError.
        """
        settings = task_settings.make(ttr, ttl, zombie, keep, max_deliveries, id)
        chosen = serializers.find(serializer)
        keys = signing.gather(authkey, name is None, os.environ)
        self._make_id = id if callable(id) else None
        super().__init__(
            name,
            url=url,
            host=host,
            port=port,
            db=db,
            prefix=prefix,
            lease=lease,
            reconnect=reconnect,
            durability=durability,
        )
        self._codec = Codec(chosen, keys, self.prefix, self._name, self._anonymous)
        wanted = None if _how == "attach" else settings
        self._settings = self._open(lambda user: self._operations.open(_how, wanted, user))

    @classmethod
    def create(cls: type[Self], name: str, **options: Any) -> Self:
        """Create the queue called ``name``; the rest is as for the class itself.

        Raises QueueAlreadyExistsError.
        """
        return cls(name, _how="create", **options)

    @classmethod
    def attach(cls: type[Self], name: str, **options: Any) -> Self:
        """A handle to the queue called ``name``, with whatever options the queue has.

        ``options`` are those that say where and how to connect, and the ``id`` callable, if the
        queue has one. Raises QueueDoesNotExistError.
        """
        recorded = {"ttr", "ttl", "zombie", "keep", "max_deliveries"} & options.keys()
        if recorded:
            raise ArgumentTypeError(
                f"attach() takes the queue's own {', '.join(sorted(recorded))}: leave it out"
            )
        return cls(name, _how="attach", **options)

    @property
    def settings(self) -> TaskSettings:
        """The options that are recorded with the queue; times in milliseconds, 0 for none."""
        return self._settings

    @overload
    def put(
        self,
        data: Any,
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
        data: Any,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        id: int | str | None = None,
        wait: float,
    ) -> tuple[Task, bool]: ...

    def put(
        self,
        data: Any,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        id: int | str | None = None,
        wait: float | None = None,
    ) -> int | str | tuple[Task, bool]:
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
        payload = self._codec.encode(data)
        if wait is None:
            tasks = [(named, payload)]
            return decode_id(self._run(self._operations.put(tasks, self._settings.id, *options))[0])
        deadline = time.monotonic() + check_timeout(wait)
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
        data: Iterable[Any],
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
            tasks = list(zip(names, self._codec.encode_many(given), strict=True))
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

    def take(
        self,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> Task:
        """Take the next task; of one tube, if one is given.

        Blocks until there is one: without limit, or at most ``timeout`` seconds; with 0 not at all.
        Those who wait are served in the order in which they came.

        :param ttr: seconds until the task is ready again if nothing is said of it; instead of the
            queue's own.
        :param on_error: what becomes of the task when a ``with`` block over it raises.
        :param backoff: after that, seconds until it may be taken again; or a callable that is given
            how often the task was delivered, and answers them.

        Raises Empty when the time is up, ShutDown when the queue is shut down and no task is ready,
        DecodingError for a task that cannot be decoded and AuthenticationError for one that is not
        signed with a key of this handle (they are buried), QueueDoesNotExistError,
        HandleClosedError, ArgumentError, ArgumentTypeError, BrokerUnavailable.
        """

        (task,) = self._take(1, timeout, ttr, tube, on_error, backoff)
        return task

    def take_many(
        self,
        max_tasks: int,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> list[Task]:
        """Take the next tasks: 1 to ``max_tasks``, and at most 1,000 or about 1 MB.

        Blocks as :meth:`take` does until there is one; the others are those that are ready too.
        Raises what :meth:`take` does. Those that cannot be decoded are buried: with a
        RejectedItemWarning when others are returned, else with the error of the first.
        """

        check_max_items(max_tasks)
        return self._take(max_tasks, timeout, ttr, tube, on_error, backoff)

    def _take(
        self,
        limit: int,
        timeout: float | None,
        ttr: float | None,
        tube: str | None,
        on_error: str,
        backoff: Backoff | None,
    ) -> list[Task]:
        self._check_open()
        check_on_error(on_error, backoff)
        self._codec.prepare()  # nothing is taken that this handle has no key for
        own_ttr = None if ttr is None else milliseconds("ttr", ttr, least=0.001)
        longest = self._settings.ttr if own_ttr is None else own_ttr
        taken = self._here.take_tasks(
            self._run, limit, check_tube(tube), own_ttr, longest, timeout != 0, timeout or None
        )
        tasks: list[Task] = []
        problem: PressureError | None = None
        for raw in taken:
            try:
                task = self._task(raw)
            except PressureError as error:
                problem = problem or error
                self._bury_raw(raw, error)
            else:
                task.on_error, task.backoff = on_error, backoff
                tasks.append(task)
        if problem is not None:
            if not tasks:
                raise problem
            warnings.warn(str(problem), RejectedItemWarning, stacklevel=3)
        return tasks

    def _bury_raw(self, raw: Raw, error: PressureError) -> None:
        """Bury a task whose data cannot be used."""
        call = unpack(raw.record).call
        burying = self._operations.bury(
            raw.id, incarnation(), call, None, f"{type(error).__name__}: {error}", NO_EDIT, False
        )
        try:
            self._run(burying)
        except TaskError:
            pass  # it is no longer ours
        self._here.lose(raw.id, call)

    def ack(
        self,
        task: Task | int | str,
        *,
        update: Any = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
    ) -> Task:
        """The task is processed: it is removed, or stays as a zombie or as done.

        Answers the task as it is now, with the state ``X`` if it is removed. So do :meth:`release`,
        :meth:`bury` and :meth:`touch`, which take these arguments too:

        :param task: a task that was taken, or its id.
        :param update: what the data is from now on; or a callable that is given the data, and
            answers the new. With an id, when the data was changed meanwhile, it is called again.
        :param delay: seconds as a zombie, instead of the queue's own; for a queue without ``keep``.
        :param tube: move it there.

        Never waits. Raises NotTaken when nobody has the task, NotOwner when another process or a
        later take has it, TaskNotFound, EncodingError, QueueDoesNotExistError, ArgumentError,
        ArgumentTypeError, BrokerUnavailable. It works on a closed handle.
        """

        wait = None if delay is None else milliseconds("delay", delay, least=0.001)
        if wait is not None and self._settings.keep:
            raise ArgumentError(f"queue {self._name!r} keeps its tasks: there is no zombie's delay")
        where = None if tube is None else check_tube(tube)

        def acking(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            return self._operations.ack(id, incarnation(), call, wait, where, edit, whole)

        return self._by_taker(task, update, acking)

    def _by_taker(self, task: Task | int | str, update: Any, make: MakeOperation) -> Task:
        """What a taker does with a task: it has it no longer, unless it touches it."""
        id, call = self._fence(task)
        edited = self._edit(task, update, lambda edit, whole: make(id, call, edit, whole))
        if edited.state != states.TAKEN:
            self._here.lose(id, call)
        return edited

    def _fence(self, task: Task | int | str) -> tuple[bytes, int]:
        """A task's id, and the number of the take by which this process has it."""
        if isinstance(task, Task):
            return encode_id(task.id), task.call
        id = encode_id(task)
        return id, self._here.call_of(id)

    def ack_many(self, tasks: Iterable[Task | int | str]) -> None:
        """Acknowledge tasks, up to 1,000 in each round trip. Never waits.

        Those that cannot be are left out; then what :meth:`ack` raises for the first of them is
        raised in the end: ``accepted`` is how many were acknowledged, and ``rest`` are the others.
        """

        given = list(tasks)
        fences = [self._fence(task) for task in given]
        problems = self._run(self._operations.ack_many(fences, incarnation()))
        left: list[Task | int | str] = []
        first: PressureError | None = None
        for task, fence, problem in zip(given, fences, problems, strict=True):
            if problem is None:
                self._here.lose(*fence)
                if isinstance(task, Task):
                    task.settle(self._settings.processed)
            else:
                left.append(task)
                first = first or problem
        if first is not None:
            first.accepted = len(given) - len(left)
            first.rest = left
            raise first

    def release(
        self,
        task: Task | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Any = UNCHANGED,
        error: str | None = None,
    ) -> Task:
        """Give the task back: it is ready for others, in its old place, or waits for a delay.

        :param delay: seconds before it may be taken again.
        :param ttl: seconds for which it is ready, instead of the queue's own. Excludes ``delay``.
        :param priority: its priority from now on.
        :param error: what went wrong: it is kept with the task.

        The rest is as for :meth:`ack`. After ``max_deliveries`` the task is buried instead.
        """

        wait, life = check_times(delay, ttl)
        urgency = b"" if priority is None else encode_priority(priority)
        where = None if tube is None else check_tube(tube)

        def releasing(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            options = wait, life, urgency, where, error or ""
            return self._operations.release(id, incarnation(), call, *options, edit, whole)

        return self._by_taker(task, update, releasing)

    def bury(
        self,
        task: Task | int | str,
        *,
        update: Any = UNCHANGED,
        tube: str | None = None,
        error: str | None = None,
    ) -> Task:
        """Put the task aside, until an administrator kicks, kills or switches it.

        ``error`` says why, and is kept with the task. The rest is as for :meth:`ack`.
        """

        where = None if tube is None else check_tube(tube)

        def burying(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            me = incarnation()
            return self._operations.bury(id, me, call, where, error or "", edit, whole)

        return self._by_taker(task, update, burying)

    def touch(
        self, task: Task | int | str, increment: float | None = None, *, update: Any = UNCHANGED
    ) -> Task:
        """Have the task for ``increment`` seconds more; without, for the queue's ``ttr`` from now.

        Nothing changes for a task without a ttr. The rest is as for :meth:`ack`.
        """

        more = None if increment is None else milliseconds("increment", increment, least=0.001)

        def touching(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            return self._operations.touch(id, incarnation(), call, more, edit, whole)

        touched = self._by_taker(task, update, touching)
        id, call = self._fence(task)
        if touched.due is not None:
            self._here.keep([id], call, max(int((touched.due - touched.since) * 1000), 1))
        return touched

    def wait(self, id: int | str, timeout: float | None = None) -> tuple[Task, bool]:
        """Wait until a task was processed: the task as it is then, and whether it was.

        It was not when the time is up, and when it was buried, killed or dropped. A task that is
        gone has the state ``X``, and the data it had when this was called.

        Blocks without limit, or at most ``timeout`` seconds. Raises TaskNotFound when there is no
        such task at first, DecodingError, AuthenticationError, QueueDoesNotExistError,
        HandleClosedError, BrokerUnavailable.
        """

        self._check_open()
        named = encode_id(id)
        limit = None if timeout is None else check_timeout(timeout)
        return self._wait(named, ticket(), limit, None)

    def _wait(
        self, id: bytes, who: str, timeout: float | None, known: Raw | None
    ) -> tuple[Task, bool]:
        with self._here:
            raw, processed = self._run(self._operations.wait(id, who, timeout, known))
        return self._task(raw), processed

    def shutdown(self) -> None:
        """Shut the queue down for everyone, for good. Never waits.

        Puts raise ShutDown from now on, and takes when no task is ready; who waits is woken. Tasks
        that become ready later, because they were released or their delay has passed, can be taken
        by who asks then.
        """

        self._run(self._operations.close())

    @property
    def is_shutdown(self) -> bool:
        """Whether the queue was shut down. Never waits."""

        return self._run(self._operations.closed())

    def close(self) -> None:
        """This handle is done; the queue and its other handles go on.

        Afterwards put and take raise HandleClosedError, a ValueError. What was taken can be
        acknowledged, released, buried and touched.
        """

        self._close_handle()

    def delete(self) -> None:
        """Remove the queue and all that is in it, for everyone. Never waits.

        Raises QueueDoesNotExistError.
        """

        self._run(self._operations.delete())
        registry.engine(self._address).leave(self._name, self._operations.discipline)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def check_timeout(timeout: float) -> float:
    """Raise ArgumentError or ArgumentTypeError for what is no time to wait, in seconds."""
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        raise ArgumentTypeError(
            f"a time to wait is a number of seconds, not {type(timeout).__name__}"
        )
    if not timeout >= 0:
        raise ArgumentError(f"timeout is 0 s or more, not {timeout}")
    return timeout
