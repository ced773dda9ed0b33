"""Decide which of a handler's workers takes tasks, which acknowledges, and which works.

A book without I/O, locks or threads: each worker asks it for its next step, and tells it what came
of the step. Threads and asyncio tasks do the steps.

One worker takes, for all workers that have no task, and it acknowledges first what is done by
then. While its take waits, another worker acknowledges what is done meanwhile. So there are two
calls at a time, and each is for as many tasks as there are. At a broker whose calls are cheap, some
workers that are done while the first makes its call do not wait for it, and take for themselves. A
worker begins with a task that it took itself: a single worker does all without another thread.

A run that prefetches has more tasks in hand than workers. When half of the prefetched tasks are
begun, a worker takes more before it begins the next one, without waiting for them. It acknowledges
first what is done, unless a call was made in the last ``MOMENT``.

A task whose ttr was over while its handler goes on may come again. Then it is begun when that
handler has ended: a run never runs two deliveries of a task at a time.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...handles.base_task import BaseTask

AnyTask = TypeVar("AnyTask", bound=BaseTask[Any])

#: Wakes a worker, so that it asks for its next step; it may be called at any time.
Wake = Callable[[], None]


@dataclass(slots=True)
class Begin(Generic[AnyTask]):
    """Run the handler on a task, which was taken at that time; then call ``finished`` or
    ``drop``."""

    task: AnyTask
    taken: float


@dataclass(slots=True)
class Take(Generic[AnyTask]):
    """Acknowledge the tasks that are done; then take up to ``number`` tasks. If this ``waits`` for
    one, call ``waits`` when the wait begins and when it ends. Call ``took`` or ``shut`` in the
    end. ``beside``: another worker takes too."""

    number: int
    done: list[AnyTask]
    waits: bool
    beside: bool = False


@dataclass(slots=True)
class Acknowledge(Generic[AnyTask]):
    """Acknowledge the tasks that are done; then call ``acknowledged``."""

    done: list[AnyTask]


class Rest(enum.Enum):
    """Wait to be woken, and then ask again; or end."""

    WAIT = enum.auto()
    END = enum.auto()


class _Taking(enum.Enum):
    """Whether a worker takes: it makes calls, or waits for a task."""

    NO = enum.auto()
    CALLS = enum.auto()
    WAITS = enum.auto()


#: Seconds after a call in which a run that prefetches acknowledges nothing, if it has more to do.
MOMENT = 0.02

Step = Begin[AnyTask] | Take[AnyTask] | Acknowledge[AnyTask] | Rest


def tasks_of(step: Step[AnyTask]) -> list[AnyTask]:
    """Return the tasks that a worker has for a step."""
    match step:
        case Begin():
            return [step.task]
        case Take() | Acknowledge():
            return step.done
    return []


class Dispatch(Generic[AnyTask]):
    """The workers of one handler, and the tasks that they have in hand: never more tasks than
    workers, and ``prefetch`` more, as a task counts until the broker has its acknowledgement."""

    def __init__(self, workers: int, takes_at_a_time: int, prefetch: int = 0) -> None:
        self._most = workers + prefetch
        self._prefetch = prefetch
        #: Whether the last take got all tasks that were ready.
        self._found_all = False
        #: When the last call began, on the clock of :meth:`next`.
        self._called = 0.0
        #: The number of tasks in hand: taken, and not known to be settled; or asked for.
        self._held = 0
        #: Tasks that no worker has begun.
        self._ready: deque[Begin[AnyTask]] = deque()
        #: The ids of the tasks that workers have begun; and the next delivery of some of these.
        self._begun: set[bytes] = set()
        self._came_again: dict[bytes, Begin[AnyTask]] = {}
        self._done: list[AnyTask] = []
        self._taking = _Taking.NO
        self._acknowledges = False
        #: How many more workers may take while a worker takes that may wait.
        self._more = takes_at_a_time - 1
        #: The workers that wait to be woken, the longest waiting first.
        self._idle: dict[Wake, None] = {}
        #: The workers that end, as the queue is shut down.
        self._dismissed: set[Wake] = set()

    def next(self, wake: Wake, is_ending: bool, now: float) -> Step[AnyTask]:
        """Return the next step of the worker that ``wake`` wakes, at a time in seconds. A run that
        ``is_ending`` takes no more tasks."""
        self._idle.pop(wake, None)
        takes = not is_ending and wake not in self._dismissed
        ahead = takes and self._prefetch and self._taking is not _Taking.CALLS
        if self._ready and ahead and (step := self._call_ahead(now)) is not None:
            return step
        if (begin := self._begin()) is not None:
            return begin
        if takes:
            if self._taking is _Taking.NO:
                if self._room():  # else another worker acknowledges at this moment
                    return self._take(now, waits=True)
            elif self._taking is _Taking.CALLS and self._done and self._more:
                self._more -= 1
                return self._take_beside()
            elif self._taking is _Taking.WAITS and self._done and not self._acknowledges:
                return self._acknowledge(now)
            self._idle[wake] = None
            return Rest.WAIT
        if self._done and not self._acknowledges:
            return self._acknowledge(now)
        return Rest.END

    def _begin(self) -> Begin[AnyTask] | None:
        """Begin the next ready task, if there is one that no worker has begun."""
        while self._ready:
            begin = self._ready.popleft()
            id = begin.task.id_bytes
            if id not in self._begun:
                self._begun.add(id)
                return begin
            self._came_again[id] = begin
            self._held -= 1  # it keeps no worker from another task
        return None

    def _end(self, task: AnyTask) -> None:
        id = task.id_bytes
        self._begun.discard(id)
        if (again := self._came_again.pop(id, None)) is not None:
            self._ready.appendleft(again)
            self._held += 1

    def _call_ahead(self, now: float) -> Take[AnyTask] | Acknowledge[AnyTask] | None:
        """Return the call that a worker makes before it begins a ready task, if there is one."""
        is_short = 2 * len(self._ready) <= self._prefetch and not self._found_all
        if self._taking is _Taking.NO and is_short and self._room():
            return self._take(now, waits=False)
        if self._done and not self._acknowledges and now - self._called >= MOMENT:
            return self._acknowledge(now)
        return None

    def _room(self) -> int:
        """Return how many tasks may be taken when what is done is acknowledged."""
        return self._most - self._held + len(self._done)

    def _take(self, now: float, waits: bool) -> Take[AnyTask]:
        self._taking, self._called = _Taking.CALLS, now
        number, done = self._room(), self._take_done()
        self._held += number - len(done)  # first these are acknowledged
        return Take(number, done, waits)

    def _take_beside(self) -> Take[AnyTask]:
        """Take while another worker makes a take: one task for each that is acknowledged."""
        done = self._take_done()
        return Take(len(done), done, waits=False, beside=True)

    def _take_done(self) -> list[AnyTask]:
        done, self._done = self._done, []
        return done

    def _acknowledge(self, now: float) -> Acknowledge[AnyTask]:
        self._acknowledges, self._called = True, now
        return Acknowledge(self._take_done())

    def finished(self, task: AnyTask) -> None:
        """Note that a handler has returned, so that the task is to be acknowledged."""
        self._done.append(task)
        self._end(task)

    def drop(self, task: AnyTask) -> None:
        """Note that a task that was begun is no longer in hand: it was released, buried,
        acknowledged or lost."""
        self._held -= 1
        self._end(task)

    def waits(self, is_waiting: bool) -> None:
        """Note that the worker that takes begins to wait for a task, or stops."""
        self._taking = _Taking.WAITS if is_waiting else _Taking.CALLS
        if is_waiting and self._done:
            self._wake(1)

    def took(self, step: Take[AnyTask], tasks: list[AnyTask], now: float) -> None:
        """Note what a step took by now. The worker begins with one of the tasks, and wakes workers
        for the others, and to take the next."""
        self._held += len(tasks) - step.number
        self._ready.extend(Begin(task, now) for task in tasks)
        if step.beside:
            self._more += 1
            self._wake(len(tasks) - 1)
        else:
            self._taking = _Taking.NO
            self._found_all = len(tasks) < step.number
            self._wake(len(tasks))

    def shut(self, step: Take[AnyTask], wake: Wake) -> None:
        """Note that the queue is shut down, and no task is ready. The worker of that step ends, and
        so do the workers that wait, unless tasks are to be acknowledged first."""
        self.took(step, [], 0.0)
        if not self._done:
            self._dismissed |= {wake, *self._idle}
            self._wake(len(self._idle))

    def leave_ready(self) -> list[AnyTask]:
        """Return the tasks that no worker has begun, and forget them: the run ends."""
        left = [begin.task for begin in self._ready]
        self._held -= len(left)
        left += [begin.task for begin in self._came_again.values()]
        self._ready.clear()
        self._came_again.clear()
        return left

    def leave_done(self) -> list[AnyTask]:
        """Return the tasks that are done and that no worker acknowledges, and forget them: the run
        ends."""
        done = self._take_done()
        self._held -= len(done)
        return done

    def acknowledged(self, number: int) -> None:
        """Note that a step :class:`Acknowledge` is over."""
        self._acknowledges = False
        self._held -= number

    def _wake(self, number: int) -> None:
        """Wake workers; the last that came is the first, as its memory is warm."""
        for _ in range(min(number, len(self._idle))):
            self._idle.popitem()[0]()
