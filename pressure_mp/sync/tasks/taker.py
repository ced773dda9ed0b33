"""Take and settle tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ... import states
from ...caller_warnings import warn_caller
from ...encoding.task_values import check_priority, check_times, check_tube, milliseconds
from ...exceptions import ArgumentError, ArgumentTypeError, PressureError, RejectedItemWarning
from ...handles.backoff import Backoff
from ...handles.base_task import BaseTask, Data, TaskOrId
from ...handles.forwarding import Forwarding
from ...handles.handle import check_forward
from ...handles.options import ForwardOptions
from ...handles.task_verbs import AnyTask
from ...handles.tasks import results_of
from ...numeric import integer
from ...operations.task_queue import DecodedTask
from ...operations.task_settling import UNCHANGED
from .handle import TaskHandle

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TaskTaker(TaskHandle[Data, AnyTask]):
    """The part of :class:`pressure_mp.TaskQueue` that is for workers."""

    def take(
        self,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
        ack: AnyTask | None = None,
    ) -> AnyTask:
        """Take the next task that is ready.

        Blocks until there is one: without limit, or at most ``timeout`` seconds; with 0 or less not
        at all. Waiting clients are served in the order in which they came. If the connection breaks
        after the take was sent, finding out its outcome takes up to ``reconnect`` seconds longer.

        :param ttr: seconds after which the task is ready again, unless it is acknowledged,
            released, buried or touched before; instead of the queue's ``ttr``.
        :param tube: take only tasks of this tube (a named part of the queue; see :meth:`put`).
        :param on_error: whether the task is released or buried when a ``with task:`` block raises.
        :param backoff: seconds until a task that was released so may be taken again; or a callable
            that is given how often the task was delivered, and returns these seconds. None is
            :class:`~pressure_mp.ExponentialBackoff` from 1 second to 10 minutes; 0 is at once.
        :param ack: a task to acknowledge first, as :meth:`ack` does; this takes up to ``reconnect``
            seconds, whatever ``timeout`` is. If it raises, nothing is taken. In most cases both
            need one round trip together.

        Raises Empty when the time is up, and ShutDown when the queue is shut down and no task is
        ready. Raises DecodingError for a task that cannot be decoded, and AuthenticationError for
        one that is not signed with a key of this handle; both tasks are buried. Raises
        QueueDoesNotExistError, HandleClosedError, ArgumentError, ArgumentTypeError,
        BrokerUnavailable.
        """
        limit = None if timeout is None else self._at.seconds(timeout)
        if ack is not None and not isinstance(ack, BaseTask):
            raise ArgumentTypeError(f"ack is a task that was taken, not {type(ack).__name__}")
        acks = () if ack is None else (ack,)
        return self._take(first, 1, limit, ttr, tube, on_error, backoff, acks)

    def take_many(
        self,
        max_tasks: int,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> list[AnyTask]:
        """Take the next tasks: 1 to ``max_tasks``, and at most 1,000 or about 1 MB.

        Blocks as :meth:`take` does until one task is ready; then takes, without waiting, as many
        more as are ready. Takes the options of :meth:`take`, and raises the same errors. Tasks
        that cannot be decoded are buried. If others can be returned, this warns with
        RejectedItemWarning; else it raises the error of the first.
        """
        max_tasks = integer("max_tasks", max_tasks, 1)
        limit = self._at.seconds(timeout)
        return self._take(all_usable, max_tasks, limit, ttr, tube, on_error, backoff)

    def ack(
        self,
        task: AnyTask | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
        result: Any = UNCHANGED,
        connection: object | None = None,
    ) -> AnyTask:
        """Acknowledge a task that is processed: it is removed, or stays as a zombie or as done.

        Returns the task as it is now, with the state ``TaskState.VOID`` if it is removed. So do
        :meth:`release`, :meth:`bury` and :meth:`touch`, which also have the arguments ``task``,
        ``update`` and (except touch) ``tube``:

        :param task: a task that was taken, or its id.
        :param update: the task's new data; or a callable that is given the data and returns the new
            data. With an id, it is called again if the data was changed meanwhile.
        :param delay: seconds for which the task stays as a zombie, instead of the queue's
            ``zombie``. A queue with ``keep`` keeps it as done all the same.
        :param tube: the tube to move the task to.
        :param result: the task's result, see :meth:`result`; else the task's attribute ``result``.
            It is encoded and stored only if the task was put with ``result_ttl`` or an inbox.

        Never waits. Raises NotTaken when no process has the task, NotOwner when another process
        or a later take has it, TaskNotFound, EncodingError, QueueDoesNotExistError, ArgumentError,
        ArgumentTypeError, BrokerUnavailable. It also works after the handle was closed.

        :param connection: only for :meth:`ack` and :meth:`ack_many`: a connection to the queue's
            own database, as for :meth:`pressure_mp.Queue.put`. The task is acknowledged if and only
            if the connection's transaction commits; until then it stays taken, and is returned as
            such. If this process no longer has the task at the commit, because its ``ttr`` is over,
            the commit fails, and nothing of the transaction is done.
        """
        queue = self._at
        wait = None if delay is None else milliseconds("delay", delay, least=0.001)
        where = None if tube is None else check_tube(tube)
        if result is UNCHANGED:
            result = task.result if isinstance(task, BaseTask) else None
        acked = queue.subject(task), queue.here, update, wait, where, result
        if connection is None:
            return self._then(self._acknowledge(queue.operations.ack(*acked)), self._task_of)

        def stage(found: DecodedTask) -> AnyTask:
            staged = self._task(*found)
            _note_staged([task, staged])
            return staged

        acking = queue.operations.ack_at_commit(*acked)
        return self._then(self._run_in(connection, acking), stage)

    def ack_many(
        self, tasks: Iterable[AnyTask | int | str], *, connection: object | None = None
    ) -> None:
        """Acknowledge tasks, up to 1,000 or 1 MB of results in each round trip. Never waits.

        The result of each task is its attribute ``result``, stored as :meth:`ack` does.

        A task that cannot be acknowledged does not prevent the others. At the end the error of the
        first such task is raised, as by :meth:`ack`; its ``accepted`` is how many tasks were
        acknowledged, and its ``rest`` has the others.

        :param connection: as for :meth:`ack`. If this raises, roll the transaction back: no task
            counts as acknowledged.
        """
        given = list(tasks)
        queue = self._at
        if connection is None:
            return self._acknowledge(queue.acking_many(given))
        helds = [queue.held(task) for task in given]
        acking = queue.operations.ack_many_at_commit(helds, queue.here, results_of(given))
        return self._then(self._run_in(connection, acking), lambda _: _note_staged(given))

    def forward(
        self,
        task: AnyTask | int | str,
        queue: Any,
        data: Any,
        *,
        result: Any = UNCHANGED,
        **options: Unpack[ForwardOptions],
    ) -> Any:
        """Acknowledge the task, and put ``data`` on another queue, in one step at the broker: both
        are done, or neither is, whichever program or server stops meanwhile.

        :param task: a task that was taken, or its id.
        :param queue: the queue to put on: one with a name, of any order, or a TaskQueue. It is at
            the same server, database or file, of which both handles have the same URL; in a
            cluster it is in the same hash slot. It may be this queue.
        :param data: the item or the data of the task to put.
        :param result: as for :meth:`ack`.
        :param options: options of the other queue's ``put``, such as ``timeout``, ``delay`` or
            ``unique``; without ``wait`` and ``connection``. If another task has the ``unique``
            text, which is not put again then, this task is acknowledged all the same.

        Blocks as that put does while the other queue is full. Meanwhile this process has the task,
        whose ``ttr`` goes on. After Full, and each other error of the put, the task is still this
        process's.

        Returns what that put returns. Raises what it raises; and, when this process has the task no
        more, NotTaken, NotOwner or TaskNotFound, and nothing was put. Raises ArgumentError, before
        anything is done, if the queues are not at the same place. Raises BrokerUnavailable when it
        is not known whether both was done.
        """
        check_forward(self, queue, options)
        at = self._at
        is_itself = (queue._at.address, queue._at.queue_key) == (at.address, at.queue_key)
        if is_itself and options.get("unique") is not None:
            raise ArgumentError(
                "unique= cannot go with a forward() to the task's own queue, where the task itself "
                "may have that text"
            )
        if result is UNCHANGED:
            result = task.result if isinstance(task, BaseTask) else None
        become = task.become_record if isinstance(task, BaseTask) else _forget
        settling = at.operations.forwarding(at.subject(task), at.here, result, become)
        return queue.put(data, connection=Forwarding(at, settling), **options)

    def release(
        self,
        task: AnyTask | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        error: str | BaseException | None = None,
    ) -> AnyTask:
        """Give the task back: it is ready again, in its old place, or waits for ``delay`` seconds.

        :param delay: seconds before it may be taken again.
        :param ttl: seconds for which it stays ready, then it is removed; instead of the queue's
            ``ttl``. Excludes ``delay``.
        :param priority: its new priority.
        :param error: what went wrong, as a text or an exception; the text is stored with the task.
            If the task is buried now, an exception is what :meth:`result` raises.

        A task that was delivered ``max_deliveries`` times is buried instead. The other arguments,
        and what is returned and raised, are as for :meth:`ack`.
        """
        wait, life = check_times(delay, ttl)
        urgency = None if priority is None else check_priority(priority)
        where = None if tube is None else check_tube(tube)
        return self._settle("release", task, update, wait, life, urgency, where, error)

    def bury(
        self,
        task: AnyTask | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        ttl: float | None = None,
        tube: str | None = None,
        error: str | BaseException | None = None,
    ) -> AnyTask:
        """Set the task aside, until an administrator calls kick, kill or switch for it.

        :param ttl: seconds for which it stays buried; then it is removed. None means no limit.
        :param error: the reason, as a text or an exception; the text is stored with the task. An
            exception is what :meth:`result` raises.

        The other arguments, and what is returned and raised, are as for :meth:`ack`.
        """
        where = None if tube is None else check_tube(tube)
        life = milliseconds("ttl", ttl, least=0.001)
        return self._settle("bury", task, update, life, where, error)

    def touch(
        self,
        task: AnyTask | int | str,
        increment: float | None = None,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
    ) -> AnyTask:
        """Extend the time for the task by ``increment`` seconds; None: to the queue's ``ttr`` from
        now.

        For a task that is ready this extends its ``ttl``: it is removed ``increment`` seconds
        later, or, with None, after the queue's ``ttl`` from now. Every process may do this, with
        the task's id or a :class:`Task` that was ready when it was looked at or released. For a
        task that this process took and no longer has, this raises NotTaken or NotOwner.

        Nothing changes for a task without a ttr, or a ready one without a ttl. The other arguments,
        and what is returned and raised, are as for :meth:`ack`.
        """
        more = None if increment is None else milliseconds("increment", increment, least=0.001)
        touched: TaskOrId = task
        if isinstance(task, BaseTask) and task.state == states.READY:
            touched = task.id  # no process has it
        return self._settle("touch", touched, update, more)


def first(
    tasks: list[AnyTask], problem: PressureError | None, refused: Mapping[int, PressureError]
) -> AnyTask:
    """Return the task of a take; raise the error of the task that could not be acknowledged."""
    for error in refused.values():
        raise error
    return tasks[0]  # there is no problem if there is one


def all_usable(
    tasks: list[AnyTask], problem: PressureError | None, refused: Mapping[int, PressureError]
) -> list[AnyTask]:
    """Return the tasks of a take; warn with RejectedItemWarning if others could not be decoded."""
    if problem is not None:
        warn_caller(str(problem), RejectedItemWarning)
    return tasks


def _forget(record: object) -> None:
    """Note nothing of a task that is known by its id only."""


def _note_staged(tasks: Iterable[TaskOrId]) -> None:
    """Note that the tasks are acknowledged if a transaction commits."""
    for task in tasks:
        if isinstance(task, BaseTask):
            task.is_staged = True
