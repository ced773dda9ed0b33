"""What an administrator does with a queue of tasks: look, and put right."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import states
from ...effects import Operation
from ...encoding.task_values import check_times, check_tube, encode_id
from ...exceptions import ArgumentError
from ...identity.processes import incarnation
from ...numeric import integer
from ...operations.task_queue import DecodedTask
from ...operations.task_settling import UNCHANGED
from ...operations.task_stats import TaskStats
from ...states import TaskState
from .base_task import BaseTask, Data, TaskOrId
from .handle import TaskHandle
from .task import Task

if TYPE_CHECKING:
    from ...operations.task_diagnosis import TaskDiagnosis


class TaskAdministration(TaskHandle[Data]):
    """The part of :class:`pressure_mp.TaskQueue` that is for administrators.

    Nothing here waits. Where one task is meant, ``task`` is a :class:`Task` or an id, and what is
    returned is the task as it is then, in state ``TaskState.VOID`` if it is gone. Raises
    TaskNotFound, and WrongState for a task that is in another state, which the error names.
    """

    def _reset(self) -> None:
        super()._reset()
        self._stats: TaskStats | None = None

    def stats(self) -> TaskStats:
        """Count the tasks in each state, and the changes of state so far; see :class:`TaskStats`.

        Never waits. Raises QueueDoesNotExistError.
        """
        return self._run(self._counting())

    def _counting(self) -> Operation[TaskStats]:
        now = yield from self._operations.stats()
        rates = now.rates_since(self._stats)
        self._stats = now
        return now.with_rates(rates)

    def why_blocked(self) -> TaskDiagnosis:
        """Explain what a take would wait for now.

        The diagnosis also says which processes have taken tasks, whether these processes are alive,
        and for which keys ``per_key`` tasks are taken. ``print(tasks.why_blocked())`` shows it in
        words. At most 500 taken and 500 ready tasks are examined. Never waits. Raises
        QueueDoesNotExistError.
        """
        return self._run(self._operations.why_blocked(incarnation()))

    def kick(
        self,
        task: Task[Data] | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
    ) -> Task[Data]:
        """Make a buried task ready; its deliveries are counted from 0 again.

        With ``delay`` the task waits for so many seconds first; ``ttl`` is as for
        :meth:`TaskQueue.put`, and ``update`` as for :meth:`TaskQueue.ack`. Returns the task as it
        is now. Never waits. Raises WrongState when it is not buried, TaskNotFound.
        """
        return self._change(task, self._kicking(task, delay, ttl, update))

    def _kicking(
        self, task: TaskOrId, delay: float | None, ttl: float | None, update: Any
    ) -> Operation[DecodedTask]:
        wait, life = check_times(delay, ttl)
        to = states.WAITING if wait else states.READY
        return self._operations.change("kick", _id(task), to, wait, life, update=update)

    def kick_many(
        self, limit: int | None = None, *, delay: float | None = None, ttl: float | None = None
    ) -> int:
        """Make the oldest ``limit`` buried tasks ready, as :meth:`kick` does.

        None means all that are buried at the call: one that is buried again meanwhile stays buried.
        Returns how many tasks were made ready. Never waits.
        """
        return self._run(self._kicking_many(limit, delay, ttl))

    def _kicking_many(
        self, limit: int | None, delay: float | None, ttl: float | None
    ) -> Operation[int]:
        wait, life = check_times(delay, ttl)
        most = None if limit is None else integer("limit", limit, 0, "an int or None")
        return self._operations.kick_many(most, wait, life)

    def kill(self, task: Task[Data] | int | str) -> Task[Data]:
        """Remove a task, in whatever state it is. Never waits. Raises TaskNotFound.

        If a worker has taken it, the worker gets TaskNotFound from its next call for this task.
        """
        return self._change(task, self._killing(task))

    def _killing(self, task: TaskOrId) -> Operation[DecodedTask]:
        return self._operations.change("kill", _id(task), states.VOID)

    def peek(self, id: int | str) -> Task[Data]:
        """Return a task without changing it. Never waits.

        Raises TaskNotFound, DecodingError, AuthenticationError.
        """
        return self._task(*self._run(self._operations.peek(encode_id(id))))

    def list(
        self, state: TaskState | str | None = None, tube: str | None = None, limit: int = 100
    ) -> builtins.list[Task[Data]]:
        """Up to ``limit`` tasks; with ``state`` (a letter or a word) or ``tube``, only such tasks.

        The order: ready tasks as they will be taken; waiting tasks and zombies by the time when
        they are due, those without such a time last; taken tasks by owner; buried and done tasks
        the oldest first. Each 500 tasks of a state are as they were at one moment. Never waits.
        """
        return [self._task(*task) for task in self._run(self._listing(state, tube, limit))]

    def _listing(
        self, state: TaskState | str | None, tube: str | None, limit: int
    ) -> Operation[builtins.list[DecodedTask]]:
        limit = integer("limit", limit, 1)
        wanted = "".join(states.NAMES) if state is None else _state(state)
        return self._operations.list(wanted, check_tube(tube), limit)

    def truncate(self) -> int:
        """Remove all tasks, whatever state they are in; returns how many.

        More than 1,000 tasks are removed in several steps: a task that is put between these steps
        may be removed or stay. Waits for no other client.
        """
        return self._run(self._operations.truncate())

    def move(self, task: Task[Data] | int | str, tube: str | None) -> Task[Data]:
        """Move a task to another tube; with None, out of its tube. Never waits.

        A task that is taken is taken away from its worker, as by :meth:`snatch`. Raises
        TaskNotFound.
        """
        return self._change(task, self._moving(task, tube))

    def _moving(self, task: TaskOrId, tube: str | None) -> Operation[DecodedTask]:
        return self._operations.change("move", _id(task), "", tube=check_tube(tube))

    def switch(
        self, task: Task[Data] | int | str, state: TaskState | str, *, delay: float | None = None
    ) -> Task[Data]:
        """Change the state of a task; ``state`` is a letter or a word.

        Neither the task's state nor the new one may be *taken*. ``delay``, in seconds, is needed
        for waiting, and for zombie in a queue without ``zombie``; for other states it is an
        ArgumentError. Never waits. Raises WrongState when the task is taken or is in that state
        already, TaskNotFound, ArgumentError.
        """
        return self._change(task, self._switching(task, state, delay))

    def _switching(
        self, task: TaskOrId, state: TaskState | str, delay: float | None
    ) -> Operation[DecodedTask]:
        to = _state(state)
        wait, _ = check_times(delay, None)
        if to == states.TAKEN:
            raise ArgumentError("a task cannot be switched to taken: take it")
        if to == states.WAITING and not wait:
            raise ArgumentError("a task that waits needs a delay: switch(..., delay=)")
        if to == states.ZOMBIE and not (wait or self._settings.zombie):
            raise ArgumentError(
                f"queue {self._name!r} has no time for zombies: switch(..., delay=)"
            )
        if wait and to not in (states.WAITING, states.ZOMBIE):
            raise ArgumentError(f"there is no delay for a task that is {states.word(to)}")
        return self._operations.change("switch", _id(task), to, wait)

    def snatch(self, task: Task[Data] | int | str, *, delay: float | None = None) -> Task[Data]:
        """Take a taken task away from its worker: it is ready, or waits ``delay`` seconds first.

        The worker gets NotTaken or NotOwner from its next call for this task. Never waits. Raises
        NotTaken when the task is not taken, TaskNotFound.
        """
        return self._change(task, self._beginning_again("snatch", task, delay))

    def restart(self, task: Task[Data] | int | str, *, delay: float | None = None) -> Task[Data]:
        """Make a waiting, done or zombie task ready, or waiting for ``delay`` seconds.

        Never waits. Raises WrongState for a task in another state, TaskNotFound.
        """
        return self._change(task, self._beginning_again("restart", task, delay))

    def _beginning_again(
        self, op: str, task: TaskOrId, delay: float | None
    ) -> Operation[DecodedTask]:
        wait, _ = check_times(delay, None)
        to = states.WAITING if wait else states.READY
        return self._operations.change(op, _id(task), to, wait)

    def _change(self, task: TaskOrId, changing: Operation[DecodedTask]) -> Task[Data]:
        changed = self._task(*self._run(changing))
        if isinstance(task, BaseTask):
            task.become(changed)
        return changed


def _id(task: TaskOrId) -> bytes:
    return task.id_bytes if isinstance(task, BaseTask) else encode_id(task)


def _state(given: str) -> TaskState:
    """One of the states that a task in the queue can be in. Raises ArgumentError."""
    try:
        state = states.named(given)
    except (KeyError, TypeError):
        state = states.VOID
    if state is states.VOID:
        known = ", ".join(f"{letter} ({word})" for letter, word in states.NAMES.items())
        raise ArgumentError(f"{given!r} is not a state; the states are {known}")
    return state
