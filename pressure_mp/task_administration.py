"""What an administrator does with a queue of tasks: look, and put right."""

from __future__ import annotations

from typing import Any

from .operations.task_stats import TaskStats
from .task import UNCHANGED, Task


class TaskAdministration:
    """The part of :class:`pressure_mp.TaskQueue` that is for administrators.

    Nothing here waits. Where one task is meant, ``task`` is a :class:`Task` or an id, and the answer
    is the task as it is then, in state ``X`` if it is gone. Raises TaskNotFound, and WrongState for
    a task that is in another state, which the error names.
    """

    def stats(self) -> TaskStats:
        """How many tasks are in which state, and how many went which way so far; see TaskStats."""

    def kick(
        self,
        which: int | float | str | Task | None = None,
        *,
        id: int | str | None = None,
        delay: float | None = None,
        ttl: float | None = None,
        update: Any = UNCHANGED,
    ) -> int | Task:
        """Make buried tasks ready: the oldest ``which``, all without an argument; or one task.

        A number below 2**32 is how many; a greater one, which ids made of the time are, a str and a
        Task are one task, and so is ``id=``. Answers how many there were, or the task. With
        ``delay`` they wait first; ``ttl`` is as for put. Their deliveries are counted from 0 again.
        """

    #: The reference's other name for :meth:`kick`.
    dig = kick

    def kill(self, task: Task | int | str) -> Task:
        """Remove a task, in whatever state it is. Who has taken it is told when it says so next."""

    def peek(self, id: int | str) -> Task:
        """A task as it is. Nothing changes."""

    def list(
        self, state: str | None = None, tube: str | None = None, limit: int = 100
    ) -> list[Task]:
        """Up to ``limit`` tasks, of one state (a letter or a word) and one tube if given.

        In the order in which they are next: ready ones as they will be taken, waiting ones and
        zombies as they are due, taken ones by owner, buried and done ones the oldest first.
        """

    def truncate(self) -> int:
        """Remove all tasks, in whatever state; answers how many. Tasks that are put meanwhile may
        stay. Raises ..."""

    def move(self, task: Task | int | str, tube: str | None) -> Task:
        """Move a task to another tube, or to none. One that is taken leaves its taker, as by
        :meth:`snatch`."""

    def switch(
        self, task: Task | int | str, state: str, *, delay: float | None = None
    ) -> Task:
        """Put a task that is not taken into any state but taken, given as a letter or a word.

        ``delay`` is needed for waiting, and for zombie in a queue without such a time.
        """

    def snatch(self, task: Task | int | str, *, delay: float | None = None) -> Task:
        """Take a taken task from its owner: it is ready, or waits for ``delay`` seconds first.

        Raises NotTaken. The owner gets NotTaken or NotOwner when it acknowledges.
        """

    def restart(self, task: Task | int | str, *, delay: float | None = None) -> Task:
        """Make a waiting, done or zombie task ready, or waiting for ``delay`` seconds."""
