"""What this process says of its workers in one queue of tasks."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence

from .._version import __version__
from ..encoding.worker_texts import WorkerText
from ..in_flight import MOST_WORKERS

_numbers = itertools.count()


class Announcements:
    """The workers of this process. The broker is told of them with a renewal of the lease: when
    they have changed, and when a third of the lease is over."""

    def __init__(self) -> None:
        self._guard = threading.RLock()
        #: Each worker's concurrency, tubes, and when it began, on the monotonic clock.
        self._workers: dict[int, tuple[int, tuple[str, ...], float]] = {}
        self._since: dict[int, int] = {}
        #: The broker's clock less the monotonic clock, in milliseconds.
        self._clock: int | None = None
        self._told: list[str] = []
        self._told_at = 0.0

    def begin(self, concurrency: int, tubes: Sequence[str]) -> int:
        """Note that a worker begins; return its number, above 0."""
        number = 1 + next(_numbers) % (MOST_WORKERS - 1)
        with self._guard:
            self._workers[number] = concurrency, tuple(tubes), time.monotonic()
        return number

    def end(self, number: int) -> bool:
        """Note that a worker has ended; return whether the broker was told of it."""
        with self._guard:
            self._workers.pop(number, None)
            return self._since.pop(number, None) is not None

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
        with self._guard:
            for number, (_, _, began) in self._workers.items():
                self._since.setdefault(number, self._clock + int(began * 1000))
            texts = [
                WorkerText(number, concurrency, tubes, self._since[number], __version__).write()
                for number, (concurrency, tubes, _) in self._workers.items()
            ]
        is_due = bool(texts) and time.monotonic() - self._told_at >= every
        return texts if is_due or texts != self._told else None

    def note(self, told: list[str] | None, now: int) -> None:
        """Note what the broker was told, and the time by its clock."""
        if told is not None:
            self._told, self._told_at = told, time.monotonic()
        self._clock = now - int(time.monotonic() * 1000)
