"""What tasks cost in batches of several sizes, and how many several callers handle in a second.

``python -m benchmarks.postgres.tasks``, with the ``bench`` extra and PostgreSQL installed;
``--only`` chooses. Each figure is the median of the rounds. The figures of a batch are the
microseconds of one of its tasks, and the bytes of the write-ahead log for all three calls together.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier

import psycopg

from pressure_mp import TaskQueue

from .peers import PAYLOAD
from .server import running

SIZES = (1, 16, 128, 1000)
#: Tasks of each size in a round, at most so many calls.
TASKS, CALLS = 2_000, 60
#: The workers of ``run``, with how many tasks they prefetch; and the seconds that a handler takes.
WORKERS, HANDLING = ((1, 0), (1, 30), (16, 0), (16, 16), (64, 0)), 0.001
#: Tasks that ``run`` handles in a round.
HANDLED = 2_000
#: Processes that put single tasks at a time, and the tasks of each.
PROCESSES, EACH = 16, 60
#: The ready tasks of a queue that is asked for its size.
READY = 100_000
_fork = multiprocessing.get_context("fork")

Figures = Iterator[tuple[str, float]]


def _queue(url: str, name: str) -> TaskQueue[bytes]:
    return TaskQueue(name, url=f"{url}{'&' if '?' in url else '?'}create=1")


def _asked(url: str, statement: str) -> float:
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
        assert row is not None
        return float(row[0])


def _log(url: str) -> float:
    return _asked(url, "SELECT pg_current_wal_insert_lsn() - '0/0'")


def batches(url: str) -> Figures:
    """One client puts, takes and acknowledges."""
    queue = _queue(url, "batches")
    for size in SIZES:
        calls = min(TASKS // size, CALLS)
        jobs = [PAYLOAD] * size
        times: dict[str, list[float]] = defaultdict(list)
        before = _log(url)
        for _ in range(calls):
            begin = time.perf_counter()
            queue.put_many(jobs)
            put = time.perf_counter()
            tasks = queue.take_many(size)
            taken = time.perf_counter()
            queue.ack_many(tasks)
            end = time.perf_counter()
            assert len(tasks) == size
            for name, spent in (("put", put - begin), ("take", taken - put), ("ack", end - taken)):
                times[name].append(spent / size * 1e6)
        for name, spents in times.items():
            yield f"{size}: {name}_many, µs", statistics.median(spents)
        yield f"{size}: log, bytes", (_log(url) - before) / calls / size


def single(url: str) -> Figures:
    """One client puts one task after the other, and takes and acknowledges each."""
    queue = _queue(url, "single")
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(200):
        begin = time.perf_counter()
        queue.put(PAYLOAD)
        put = time.perf_counter()
        task = queue.take()
        taken = time.perf_counter()
        task.ack()
        end = time.perf_counter()
        for name, spent in (("put", put - begin), ("take", taken - put), ("ack", end - taken)):
            times[name].append(spent * 1e6)
    for name, spents in times.items():
        yield f"single {name}, µs", statistics.median(spents)


def workers(url: str) -> Figures:
    """``run`` with threads whose handlers take a millisecond."""
    for number, prefetch in WORKERS:
        queue = _queue(url, f"workers-{number}-{prefetch}")
        queue.put_many([PAYLOAD] * HANDLED)
        queue.shutdown()
        begin = time.perf_counter()
        queue.run(lambda _: time.sleep(HANDLING), concurrency=number, prefetch=prefetch)
        queue.delete()
        ahead = f", prefetch {prefetch}" if prefetch else ""
        yield f"run, {number} workers{ahead}, tasks/s", HANDLED / (time.perf_counter() - begin)


def _put(url: str, start: Barrier, end: Barrier) -> None:
    queue = _queue(url, "processes")
    start.wait()
    for _ in range(EACH):
        queue.put(PAYLOAD)
    end.wait()


def processes(url: str) -> Figures:
    """Several processes put one task after the other."""
    start, end = _fork.Barrier(PROCESSES + 1), _fork.Barrier(PROCESSES + 1)
    putting = [_fork.Process(target=_put, args=(url, start, end)) for _ in range(PROCESSES)]
    for process in putting:
        process.start()
    start.wait(60)
    begin = time.perf_counter()
    end.wait(60)
    spent = time.perf_counter() - begin
    for process in putting:
        process.join()
    yield f"put, {PROCESSES} processes, tasks/s", PROCESSES * EACH / spent
    queue = _queue(url, "processes")
    while queue.qsize():
        queue.ack_many(queue.take_many(1000))


def sizes(url: str) -> Figures:
    """``qsize`` of a queue with many tasks."""
    queue = _queue(url, "sizes")
    queue.put_many([PAYLOAD] * (READY - queue.qsize()))
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        queue.qsize()
        times.append((time.perf_counter() - begin) * 1e6)
    yield f"qsize, {READY:,} ready, µs", statistics.median(times)


MEASURES: dict[str, Callable[[str], Figures]] = {
    "single": single,
    "batches": batches,
    "workers": workers,
    "processes": processes,
    "sizes": sizes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    options = parser.parse_args()
    for setting in ("synchronous_commit=on", "synchronous_commit=off"):
        with running(setting) as url:
            print(f"{setting}: load average {os.getloadavg()[0]:.1f}", flush=True)
            found: dict[str, list[float]] = defaultdict(list)
            for _ in range(options.rounds):
                for name in options.only:
                    for title, figure in MEASURES[name](url):
                        found[title].append(figure)
            for title, figures in found.items():
                print(f"  {title:32} {statistics.median(figures):10,.1f}")


if __name__ == "__main__":
    main()
