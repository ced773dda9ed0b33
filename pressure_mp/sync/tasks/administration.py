"""Administer a queue of tasks."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING

from ... import states
from ...encoding.task_values import check_times, check_tube, encode_id, milliseconds
from ...exceptions import ArgumentError
from ...handles.base_task import Data
from ...handles.task_verbs import AnyTask
from ...handles.tasks import id_of, state_of
from ...numeric import integer
from ...operations.task_settling import UNCHANGED
from ...operations.task_stats import TaskStats
from ...states import TaskState
from . import settings
from .handle import TaskHandle

if TYPE_CHECKING:
    from ...engines.contract.task_records import TaskSettings
    from ...handles.options import IdKind
    from ...operations.task_diagnosis import TaskDiagnosis
    from ...operations.task_workers import TaskWorker


class TaskAdministration(TaskHandle[Data, AnyTask]):
    """The part of :class:`pressure_mp.TaskQueue` that is for administrators.

    Nothing here waits. Where one task is meant, ``task`` is a :class:`Task` or an id, and what is
    returned is the task as it is then, in state ``TaskState.VOID`` if it is gone. Raises
    TaskNotFound, and WrongState for a task that is in another state, which the error names.
    """

    def stats(self) -> TaskStats:
        """Count the tasks in each state, and the changes of state so far; see :class:`TaskStats`.

        Never waits. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.counting())

    def configure(
        self,
        *,
        ttr: float | None = UNCHANGED,
        ttl: float | None = UNCHANGED,
        zombie: float | bool | None = UNCHANGED,
        keep: bool = UNCHANGED,
        max_deliveries: int | None = UNCHANGED,
        per_key: int | None = UNCHANGED,
        id: IdKind = UNCHANGED,
        maxsize: int = UNCHANGED,
    ) -> None:
        """Change options of the queue for all clients, while they use it; see
        :class:`pressure_mp.TaskQueue`. An option that is left out keeps its value.

        A ``ttr`` counts for tasks that are taken from now on, a ``ttl`` for tasks that become ready
        from now on, ``zombie`` and ``keep`` for tasks that are acknowledged from now on, and
        ``max_deliveries`` when a task is released next. A ``maxsize`` counts for the next put: puts
        that wait go on as far as there is space now, and tasks beyond a lower bound stay. With a
        higher ``per_key``, takes that wait get the next tasks of each key; a lower one takes no
        task away. An ``id`` counts for this handle, and for handles that open the queue from now
        on: the others go on making ids as they did.

        Never waits, and takes longer the more tasks are taken if ``per_key`` changes. Raises
        QueueDoesNotExistError, ArgumentError, ArgumentTypeError.
        """
        options: dict[str, object] = {"ttr": ttr, "ttl": ttl, "zombie": zombie, "keep": keep}
        options |= {"max_deliveries": max_deliveries, "per_key": per_key, "id": id}
        options["maxsize"] = maxsize
        stated = {name: one for name, one in options.items() if one is not UNCHANGED}

        def learn(found: TaskSettings) -> None:
            if callable(id):
                self._at.make_id = id
            self._at.learn(found)

        configuring = self._at.operations.configure(settings.change(stated))
        return self._then(self._run(configuring), learn)

    def pause(self, tube: str | None = None) -> None:
        """Pause the queue, or one tube of it, for all programs, until :meth:`resume`.

        No take gets a task of a paused queue, and none gets a task of a paused tube: it waits, or
        raises Empty, as if no task were ready, also after a shutdown. A take of all tubes leaves
        out the paused ones. All else goes on: puts, the tasks that workers have, delays, ``ttr``
        and ``ttl``. :attr:`TaskStats.paused` and :attr:`TaskStats.paused_tubes` tell what is
        paused. Never waits, however many tasks there are. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.operations.pause(check_tube(tube), True))

    def resume(self, tube: str | None = None) -> None:
        """Resume the queue, or one tube of it, for all programs: takes that wait get its tasks.

        A tube that was paused by itself stays so when the queue is resumed. Never waits. Raises
        QueueDoesNotExistError.
        """
        return self._run(self._at.operations.pause(check_tube(tube), False))

    def limit(
        self,
        number: int | None,
        per: float = 1.0,
        *,
        tube: str | None = None,
        each_key: bool = False,
    ) -> None:
        """Limit how many tasks of the queue, or of one tube of it, all workers together get: at
        most ``number`` in any ``per`` seconds, by the broker's clock. None removes that limit.

        A take gets as many tasks as the limit admits then; if it admits none, the take waits until
        it does, or raises Empty, also after a shutdown. A take of all tubes leaves out a tube whose
        limit is used up. Up to ``number`` tasks can be got at once. A task that a worker gives
        back, or a take that is broken off, counts all the same. The queue and each tube can have a
        limit each, and all hold. With ``each_key`` the tasks of each key in each tube have a limit
        of their own, beside these; that of a tube is in the place of that of the queue. A new limit
        replaces the old one, and what was got before counts.
        :attr:`TaskStats.limits` tells the limits. Never waits. Raises QueueDoesNotExistError,
        ArgumentError, ArgumentTypeError.
        """
        most = 0 if number is None else integer("number", number, 1, "an int or None")
        span = milliseconds("per", per, least=0.001)
        return self._run(self._at.operations.limit(check_tube(tube), most, span, each_key))

    def why_blocked(self) -> TaskDiagnosis:
        """Explain what a take would wait for now.

        The diagnosis also says which processes have taken tasks, whether these processes are alive,
        and for which keys ``per_key`` tasks are taken. ``print(tasks.why_blocked())`` shows it in
        words. At most 500 taken and 500 ready tasks are examined. Never waits. Raises
        QueueDoesNotExistError.
        """
        return self._run(self._at.operations.why_blocked())

    def workers(self) -> builtins.list[TaskWorker]:
        """Return the workers of the queue: each call of :meth:`run`, and each worker process of an
        executor, with the tasks that it has; see :class:`pressure_mp.TaskWorker`.

        A worker is listed from half a second after its begin until its end, also while it has no
        task. A worker that was killed is no longer listed when its ``lease`` is over, nor by a
        program on its host. A process that took tasks by itself is listed as long as it has some.
        At most 500 taken tasks are examined. Never waits. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.operations.workers())

    def kick(
        self,
        task: AnyTask | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
    ) -> AnyTask:
        """Make a buried task ready; its deliveries are counted from 0 again.

        With ``delay`` the task waits for so many seconds first; ``ttl`` is as for
        :meth:`TaskQueue.put`, and ``update`` as for :meth:`TaskQueue.ack`. Returns the task as it
        is now. Never waits. Raises WrongState when it is not buried, TaskNotFound.
        """
        wait, life = check_times(delay, ttl)
        to = states.WAITING if wait else states.READY
        return self._change("kick", task, to, wait, life, update=update)

    def kick_many(
        self, limit: int | None = None, *, delay: float | None = None, ttl: float | None = None
    ) -> int:
        """Make the oldest ``limit`` buried tasks ready, as :meth:`kick` does.

        None means all that are buried at the call: a task that is buried again meanwhile stays so.
        Returns how many tasks were made ready. Never waits.
        """
        wait, life = check_times(delay, ttl)
        most = None if limit is None else integer("limit", limit, 0, "an int or None")
        return self._run(self._at.operations.kick_many(most, wait, life))

    def kill(self, task: AnyTask | int | str) -> AnyTask:
        """Remove a task, in whatever state it is. Never waits. Raises TaskNotFound.

        If a worker has taken it, the worker gets TaskNotFound from its next call for this task.
        """
        return self._change("kill", task, states.VOID)

    def cancel(self, task: AnyTask | int | str) -> bool:
        """End a task that is ready, waiting or taken: it is removed, and its :meth:`result` is
        TaskFailed. Returns False if the task has ended already, or is not there. Never waits.

        The run that works on it hears of that within about a second: a coroutine is cancelled; for
        a handler in a thread ``task.cancelled`` is True; a process of ``pressure-mp worker`` that
        works on one task at a time ends, as by :meth:`pressure_mp.Executor.abort`. What a handler
        did until then is not undone, and what it does with the task from then on is refused. So it
        is after :meth:`kill` too.
        """

        def note(was_there: bool) -> bool:
            if was_there:
                self._at.here.note_removed(id_of(task))
            return was_there

        origins = "".join(states.sources("cancel"))
        return self._then(self._run(self._at.operations.remove_from(id_of(task), origins)), note)

    def peek(self, id: int | str) -> AnyTask:
        """Return a task without changing it. Never waits.

        Raises TaskNotFound, DecodingError, AuthenticationError.
        """
        return self._then(self._run(self._at.operations.peek(encode_id(id))), self._task_of)

    def list(
        self, state: TaskState | str | None = None, tube: str | None = None, limit: int = 100
    ) -> builtins.list[AnyTask]:
        """Up to ``limit`` tasks; with ``state`` (a letter or a word) or ``tube``, only such tasks.

        The order: ready tasks as they will be taken; waiting tasks and zombies by the time when
        they are due, those without such a time last; taken tasks by owner; buried and done tasks
        the oldest first. Each 500 tasks of a state are as they were at one moment. Never waits.
        """
        limit = integer("limit", limit, 1)
        wanted = "".join(states.NAMES) if state is None else state_of(state)
        listing = self._at.operations.list(wanted, check_tube(tube), limit)
        return self._then(self._run(listing), self._tasks_of)

    def truncate(self) -> int:
        """Remove all tasks, whatever state they are in; returns how many.

        More than 1,000 tasks are removed in several steps: a task that is put between these steps
        may be removed or stay. Waits for no other client.
        """
        return self._run(self._at.operations.truncate())

    def move(self, task: AnyTask | int | str, tube: str | None) -> AnyTask:
        """Move a task to another tube; with None, out of its tube. Never waits.

        A task that is taken is taken away from its worker, as by :meth:`snatch`. Raises
        TaskNotFound.
        """
        return self._change("move", task, "", tube=check_tube(tube))

    def switch(
        self, task: AnyTask | int | str, state: TaskState | str, *, delay: float | None = None
    ) -> AnyTask:
        """Change the state of a task; ``state`` is a letter or a word.

        Neither the task's state nor the new one may be *taken*. ``delay``, in seconds, is needed
        for waiting, and for zombie in a queue without ``zombie``; for other states it is an
        ArgumentError. Never waits. Raises WrongState when the task is taken or is in that state
        already, TaskNotFound, ArgumentError.
        """
        to = state_of(state)
        wait, _ = check_times(delay, None)
        if to == states.TAKEN:
            raise ArgumentError("a task cannot be switched to taken: take it")
        if to == states.WAITING and not wait:
            raise ArgumentError("a task that waits needs a delay: switch(..., delay=)")
        if wait and to not in (states.WAITING, states.ZOMBIE):
            raise ArgumentError(f"there is no delay for a task that is {states.word(to)}")
        return self._change("switch", task, to, wait)

    def snatch(self, task: AnyTask | int | str, *, delay: float | None = None) -> AnyTask:
        """Take a taken task away from its worker: it is ready, or waits ``delay`` seconds first.

        The worker gets NotTaken or NotOwner from its next call for this task. Never waits. Raises
        NotTaken when the task is not taken, TaskNotFound.
        """
        wait, _ = check_times(delay, None)
        return self._change("snatch", task, states.WAITING if wait else states.READY, wait)

    def restart(self, task: AnyTask | int | str, *, delay: float | None = None) -> AnyTask:
        """Make a waiting, done or zombie task ready, or waiting for ``delay`` seconds.

        Never waits. Raises WrongState for a task in another state, TaskNotFound.
        """
        wait, _ = check_times(delay, None)
        return self._change("restart", task, states.WAITING if wait else states.READY, wait)
