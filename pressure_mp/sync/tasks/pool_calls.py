"""The calls that a run of handlers makes for its workers, once for threads and asyncio.

They are coroutine functions. In a thread nothing in them suspends: their calls block.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from ...background.announcing import Announced
from ...background.takers import Takers
from ...exceptions import (
    DecodingError,
    EncodingError,
    ItemTooLargeError,
    PressureError,
    QueueDoesNotExistError,
    ShutDown,
    TaskError,
    TaskNotFound,
)
from ...operations.task_taking import Delivery
from ...states import TAKEN
from .dispatch import AnyTask, Take
from .jobs import Job, announced, check_grace, check_max_tasks
from .outages import PASSING, Outages, of_run
from .periodic import PeriodicPuts

#: The error of a task that is given back.
UNFINISHED = "its worker ended before it was finished"

_log = logging.getLogger("pressure_mp")

AnyJob = TypeVar("AnyJob", bound=Job)
#: Makes a call, or returns the coroutine that does.
Calling = Callable[[], Any]
#: Is told when a take begins to wait for a task, and when it stops.
Note = Callable[[bool], None]


@dataclass(frozen=True)
class Run(Generic[AnyJob]):
    """A run of handlers on a queue of tasks."""

    name: str
    worker: Announced
    jobs: Sequence[AnyJob]
    grace: float | None
    outages: Outages
    #: To handle before the run ends.
    max_tasks: float
    takes_at_a_time: int
    #: Take tasks, acknowledge tasks, give back a task that no handler began: blocks, or returns a
    #: coroutine.
    take: Callable[..., Any]
    acknowledge: Callable[..., Any]
    release_unbegun: Callable[..., Any]
    #: The tasks of this process.
    here: Takers


@contextmanager
def begun(
    queue: Any,
    jobs: Sequence[AnyJob],
    grace: float | None,
    max_outage: float | None,
    max_tasks: int | None,
) -> Iterator[Run[AnyJob]]:
    """Begin a run of these jobs, by a handle of either world; its queue's periodic tasks are put
    meanwhile. Raises ArgumentError, ArgumentTypeError, HandleClosedError."""
    at = queue._at
    check_grace(grace)
    outages = of_run(at.name, max_outage, at.options.reconnect)
    most = check_max_tasks(max_tasks)
    at.check_open()
    takes = at.address.capabilities.takes_at_a_time
    with PeriodicPuts(at), at.here.announced(*announced(jobs)) as worker:
        take = partial(queue._take_for_run, worker.number)
        calls = take, queue._acknowledge_for_run, queue._release_unbegun
        yield Run(at.name, worker, jobs, grace, outages, most, takes, *calls, at.here)


class PoolCalls(Generic[AnyTask]):
    """The part of a worker pool that makes calls. While the broker does not answer, or has no
    memory, each call is made again until the run ends; then it raises the error."""

    _run: Run[Any]

    @property
    def _is_ending(self) -> bool:
        """Whether the run takes no more tasks."""
        raise NotImplementedError

    async def _call(self, call: Calling) -> Any:
        """Return the result of a call, or of the coroutine that it returns."""
        raise NotImplementedError

    async def _finish(self, call: Calling) -> Any:
        """Do the same; nothing cancels it."""
        raise NotImplementedError

    async def _pause(self) -> None:
        """Wait before a call is made again."""
        raise NotImplementedError

    async def _persist(
        self, do: Callable[[Calling], Coroutine[Any, Any, Any]], call: Calling
    ) -> Any:
        while True:
            tried = time.monotonic()
            try:
                found = await do(call)
            except PASSING as error:
                if self._is_ending:
                    raise
                self._run.outages.failed(error, tried)
                await self._pause()
            else:
                self._run.outages.answered()
                return found

    async def _take_after(
        self, job: Job, step: Take[AnyTask], timeout: float | None, note: Note | None
    ) -> list[AnyTask]:
        """Take tasks after acknowledging what is done."""
        done: list[AnyTask] = []

        def take() -> Any:
            nonlocal done
            done = not_acknowledged(step.done)
            return self._run.take(step.number, done, timeout, note, **job.taking)

        taken: Delivery[AnyTask]
        try:
            taken = await self._persist(self._call, take)
        except ItemTooLargeError:  # a result
            await self._acknowledge_all(done)
            return []
        except PressureError as error:
            if not _is_of_a_buried_task(error):
                raise
            taken = [], error, {}
        tasks, problem, refused = taken
        if problem is not None:
            _log.error("a task of %r was buried", self._run.name, exc_info=problem)
        if refused:
            await self._bury_each(done, refused)
        return tasks

    async def _acknowledge_all(self, done: list[AnyTask]) -> None:
        """Acknowledge tasks, in one call if the broker stores all results. Give them back if a
        queue is shut down into which their handlers put."""
        left: list[AnyTask] = []

        def acknowledge() -> Any:
            nonlocal left
            left = not_acknowledged(done)
            return self._run.acknowledge(left)

        try:
            problems = await self._persist(self._finish, acknowledge)
            await self._bury_each(left, problems)
        except ShutDown:
            await self._give_back(done)
        except ItemTooLargeError as error:
            if len(left) == 1:
                await self._bury_each(left, {0: error})
                return
            for task in left:
                await self._acknowledge_all([task])

    async def _bury_each(
        self, done: Sequence[AnyTask], problems: Mapping[int, PressureError]
    ) -> None:
        """Bury the tasks whose results cannot be encoded or stored, now or later; log which tasks
        were acknowledged too late. Raises any other error."""
        for place, error in problems.items():
            if isinstance(error, (EncodingError, ItemTooLargeError)):
                task: Any = done[place]
                _log.error(
                    "task %r of %r is buried, its result cannot be kept",
                    *(task.id, self._run.name),
                    exc_info=error,
                )
                await self._settle(partial(task.bury, error=error))
            elif isinstance(error, TaskError):
                say_late(error)
            else:
                raise error

    async def _settle(self, settle: Calling) -> None:
        """Settle a task; log if that is too late."""
        try:
            await self._persist(self._finish, settle)
        except TaskError as error:
            say_late(error)

    async def _settle_failed(self, task: Any, error: BaseException) -> None:
        """Settle a task whose handler raised ``error``. Bury it if the broker does not store
        that."""
        try:
            await self._settle(partial(task.fail, error))
        except ItemTooLargeError as problem:
            problem.__context__ = None  # it leads to the error that is too large
            await self._bury_each([task], {0: problem})

    async def _give_back(self, unfinished: Sequence[Any], unbegun: Sequence[Any] = ()) -> None:
        """Release the tasks that this process has and does not finish: what their handlers do with
        them from now on is refused. No handler began the ``unbegun`` ones. If the broker does not
        answer, or refuses that, they are released later."""
        left, here = deque[tuple[Any, str | None]](), self._run.here
        left += [(task, UNFINISHED) for task in not_acknowledged(unfinished)]
        left += [(task, None) for task in unbegun]
        try:
            while left and not here.releases_later:
                await self._release(*left[0])
                left.popleft()
        except PressureError as error:
            _log.warning(
                "%d tasks of %r are given back when the broker answers: %s",
                *(len(left), self._run.name, error),
            )
        finally:
            if left:
                here.release_later({(task.id_bytes, task.call): why for task, why in left})

    async def _release(self, task: Any, error: str | None) -> None:
        if error is None:
            release = partial(self._run.release_unbegun, task)
        else:
            _log.warning("task %r of %r is given back: %s", task.id, self._run.name, error)
            release = partial(task.release, error=error)
        try:
            await self._finish(release)
        except (TaskError, QueueDoesNotExistError):
            pass  # it was finished at this moment, or removed


def not_acknowledged(done: Sequence[AnyTask]) -> list[AnyTask]:
    """Return the tasks that this process may still have: the calls before may have acknowledged
    some, before a call failed."""
    return [task for task in done if task.state == TAKEN]


def say_late(error: TaskError) -> None:
    """Log what a handler that came too late is told."""
    if isinstance(error, TaskNotFound):
        _log.warning("a handler worked on a task that was removed meanwhile: %s", error)
    else:
        _log.warning("a handler came too late, and its task may run again: %s", error)


def _is_of_a_buried_task(error: PressureError) -> bool:
    """Whether a take raised it for a task that cannot be used."""
    from ...authentication import AuthenticationError

    return isinstance(error, (AuthenticationError, DecodingError))
