"""Two spawned workers that compute, and end at a sentinel; the results come back in a queue."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from typing import Any

WORKERS = 2


def work(jobs: Any, results: Any) -> None:
    for job in iter(jobs.get, None):
        results.put((job, sum(number * number for number in range(100))))


def main(module: str, count: int) -> None:
    queues = importlib.import_module(module)
    multiprocessing.set_start_method("spawn")
    jobs, results = queues.Queue(), queues.Queue()
    workers = [multiprocessing.Process(target=work, args=(jobs, results)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for job in range(count):
        jobs.put(job)
    for _ in workers:
        jobs.put(None)
    done = {results.get()[0] for _ in range(count)}
    for worker in workers:
        worker.join()
    print(f"all {len(done)} items")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
