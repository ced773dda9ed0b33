"""The handlers of a run, and how their workers take tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from ...exceptions import ArgumentError, ArgumentTypeError
from ...handles.backoff import Backoff
from ...handles.base_task import check_on_error
from ...numeric import integer, seconds
from .batches import Gathering

#: Runs on a task. Its value is the task's result, if the result is to be kept.
Handler = Callable[[Any], object]

AnyJob = TypeVar("AnyJob", bound="Job")


@dataclass(frozen=True)
class Job:
    """A handler, and how its threads take tasks."""

    handler: Handler
    concurrency: int = 1
    tube: str | None = None
    ttr: float | None = None
    on_error: Literal["release", "bury"] = "release"
    backoff: Backoff | None = None
    prefetch: int = 0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.handler):
            raise ArgumentTypeError(
                f"a handler is called with a task; {type(self.handler).__name__} cannot be called"
            )
        integer("concurrency", self.concurrency, 1)
        integer("prefetch", self.prefetch, 0)
        if self.time_limit is not None and not seconds("time_limit", self.time_limit) > 0:
            raise ArgumentError(f"time_limit is more than 0 seconds, not {self.time_limit!r}")
        check_on_error(self.on_error, self.backoff)

    def at_a_time(self: AnyJob, number: int) -> AnyJob:
        """Return the job with so many calls of the handler at a time. Each task of a batch has a
        worker. Raises ArgumentError, ArgumentTypeError."""
        tasks = self.handler.size if isinstance(self.handler, Gathering) else 1
        return replace(self, concurrency=tasks * integer("concurrency", number, 1))

    @cached_property
    def taking(self) -> dict[str, Any]:
        """The options of its takes."""
        options = ("ttr", "tube", "on_error", "backoff")
        return {option: getattr(self, option) for option in options}


def choose(
    kind: type[AnyJob],
    handler: Handler | None,
    options: tuple[Any, ...],
    registered: Sequence[AnyJob],
) -> Sequence[AnyJob]:
    """Return the jobs of a run: one for the handler, with these options; or the registered jobs,
    which have options of their own. Raises ArgumentError, ArgumentTypeError."""
    if handler is not None:
        return [kind(handler, *options)]
    if options != tuple(field.default for field in fields(kind)[1:]):
        raise ArgumentError("these options are a handler's: give them to worker()")
    if not registered:
        raise ArgumentError("there is no handler: give one, or register it with worker()")
    return registered


def announced(jobs: Sequence[AnyJob]) -> tuple[int, list[str]]:
    """Return how many tasks these jobs process at a time, and of which tubes, as others see it."""
    tubes = dict.fromkeys(job.tube or "" for job in jobs)
    return sum(job.concurrency for job in jobs), list(tubes)


def resize(queue: Any, concurrency: int) -> None:
    """Have each handler that is registered with a queue, of either world, process so many tasks at
    a time, or so many batches. Raises ArgumentError, ArgumentTypeError."""
    queue._jobs = tuple(job.at_a_time(concurrency) for job in queue._jobs)


def check_max_tasks(most: int | None) -> float:
    """Return after how many tasks a run ends. Raises ArgumentError, ArgumentTypeError."""
    return math.inf if most is None else integer("max_tasks", most, 1)


def check_grace(grace: float | None) -> None:
    """Raises ArgumentError."""
    if grace is not None and not grace >= 0:
        raise ArgumentError(f"grace is 0 or more seconds, or None; not {grace!r}")
