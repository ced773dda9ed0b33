"""A home-made pool, with a queue of jobs and one of results, as an Executor.

    PRESSURE_URL=redis://broker.example:6379 python examples/executor_from_two_queues.py

Before, it was this, with ``Queue`` of multiprocessing or of this package:

    def work(jobs, results):
        while (job := jobs.get()) is not None:
            results.put((job, resize(job)))

    workers = [Process(target=work, args=(jobs, results)) for _ in range(2)]
    ...                                 # start them, put the jobs, and a None for each worker
    for _ in range(len(names)):
        job, done = results.get()       # which waits for ever for what a dead worker had

Each future has the result of its call, an error comes back as itself, another worker does the calls
of a dead one, and the program neither counts results nor sends ``None``.
"""

from concurrent.futures import as_completed

from pressure_mp import Executor

NAMES = ["a.jpg", "b.jpg", "broken.jpg", "c.jpg"]


def resize(name: str) -> str:
    if name.startswith("broken"):
        raise ValueError(f"{name} is no picture")
    return name.replace(".jpg", ".small.jpg")


def main() -> None:
    done, failed = [], []
    with Executor(max_workers=2) as executor:
        futures = [executor.submit(resize, name) for name in NAMES]
        for future in as_completed(futures):
            error = future.exception()
            if error is None:
                done.append(future.result())
            else:
                failed.append(f"{type(error).__name__}: {error}")
    print("resized:", *sorted(done))
    print("failed:", *failed)


if __name__ == "__main__":
    main()
