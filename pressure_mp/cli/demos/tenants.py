"""What the processes of the demo ``fair`` do: tenants that put jobs, and one that works on them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from .stages import AnyQueue

#: A job: whose it is, and when it was put, on the clock that all processes of a machine share.
Job = tuple[str, float]
#: Seconds from put to done, of all jobs of each tenant.
Delays = dict[str, list[float]]


class Countable(AnyQueue, Protocol):
    """A queue that says how many items it has."""

    def qsize(self) -> int: ...


def tenant(job: Job) -> str:
    """A job's key."""
    return job[0]


def submit(jobs: AnyQueue, name: str, number: int, pause: float) -> None:
    """Put a tenant's jobs, with pauses of so many seconds in between."""
    for _ in range(number):
        jobs.put((name, time.monotonic()))
        time.sleep(pause)


def work(jobs: Countable, reports: AnyQueue, number: int, seconds: float, ready: int) -> None:
    """Do so many jobs, each of which takes so many seconds; put the delays at the end.

    Begins when ``ready`` jobs are queued: then every tenant has begun, however slowly processes
    start here.
    """
    while jobs.qsize() < ready:
        time.sleep(seconds)
    delays: Delays = {}
    for _ in range(number):
        name, put_at = jobs.get()
        time.sleep(seconds)
        delays.setdefault(name, []).append(time.monotonic() - put_at)
    reports.put(delays)


def bars(rows: list[tuple[str, str, float]], width: int, show: Callable[[str], Any]) -> None:
    """A plot: a title, a label and a bar for each row, and its value in milliseconds."""
    longest = max(value for _, _, value in rows)
    for title, label, value in rows:
        bar = "█" * max(round(width * value / longest), 1)
        show(f"{title:8} {label:9} {bar} {value * 1000:.0f} ms")
