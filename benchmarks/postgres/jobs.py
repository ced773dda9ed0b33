"""Jobs at a steady rate, at a depth, in chaos and beside an old snapshot, beside other job queues.

``python -m benchmarks.postgres.jobs``, with the ``bench`` extra and PostgreSQL installed;
``--only`` chooses workloads, ``--systems`` the job queues, and ``--seconds`` says how long each one
lasts. One process puts jobs, and one handles them, 32 at a time, each for a millisecond. Commits
wait for the disk. The systems take turns, each at a database of its own; a figure is the median of
the rounds.

- ``rate``: 800 jobs are put in a second, one in each call. Of each, the time from its put to the
  begin of its handler; how many were put, as a put may take longer; and how many had not begun at
  the end.
- ``depth``: the producer keeps 2,000 jobs waiting, put 500 in each call. How many are handled in a
  second.
- ``chaos``: as ``rate``, at 200 jobs in a second; the process that handles jobs is killed three
  times and started again at once. How many jobs were lost, or ran twice, and the longest time in
  which none began.
- ``held``: as ``depth``, while a transaction keeps an old snapshot. The rate in the last third of
  the time, compared with the first.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import psycopg

from .job_systems import SYSTEMS, System
from .server import running

WORKERS, RATE, CHAOS_RATE, KILLS, DEPTH, BATCH = 32, 800, 200, 3, 2_000, 500
#: Seconds after the last put in which jobs still count; and in which jobs of a killed process run
#: again.
AFTER, LEASES = 2.0, 40.0
_spawn = multiprocessing.get_context("spawn")

Figures = dict[str, float]


def _work(kind: type[System], url: str, path: str) -> None:
    """Handle jobs until this process is killed; note when each began."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(job: str) -> None:
        number, put, _ = job.split(" ", 2)
        os.write(file, f"{number} {put} {time.time()}\n".encode())

    kind(url).work(WORKERS, note)


class Trial:
    """A system at work: its process that handles jobs, and the notes of this."""

    def __init__(self, kind: type[System], url: str, path: Path) -> None:
        self._kind, self._url, self.path = kind, url, path
        kind(url).install()
        self.put = kind(url).putting()
        self.number = 0
        self.start()
        self.put_jobs(1)  # all is connected when this has begun
        while not self.begun():
            time.sleep(0.01)

    def start(self) -> None:
        self._process = _spawn.Process(
            target=_work, args=(self._kind, self._url, str(self.path)), daemon=True
        )
        self._process.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def put_jobs(self, number: int) -> None:
        """Put jobs of 100 bytes, in one call."""
        first, self.number = self.number, self.number + number
        now = time.time()
        self.put([f"{one} {now} ".ljust(100, "x") for one in range(first, self.number)])

    def begun(self) -> list[tuple[int, float, float]]:
        """The number of each job that began, when it was put, and when it began."""
        if not self.path.exists():
            return []
        lines = self.path.read_text().splitlines()
        return [(int(one), float(put), float(at)) for one, put, at in map(str.split, lines)]

    def put_at(self, rate: int, seconds: float) -> Iterator[None]:
        """Put one job after the other, at this rate, or as fast as the system's put is."""
        begin, place = time.time(), 0
        while (due := begin + place / rate) < begin + seconds and time.time() < begin + seconds:
            time.sleep(max(due - time.time(), 0.0))
            self.put_jobs(1)
            place += 1
            yield

    def keep_depth(self, seconds: float) -> tuple[float, float]:
        """Keep so many jobs waiting; returns when this began and ended."""
        begin = time.time()
        while time.time() < begin + seconds:
            waiting = self.number - sum(1 for _ in self.path.open())
            if waiting < DEPTH:
                self.put_jobs(BATCH)
            else:
                time.sleep(0.01)
        return begin, begin + seconds


def rate(trial: Trial, seconds: float) -> Figures:
    for _ in trial.put_at(RATE, seconds):
        pass
    time.sleep(AFTER)
    waits = sorted(1000 * (at - put) for _, put, at in trial.begun()[1:])
    last = trial.number - 1
    late = [one for one in waits if one > 1000 * AFTER]
    return {
        "put/s": last / seconds,
        "p50, ms": statistics.median(waits),
        "p95, ms": waits[len(waits) * 95 // 100],
        "not begun, or later than 2 s": last - len(waits) + len(late),
    }


def depth(trial: Trial, seconds: float) -> Figures:
    begin, end = trial.keep_depth(seconds)
    begun = [at for _, _, at in trial.begun() if begin <= at < end]
    return {"jobs/s": len(begun) / seconds}


def chaos(trial: Trial, seconds: float) -> Figures:
    begin, kills = time.time(), 0
    for _ in trial.put_at(CHAOS_RATE, seconds):
        if kills < KILLS and time.time() - begin > seconds * (kills + 1) / (KILLS + 1):
            kills += 1
            trial.kill()
            trial.start()
    end = time.time() + LEASES
    while time.time() < end and len({one for one, *_ in trial.begun()}) < trial.number:
        time.sleep(0.1)
    begun = trial.begun()
    times = sorted(at for _, _, at in begun)
    gaps = [after - before for before, after in pairwise(times)]
    numbers = {one for one, *_ in begun}
    return {
        "lost": trial.number - len(numbers),
        "twice": len(begun) - len(numbers),
        "longest pause, s": max(gaps),
    }


def held(trial: Trial, seconds: float) -> Figures:
    with psycopg.connect(trial._url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM pg_class")
        begin, _ = trial.keep_depth(seconds)
    third = seconds / 3
    first, _, last = (
        sum(begin + part * third <= at < begin + (part + 1) * third for _, _, at in trial.begun())
        for part in range(3)
    )
    return {"first third, jobs/s": first / third, "last third, jobs/s": last / third}


WORKLOADS: dict[str, Callable[[Trial, float], Figures]] = {
    "rate": rate,
    "depth": depth,
    "chaos": chaos,
    "held": held,
}


_numbers = itertools.count()


@contextlib.contextmanager
def _database(url: str) -> Iterator[str]:
    """Make a database for one trial; returns its URL, which no trial had before."""
    name = f"trial_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{url.rpartition('/')[0]}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def measure(url: str, system: str, workload: str, seconds: float) -> Figures:
    with tempfile.TemporaryDirectory() as folder, _database(url) as own:
        trial = Trial(SYSTEMS[system], own, Path(folder, "begun"))
        try:
            return WORKLOADS[workload](trial, seconds)
        finally:
            trial.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    options = parser.parse_args()
    with running("synchronous_commit=on", "max_connections=200") as url:
        for workload in options.only:
            print(f"{workload}: load average {os.getloadavg()[0]:.1f}", flush=True)
            found: dict[str, list[Figures]] = {system: [] for system in options.systems}
            for _ in range(options.rounds):
                for system in options.systems:
                    found[system].append(measure(url, system, workload, options.seconds))
            for system, rounds in found.items():
                told = ", ".join(
                    f"{name} {statistics.median(one[name] for one in rounds):,.1f}"
                    for name in rounds[0]
                )
                kind = SYSTEMS[system]
                print(f"  {f'{kind.title} {kind.version()}':28} {told}", flush=True)


if __name__ == "__main__":
    main()
