"""A bounded pipeline: a fast producer is held back by slow workers.

Run it with a server of its own, or with yours:

    PRESSURE_URL=embedded:// python examples/bounded_pipeline.py
    PRESSURE_URL=redis://localhost:6379 python examples/bounded_pipeline.py

One process makes jobs as fast as it can, three work on them slowly, one collects the results.
Never more than MAXSIZE jobs lie in the queue: ``put`` waits until there is space.
"""

import time
from multiprocessing import Process

from pressure_mp import Queue

JOBS = 60
MAXSIZE = 4
WORKERS = 3
WORK_SECONDS = 0.02


def produce(jobs: Queue, report: Queue) -> None:
    deepest, waited = 0, 0.0
    for number in range(JOBS):
        begin = time.monotonic()
        jobs.put(number)
        waited += time.monotonic() - begin
        deepest = max(deepest, jobs.qsize())
    jobs.shutdown()  # no more jobs: the workers' loops end when the queue is empty
    report.put((deepest, waited))


def work(jobs: Queue, results: Queue) -> None:
    for number in jobs:
        time.sleep(WORK_SECONDS)
        results.put(number * number)


def collect(results: Queue, report: Queue) -> None:
    squares = list(results)
    report.put((len(squares), sum(squares)))


def main() -> None:
    jobs, results = Queue(MAXSIZE), Queue(MAXSIZE)
    production, collection = Queue(), Queue()

    workers = [Process(target=work, args=(jobs, results)) for _ in range(WORKERS)]
    others = [
        Process(target=produce, args=(jobs, production)),
        Process(target=collect, args=(results, collection)),
    ]
    for process in workers + others:
        process.start()
    for process in workers:
        process.join()
    results.shutdown()  # no more results: the collector's loop ends

    deepest, waited = production.get()
    print(f"the producer waited {waited:.2f} s; most jobs in the queue: {deepest} of {MAXSIZE}")
    count, total = collection.get()
    print(f"{count} results, their sum is {total}")
    for process in others:
        process.join()


if __name__ == "__main__":
    main()
