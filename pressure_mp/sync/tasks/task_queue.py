"""A queue whose tasks have a life: ready, waiting, taken, buried, zombie, done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...effects import Operation
from ...encoding import serializers, signing
from ...encoding.codec import Codec
from ...encoding.kinds import TASK
from ...engines.contract.queues import How
from ...engines.contract.task_records import TaskSettings
from ...hidden import hide_in
from ..options import RecordedOptions, SignatureOf, TaskQueueOptions, read
from . import settings as task_settings
from .administration import TaskAdministration
from .base_task import Data
from .producer import TaskProducer
from .results import TaskResults
from .workers import TaskWorkers

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class TaskQueue(TaskProducer[Data], TaskResults[Data], TaskWorkers[Data], TaskAdministration[Data]):
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

    __signature__ = SignatureOf(TaskQueueOptions)

    def __init__(self, name: str | None = None, **options: Unpack[TaskQueueOptions]) -> None:
        """Attach to the queue called ``name``, or create it when it is not there.

        The first seven are recorded with the queue. To attach, they need not be repeated: those
        that are stated are to be the queue's own. Times are in seconds.

        :param name: without one, an anonymous queue, which lives until the last process that uses
            it has ended.
        :param ttr: time to release: a task that was taken for so long is ready again. None is no
            limit.
        :param ttl: time to live: a task that was ready for so long, and was not taken, is dropped.
            It begins anew whenever the task becomes ready. None means no limit.
        :param zombie: a task that was acknowledged stays for so long as a zombie; with True until
            somebody removes it, unless ``ack(delay=)`` says for how long.
        :param keep: a task that was acknowledged stays as done. Excludes ``zombie``.
        :param max_deliveries: a task that was taken so often is buried where it would become ready
            again, with the text of the last error. None means no limit.
        :param id: where ids come from: ``"time64"``, the broker's time in microseconds;
            ``"auto_increment"``, 1 and so on; ``"uuid"``; ``"required"``: each put gives one; or a
            callable without arguments that returns an int or a str, which must be one that can be
            pickled where the handle is.
        :param per_key: how many tasks of one key may be taken at a time, by all processes together;
            see ``put(key=)``. A task is out of the count when it is settled or given back: so also
            when its ``ttr`` is over, or its worker is known to be dead. None is no limit.
        :param lease: seconds after which others may take over what a process has taken that stopped
            answering and is not on their host.

        The others are those of :class:`pressure_mp.Queue`. Blocks for the connection, at most
        ``reconnect`` seconds and 5 for the last try. Raises BrokerUnavailable, WrongServerError,
        QueueMismatchError (the queue has another option than the one that was stated, or is of
        another kind), AddressError, ArgumentError, ArgumentTypeError.
        """
        given = read(TaskQueueOptions, options, self)
        stated = [option for option in RecordedOptions.__annotations__ if option in options]
        settings = task_settings.make(
            ttr=given["ttr"],
            ttl=given["ttl"],
            zombie=given["zombie"],
            keep=given["keep"],
            max_deliveries=given["max_deliveries"],
            id=given["id"],
            per_key=given["per_key"],
        )
        encoder = serializers.find(given["serializer"])
        keys = signing.gather(given["authkey"], name is None, os.environ)
        self._make_id = given["id"] if callable(given["id"]) else None
        super().__init__(name, given)
        self._codec = Codec(encoder, keys, self.prefix, self._name, self._anonymous, TASK)
        how = self._how

        def make(user: str) -> Operation[TaskSettings]:
            return self._operations.open(how, settings, user, stated)

        self._open(lambda: self._open_by(make, self._learn))

    def _learn(self, settings: TaskSettings) -> None:
        """The queue is open, with these settings."""
        self._settings = settings
        self._equip()

    @classmethod
    def create(cls, name: str, **options: Unpack[TaskQueueOptions]) -> Self:
        """Create the queue called ``name``; the rest is as for the class itself.

        Raises QueueAlreadyExistsError.
        """
        return cls._insist(How.CREATE, name, **hide_in(options))

    @classmethod
    def attach(cls, name: str, **options: Unpack[TaskQueueOptions]) -> Self:
        """A handle to the queue called ``name``; the rest is as for the class itself.

        Raises QueueDoesNotExistError.
        """
        return cls._insist(How.ATTACH, name, **hide_in(options))

    @property
    def settings(self) -> TaskSettings:
        """The options that are recorded with the queue; times in milliseconds, 0 for none."""
        return self._settings

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

        self._run(self._leave(self._operations.delete()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
