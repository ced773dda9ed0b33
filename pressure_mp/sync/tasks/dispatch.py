"""Decide which of a handler's workers takes tasks, which acknowledges, and which works.

A book without I/O, locks or threads: each worker asks it for its next step, and tells it what came
of the step. Threads and asyncio tasks do the steps.

One worker takes, for all workers that have no task, and it acknowledges first what is done by
then. While its take waits, another worker acknowledges what is done meanwhile. So there are two
calls at a time, and each is for as many tasks as there are. At a broker whose calls are cheap, some
workers that are done while the first makes its call do not wait for it, and take for themselves. A
worker begins with a task that it took itself: a single worker does all without another thread.
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
    """Run the handler on a task; then call ``finished`` or ``drop``."""

    task: AnyTask


@dataclass(slots=True)
class Take(Generic[AnyTask]):
    """Acknowledge the tasks that are done; then take up to ``number`` tasks. If this ``waits`` for
    one, call ``waits`` when the wait begins and when it ends. Call ``took`` or ``shut`` in the
    end."""

    number: int
    done: list[AnyTask]
    waits: bool


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


Step = Begin[AnyTask] | Take[AnyTask] | Acknowledge[AnyTask] | Rest


class Dispatch(Generic[AnyTask]):
    """The workers of one handler, and the tasks that they have in hand: never more tasks than
    workers, as a task counts until the broker has its acknowledgement."""

    def __init__(self, workers: int, takes_at_a_time: int) -> None:
        self._workers = workers
        #: The number of tasks in hand: taken, and not known to be settled; or asked for.
        self._held = 0
        self._ready: deque[AnyTask] = deque()
        self._done: list[AnyTask] = []
        self._taking = _Taking.NO
        self._acknowledges = False
        #: How many more workers may take while a worker takes that may wait.
        self._more = takes_at_a_time - 1
        #: The workers that wait to be woken, the longest waiting first.
        self._idle: dict[Wake, None] = {}
        #: The workers that end, as the queue is shut down.
        self._dismissed: set[Wake] = set()

    def next(self, wake: Wake, is_ending: bool) -> Step[AnyTask]:
        """Return the next step of the worker that ``wake`` wakes. A run that ``is_ending`` takes no
        more tasks."""
        self._idle.pop(wake, None)
        if self._ready:
            return Begin(self._ready.popleft())
        if not is_ending and wake not in self._dismissed:
            if self._taking is _Taking.NO:
                # Not 0, unless another worker acknowledges at this moment.
                number = self._workers - self._held + len(self._done)
                if number:
                    self._taking = _Taking.CALLS
                    return self._take(number, waits=True)
            elif self._taking is _Taking.CALLS and self._done and self._more:
                self._more -= 1
                return self._take(len(self._done), waits=False)
            elif self._taking is _Taking.WAITS and self._done and not self._acknowledges:
                return self._acknowledge()
            self._idle[wake] = None
            return Rest.WAIT
        if self._done and not self._acknowledges:
            return self._acknowledge()
        return Rest.END

    def _take(self, number: int, waits: bool) -> Take[AnyTask]:
        done = self._take_done()
        self._held += number - len(done)  # first these are acknowledged
        return Take(number, done, waits)

    def _take_done(self) -> list[AnyTask]:
        done, self._done = self._done, []
        return done

    def _acknowledge(self) -> Acknowledge[AnyTask]:
        self._acknowledges = True
        return Acknowledge(self._take_done())

    def finished(self, task: AnyTask) -> None:
        """Note that a handler has returned, so that the task is to be acknowledged."""
        self._done.append(task)

    def drop(self) -> None:
        """Note that a task is no longer in hand: it was released, buried, acknowledged or lost."""
        self._held -= 1

    def waits(self, is_waiting: bool) -> None:
        """Note that the worker that takes begins to wait for a task, or stops."""
        self._taking = _Taking.WAITS if is_waiting else _Taking.CALLS
        if is_waiting and self._done:
            self._wake(1)

    def took(self, step: Take[AnyTask], tasks: list[AnyTask]) -> None:
        """Note what a step took. The worker begins with one of the tasks, and wakes workers for the
        others, and to take the next."""
        self._held += len(tasks) - step.number
        self._ready.extend(tasks)
        if step.waits:
            self._taking = _Taking.NO
            self._wake(len(tasks))
        else:
            self._more += 1
            self._wake(len(tasks) - 1)

    def shut(self, step: Take[AnyTask], wake: Wake) -> None:
        """Note that the queue is shut down, and no task is ready. The worker of that step ends, and
        so do the workers that wait, unless tasks are to be acknowledged first."""
        self.took(step, [])
        if not self._done:
            self._dismissed |= {wake, *self._idle}
            self._wake(len(self._idle))

    def acknowledged(self, number: int) -> None:
        """Note that a step :class:`Acknowledge` is over."""
        self._acknowledges = False
        self._held -= number

    def _wake(self, number: int) -> None:
        """Wake workers; the last that came is the first, as its memory is warm."""
        for _ in range(min(number, len(self._idle))):
            self._idle.popitem()[0]()
