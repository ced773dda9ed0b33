"""What an administrator does with a queue of tasks: look, and put right."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import states
from ...effects import Operation
from ...encoding.task_values import check_times, check_tube, encode_id
from ...exceptions import ArgumentError, ArgumentTypeError
from ...identity.processes import incarnation
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
        """How many tasks are in which state, and how many went which way so far; see TaskStats.

        Never waits. Raises QueueDoesNotExistError.
        """
        return self._run(self._counting())

    def _counting(self) -> Operation[TaskStats]:
        now = yield from self._operations.stats()
        rates = now.rates_since(self._stats)
        self._stats = now
        return now.with_rates(rates)

    def why_blocked(self) -> TaskDiagnosis:
        """What a take would wait for now, which processes have the tasks, and whether they live;
        and which keys have as many taken as ``per_key`` lets be.

        ``print(tasks.why_blocked())`` says it in words. Of more than 500 tasks that are
        taken, or ready, 500 are looked at. Never waits. Raises QueueDoesNotExistError.
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

        With ``delay`` it waits first; ``ttl`` is as for put, and ``update`` as for
        :meth:`TaskQueue.ack`. Raises WrongState when it is not buried.
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
        """Make buried tasks ready as :meth:`kick` does: the oldest ``limit``, None is all of them.

        Returns how many there were.
        """
        return self._run(self._kicking_many(limit, delay, ttl))

    def _kicking_many(
        self, limit: int | None, delay: float | None, ttl: float | None
    ) -> Operation[int]:
        wait, life = check_times(delay, ttl)
        return self._operations.kick_many(_check_limit(limit), wait, life)

    def kill(self, task: Task[Data] | int | str) -> Task[Data]:
        """Remove a task, in whatever state it is. Who has taken it is told when it says so next."""
        return self._change(task, self._killing(task))

    def _killing(self, task: TaskOrId) -> Operation[DecodedTask]:
        return self._operations.change("kill", _id(task), states.VOID)

    def peek(self, id: int | str) -> Task[Data]:
        """A task as it is. Nothing changes. Raises TaskNotFound, DecodingError."""
        return self._task(*self._run(self._operations.peek(encode_id(id))))

    def list(
        self, state: TaskState | str | None = None, tube: str | None = None, limit: int = 100
    ) -> builtins.list[Task[Data]]:
        """Up to ``limit`` tasks, of one state (its letter or word will do) and one tube if given.

        In the order in which they are next: ready ones as they will be taken, waiting ones and
        zombies as they are due (last those that stay), taken ones by owner, buried and done ones
        the oldest first. It is one moment's picture of up to 500 tasks of a state; more are as many
        moments'.
        """
        return [self._task(*task) for task in self._run(self._listing(state, tube, limit))]

    def _listing(
        self, state: TaskState | str | None, tube: str | None, limit: int
    ) -> Operation[builtins.list[DecodedTask]]:
        if not isinstance(limit, int) or limit < 1:
            raise ArgumentError(f"limit is 1 or more, not {limit!r}")
        wanted = "".join(states.NAMES) if state is None else _state(state)
        return self._operations.list(wanted, check_tube(tube), limit)

    def truncate(self) -> int:
        """Remove all tasks, whatever state they are in; returns how many.

        Not in one moment when there are more than 1,000: of tasks that are put meanwhile some may
        go and some stay.
        """
        return self._run(self._operations.truncate())

    def move(self, task: Task[Data] | int | str, tube: str | None) -> Task[Data]:
        """Move a task to another tube, or out of its own with None.

        One that is taken leaves its taker, as by :meth:`snatch`.
        """
        return self._change(task, self._moving(task, tube))

    def _moving(self, task: TaskOrId, tube: str | None) -> Operation[DecodedTask]:
        return self._operations.change("move", _id(task), "", tube=check_tube(tube))

    def switch(
        self, task: Task[Data] | int | str, state: TaskState | str, *, delay: float | None = None
    ) -> Task[Data]:
        """Put a task that is not taken into any state but taken; its letter or word will do.

        ``delay``, in seconds, is needed for waiting, and for zombie in a queue without ``zombie``;
        for others there is none. A task that is in that state already is a WrongState.
        """
        return self._change(task, self._switching(task, state, delay))

    def _switching(
        self, task: TaskOrId, state: TaskState | str, delay: float | None
    ) -> Operation[DecodedTask]:
        to = _state(state)
        wait, _ = check_times(delay, None)
        if to == states.TAKEN:
            raise ArgumentError("a task cannot be switched into taken: take it")
        if to == states.WAITING and not wait:
            raise ArgumentError("a task that waits does so for a time: switch(..., delay=)")
        if to == states.ZOMBIE and not (wait or self._settings.zombie):
            raise ArgumentError(
                f"queue {self._name!r} has no time for zombies: switch(..., delay=)"
            )
        if wait and to not in (states.WAITING, states.ZOMBIE):
            raise ArgumentError(f"there is no delay for a task that is {states.word(to)}")
        return self._operations.change("switch", _id(task), to, wait)

    def snatch(self, task: Task[Data] | int | str, *, delay: float | None = None) -> Task[Data]:
        """Take a taken task from its owner: it is ready, or waits for ``delay`` seconds first.

        Raises NotTaken. The owner gets NotTaken or NotOwner when it says something of the task.
        """
        return self._change(task, self._beginning_again("snatch", task, delay))

    def restart(self, task: Task[Data] | int | str, *, delay: float | None = None) -> Task[Data]:
        """Make a waiting, done or zombie task ready, or waiting for ``delay`` seconds."""
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
        raise ArgumentError(f"{given!r} is none of the states {known}")
    return state


def _check_limit(limit: int | None) -> int | None:
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise ArgumentTypeError(f"limit is an int or None, not {type(limit).__name__}")
    if limit < 0:
        raise ArgumentError(f"limit is 0 or more, not {limit}")
    return limit
