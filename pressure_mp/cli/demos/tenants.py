"""The processes of the demo ``fair``: tenants put jobs, and a worker does them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from .stages import AnyQueue

#: A job: the name of its tenant.
Job = tuple[str]
#: Seconds that all jobs of each tenant waited until they were done, from when work began.
Delays = dict[str, list[float]]


class Countable(AnyQueue, Protocol):
    """A queue that says how many items it has."""

    def qsize(self) -> int: ...


def tenant(job: Job) -> str:
    """Return a job's key."""
    return job[0]


def submit(jobs: AnyQueue, name: str, number: int) -> None:
    """Put a tenant's jobs."""
    for _ in range(number):
        jobs.put((name,))


def work(jobs: Countable, reports: AnyQueue, number: int, seconds: float) -> None:
    """Do so many jobs, each of which takes so many seconds; put the delays at the end.

    Begins when all jobs are queued, however slowly processes start here.
    """
    while jobs.qsize() < number:
        time.sleep(seconds)
    began = time.monotonic()
    delays: Delays = {}
    for _ in range(number):
        (name,) = jobs.get()
        time.sleep(seconds)
        delays.setdefault(name, []).append(time.monotonic() - began)
    reports.put(delays)


def bars(rows: list[tuple[str, str, float]], width: int, show: Callable[[str], Any]) -> None:
    """Draw a plot: a title, a label and a bar for each row, and its value in milliseconds."""
    longest = max(value for _, _, value in rows)
    for title, label, value in rows:
        bar = "█" * max(round(width * value / longest), 1)
        show(f"{title:8} {label:9} {bar} {value * 1000:.0f} ms")
