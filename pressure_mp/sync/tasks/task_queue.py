"""A queue whose tasks have a life: ready, waiting, taken, buried, zombie, done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...effects import Operation
from ...encoding import serializers, signing
from ...encoding.codec import Codec
from ...encoding.error_texts import TASK
from ...engines.contract.queues import How
from ...engines.contract.task_records import TaskSettings
from ...handles.base_task import Data
from ...handles.options import RecordedOptions, SignatureOf, TaskQueueOptions, read
from ...handles.tasks import TaskAttachment
from ...hidden import hide_in
from . import settings as task_settings
from .administration import TaskAdministration
from .periodic import PeriodicTasks, deleting
from .producer import TaskProducer
from .results import TaskResults
from .task import Task
from .workers import TaskWorkers

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class TaskQueue(
    TaskProducer[Data, Task[Data]],
    TaskResults[Data, Task[Data]],
    TaskWorkers[Data],
    PeriodicTasks[Data, Task[Data]],
    TaskAdministration[Data, Task[Data]],
):
    """A queue of tasks that producers, workers and administrators on any machine share.

    A task is *ready* (R) or, for the time of a delay, *waiting* (W). A worker *takes* it (state
    *taken*, T) for at most ``ttr`` seconds. Then the worker *acknowledges* it: it is removed, or
    kept as *done* (D), or kept for some time as a *zombie* (Z). Or the worker *releases* it, so
    that it is ready again, at once or after a delay. Or the worker *buries* it (B), until an
    administrator kicks it (makes it ready again). A task whose worker dies is ready again: within a
    second when another process of the same host waits in :meth:`take`, else after ``lease``. Only
    the process that has taken a task may acknowledge, release, bury or touch it, and only as long
    as it has the task.

    All times are measured by the broker's clock; no process needs to run for a task to become
    ready. The task with the lowest priority is taken first; of equal ones, the task that was put
    first, also if it was released meanwhile.

    A handle can be pickled: pass it to a process, or through another queue.
    """

    __signature__ = SignatureOf(TaskQueueOptions)

    def __init__(self, name: str | None = None, **options: Unpack[TaskQueueOptions]) -> None:
        """Attach to the queue called ``name``, or create it if it does not exist.

        ``ttr``, ``ttl``, ``zombie``, ``keep``, ``max_deliveries``, ``id``, ``per_key`` and
        ``maxsize`` are stored with the queue. An existing queue keeps its own: if a stated option
        differs, a QueueMismatchWarning says so, and with ``strict=True`` this raises
        QueueMismatchError.
        :meth:`configure` changes them. Times are in seconds.

        :param name: the queue's name. Without one: an anonymous queue, which exists until the last
            process that uses it has ended.
        :param ttr: time to release: a task that has been taken for this time is ready again, also
            while its handler goes on. None means no limit: a task stays with its process as long as
            that lives, see ``lease``.
        :param ttl: time to live: a task that has been ready for this time, and was not taken, is
            removed. The time starts again whenever the task becomes ready. None means no limit.
        :param zombie: for how long an acknowledged task stays as a zombie. True: until a client
            removes it, unless ``ack(delay=)`` states a time. None: it is removed at once.
        :param keep: with True, an acknowledged task stays as done. Excludes ``zombie``.
        :param max_deliveries: how often a task is taken at most. After that it is buried, with the
            text of its last error, when it would become ready again. None means no limit; a new
            queue has 20 if this is not stated.
        :param id: how new tasks get their ids: ``"time64"``, the broker's time in microseconds;
            ``"auto_increment"``, 1, 2, and so on; ``"uuid"``; ``"required"``, each put states one;
            or a callable without arguments that returns an int or a str. If the handle is pickled,
            it must be possible to pickle the callable.
        :param per_key: how many tasks of one key may be taken at the same time, by all processes
            together; see ``put(key=)``. A task is no longer counted when it is acknowledged,
            released or buried, when its ``ttr`` is over, or when its worker is known to be dead.
            None means no limit.
        :param maxsize: the bound: while so many tasks are ready or waiting, a put waits, see
            :meth:`put`. Taken tasks do not count, and a task that becomes ready again needs no
            space: so there may be more. Less than 1 means no bound.
        :param lease: seconds after which the tasks of a process that stopped answering, and is on
            another host than the clients that wait, are ready again.

        The other options mean what they do in :class:`pressure_mp.Queue`. With a name, the
        constructor does no I/O: the first call opens the queue, see :meth:`open`. That raises
        QueueMismatchError for a queue of another kind, or, with ``strict``, for a queue that has
        another value of a stated option.
        Raises AddressError, ArgumentError or ArgumentTypeError for an argument that cannot be used.
        """
        given = read(TaskQueueOptions, options, self)
        stated = [option for option in RecordedOptions.__annotations__ if option in options]
        settings = task_settings.of_all(given)
        encoder = serializers.find(given["serializer"])
        keys = signing.gather(given["authkey"], name is None, os.environ)
        how, is_of_asyncio = self._opens
        queue = TaskAttachment(self._traits(), name, given, how, is_of_asyncio)
        self._at = queue
        prefix = queue.address.prefix
        queue.codec = Codec(encoder, keys, prefix, queue.name, queue.is_anonymous, TASK)
        queue.make_id = given["id"] if callable(given["id"]) else None

        strict = given["strict"]

        def opening(at: TaskAttachment) -> Operation[None]:
            def make(user: str) -> Operation[TaskSettings]:
                return at.operations.open(how, settings, user, stated, strict=strict)

            return at.open_by(make, at.learn)

        queue.open(opening)

    @classmethod
    def create(cls, name: str, **options: Unpack[TaskQueueOptions]) -> Self:
        """Create the queue called ``name``, with the options of the class.

        Raises QueueAlreadyExistsError, and what the class raises.
        """
        return cls._insist(How.CREATE, name, **hide_in(options))

    @classmethod
    def attach(cls, name: str, **options: Unpack[TaskQueueOptions]) -> Self:
        """Attach to the existing queue called ``name``, with the options of the class.

        Returns a handle. Raises QueueDoesNotExistError, and what the class raises.
        """
        return cls._insist(How.ATTACH, name, **hide_in(options))

    @property
    def settings(self) -> TaskSettings:
        """The options that are stored with the queue, as they were when this handle opened it, or
        changed them; times in milliseconds, 0 for none.

        Opens the queue, if no call has done so, and then blocks and raises as that does.
        """
        return self._at.settings

    def shutdown(self) -> None:
        """Shut the queue down for all clients, for good. Never waits.

        From now on a put raises ShutDown, and so does a take when no task is ready; clients that
        wait are woken. Tasks that become ready later, because they were released or their delay is
        over, can still be taken then. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.operations.close())

    @property
    def is_shutdown(self) -> bool:
        """Whether the queue was shut down. Never waits."""
        return self._run(self._at.operations.closed())

    def close(self) -> None:
        """Close this handle; the queue itself and its other handles stay open.

        Afterwards put and take raise HandleClosedError, a ValueError. Tasks that were taken can
        still be acknowledged, released, buried and touched.
        """
        self._at.close()

    def delete(self) -> None:
        """Remove the queue, all its tasks and its schedules, for all clients. Never waits.

        Raises QueueDoesNotExistError.
        """
        return self._run(deleting(self._at))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
