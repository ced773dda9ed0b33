"""A job service with several tenants, where one that has very many jobs cannot starve the others.

Run it with a server of its own, or with yours:

    PRESSURE_URL=embedded:// python examples/fair_service.py
    PRESSURE_URL=redis://localhost:6379 python examples/fair_service.py

One tenant puts very many jobs, then three put a few, then two processes work. This is done twice,
first with a Queue and then with a FairQueue; the plot shows how long the jobs waited for them.
"""

import statistics
import time
from multiprocessing import Process

from pressure_mp import FairQueue, Queue

HOG_JOBS = 300
TENANTS = ["alice", "bob", "carol"]
JOBS = 10
WORKERS = 2
WORK_SECONDS = 0.004


def tenant_of(job: tuple[str, int]) -> str:
    """The key of a job. It is a function of the module, so that handles can be pickled."""
    return job[0]


def submit(jobs: Queue, tenant: str) -> None:
    for number in range(JOBS):
        jobs.put((tenant, number))


def work(jobs: Queue, delays: Queue) -> None:
    began = time.monotonic()
    for tenant, _ in jobs:
        delays.put((tenant, time.monotonic() - began))
        time.sleep(WORK_SECONDS)


def run(processes: list[Process]) -> None:
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def serve(jobs: Queue) -> dict[str, float]:
    """The median delay of each tenant's jobs, in milliseconds."""
    delays = Queue()
    for number in range(HOG_JOBS):
        jobs.put(("hog", number))
    tenants = [Process(target=submit, args=(jobs, tenant)) for tenant in TENANTS]
    workers = [Process(target=work, args=(jobs, delays)) for _ in range(WORKERS)]
    run(tenants)
    jobs.shutdown()  # no more jobs: the workers drain the queue and end
    run(workers)
    delays.shutdown()

    waited: dict[str, list[float]] = {}
    for tenant, delay in delays:
        waited.setdefault(tenant, []).append(delay * 1000)
    return {tenant: statistics.median(each) for tenant, each in waited.items()}


def main() -> None:
    served = {"Queue": serve(Queue()), "FairQueue": serve(FairQueue(tenant_of, maxsize=None))}
    longest = max(max(delays.values()) for delays in served.values())
    for tenant in ["hog", *TENANTS]:
        for kind, delays in served.items():
            bar = "#" * max(round(40 * delays[tenant] / longest), 1)
            print(f"{tenant:6} {kind:9} {bar} {delays[tenant]:.0f} ms")


if __name__ == "__main__":
    main()
