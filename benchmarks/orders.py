"""What the other orders cost: a fair get among many keys, and one item among idle consumers.

Run it alone: ``python benchmarks/orders.py``. It starts its own server; each figure is a median.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable

from pressure_mp import FairQueue, LifoQueue, PriorityQueue, Queue

SAMPLES = 2000
FEW, MANY = 10, 100_000
CONSUMERS = 32


def key_of(item: str) -> str:
    return item.partition(" ")[0]


def microseconds(calls: int, call: Callable[[], object]) -> float:
    """The median of single calls."""
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def fair_with_keys(url: str, keys: int) -> tuple[float, float]:
    """Microseconds of a put and of a get, with so many keys that have items queued."""
    with FairQueue(key_of, None, url=url, serializer="text") as queue:
        for number in range(max(keys, 2 * SAMPLES)):
            queue.put(f"{number % keys} item")
        numbers = iter(range(SAMPLES))
        put = microseconds(SAMPLES, lambda: queue.put(f"{next(numbers) % keys} item"))
        get = microseconds(SAMPLES, queue.get)
        return put, get


def wake_up(make: Callable[[], Queue], consumers: int, rounds: int = 200) -> float:
    """Milliseconds from a put to the get that returns it, when all consumers are idle."""
    queue = make()
    times: list[float] = []
    taken = threading.Semaphore(0)

    def consume() -> None:
        for begin in queue:
            times.append(time.perf_counter() - begin)
            taken.release()

    threads = [threading.Thread(target=consume) for _ in range(consumers)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)  # until all of them wait
    for _ in range(rounds):
        queue.put(time.perf_counter())
        taken.acquire()
        time.sleep(0.005)
    queue.shutdown()
    for thread in threads:
        thread.join()
    queue.close()
    return statistics.median(times) * 1e3


def constant(item: object) -> int:
    return 0


def main() -> None:
    os.environ["PRESSURE_SHARED_MEMORY"] = "0"  # measure queues at the broker
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="embedded://")
    url = parser.parse_args().url

    few_put, few_get = fair_with_keys(url, FEW)
    many_put, many_get = fair_with_keys(url, MANY)
    print(f"FairQueue with {FEW:,} keys: put {few_put:.0f} µs, get {few_get:.0f} µs")
    print(f"FairQueue with {MANY:,} keys: put {many_put:.0f} µs, get {many_get:.0f} µs")
    print(f"ratio: put {many_put / few_put:.2f}, get {many_get / few_get:.2f}")

    makes: dict[str, Callable[[], Queue]] = {
        "Queue": lambda: Queue(url=url),
        "LifoQueue": lambda: LifoQueue(url=url),
        "PriorityQueue": lambda: PriorityQueue(url=url),
        "FairQueue": lambda: FairQueue(constant, url=url),
    }
    for name, make in makes.items():
        one, all_of_them = wake_up(make, 1), wake_up(make, CONSUMERS)
        print(
            f"{name}, put to get: 1 idle consumer {one:.2f} ms, {CONSUMERS} {all_of_them:.2f} ms, "
            f"ratio {all_of_them / one:.2f}"
        )


if __name__ == "__main__":
    main()
