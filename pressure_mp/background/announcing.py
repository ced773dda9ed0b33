"""Tell the broker which workers this process has in one queue of tasks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

from .._version import __version__
from ..encoding.worker_texts import WorkerText
from ..in_flight import MOST_WORKERS

_numbers = itertools.count()


#: The most late tasks that a worker names.
_MOST_LATE = 10


class Announced:
    """A worker of this process."""

    def __init__(self, number: int, concurrency: int, tubes: Sequence[str]) -> None:
        #: Above 0; no other worker of this process has it.
        self.number = number
        self.concurrency, self._tubes = concurrency, tuple(tubes)
        self._began = time.monotonic()
        #: When it began, by the broker's clock, in milliseconds; None before the broker was told.
        self.since: int | None = None
        self._late: dict[int | str, None] = {}

    def begin_late(self, id: int | str) -> None:
        """Note that the ttr of a task is over, and its handler goes on."""
        self._late[id] = None

    def end_late(self, id: int | str) -> None:
        """Note that the handler of a task has ended."""
        self._late.pop(id, None)

    def write(self, clock: int) -> str:
        """Say what it is; ``clock`` is the broker's clock less the monotonic clock."""
        if self.since is None:
            self.since = clock + int(self._began * 1000)
        late = tuple(self._late.copy())[:_MOST_LATE]
        what = self.concurrency, self._tubes, self.since, __version__, late
        return WorkerText(self.number, *what).write()


class Announcements:
    """The workers of this process. The broker is told of them with a renewal of the lease: when
    they have changed, and when a third of the lease is over."""

    def __init__(self) -> None:
        self._workers: dict[int, Announced] = {}
        #: The broker's clock less the monotonic clock, in milliseconds.
        self._clock: int | None = None
        self._told: list[str] = []
        self._told_at = 0.0

    def begin(self, concurrency: int, tubes: Sequence[str]) -> Announced:
        """Note that a worker begins."""
        number = 1 + next(_numbers) % (MOST_WORKERS - 1)
        worker = self._workers[number] = Announced(number, concurrency, tubes)
        return worker

    def end(self, worker: Announced) -> bool:
        """Note that a worker has ended; return whether the broker was told of it."""
        self._workers.pop(worker.number, None)
        return worker.since is not None

    def __bool__(self) -> bool:
        """Tell whether there are workers, or the broker believes so."""
        return bool(self._workers or self._told)

    @property
    def know_the_time(self) -> bool:
        """Tell whether the broker's clock is known, so that the broker can be told."""
        return self._clock is not None

    def news(self, every: float) -> list[str] | None:
        """Return what the broker is to be told now; None when it knows that. It is told again
        after so many seconds: then the lease is to be renewed, and other processes may have taken
        this one for dead."""
        if self._clock is None:  # nor is it known when they began
            return None
        texts = [worker.write(self._clock) for worker in self._workers.copy().values()]
        is_due = bool(texts) and time.monotonic() - self._told_at >= every
        return texts if is_due or texts != self._told else None

    def note(self, told: list[str] | None, now: int) -> None:
        """Note what the broker was told, and the time by its clock."""
        if told is not None:
            self._told, self._told_at = told, time.monotonic()
        self._clock = now - int(time.monotonic() * 1000)
