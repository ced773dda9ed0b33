"""A JoinableQueue of jobs for each of two workers, and one of results for all: so pools such as
mpire's are made."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from typing import Any

WORKERS = 2


def work(jobs: Any, results: Any) -> None:
    while (job := jobs.get()) is not None:
        results.put((job, sum(number * number for number in range(100))))
        jobs.task_done()
    jobs.task_done()
    results.join()


def main(module: str, count: int) -> None:
    queues = importlib.import_module(module)
    jobs = [queues.JoinableQueue() for _ in range(WORKERS)]
    results = queues.JoinableQueue()
    workers = [multiprocessing.Process(target=work, args=(own, results)) for own in jobs]
    for worker in workers:
        worker.start()
    for job in range(count):
        jobs[job % WORKERS].put(job)
    done = set()
    for _ in range(count):
        done.add(results.get()[0])
        results.task_done()
    for own in jobs:
        own.put(None)
        own.join()
    for worker in workers:
        worker.join()
    print(f"all {len(done)} items")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
