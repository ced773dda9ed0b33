"""How exact timeouts are: what a get from an empty queue and a put on a full one took, beside
``multiprocessing.Queue`` in the same run.

Run it alone: ``python -m benchmarks.timeouts``. It starts its own server.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import statistics
import time
from collections.abc import Callable

from pressure_mp import JoinableQueue, Queue

#: Seconds that are asked for, and how often.
ASKED = {0.005: 200, 0.01: 200, 0.05: 60, 0.25: 20, 1.0: 10}


def late(asked: float, times: int, call: Callable[[float], object]) -> list[float]:
    """Milliseconds beyond what was asked."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        try:
            call(asked)
        except (queue.Empty, queue.Full):
            found.append((time.perf_counter() - begin - asked) * 1000)
        else:
            raise AssertionError("an empty queue has an item, or a full one space")
    return found


def main() -> None:
    os.environ["PRESSURE_SHARED_MEMORY"] = "0"  # measure queues at the broker
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="embedded://")
    parser.add_argument("--quick", action="store_true", help="a tenth of the times")
    options = parser.parse_args()

    empty, full = Queue(url=options.url), Queue(1, url=options.url)
    acknowledged = JoinableQueue(url=options.url)
    theirs_empty = multiprocessing.get_context("spawn").Queue()
    theirs_full = multiprocessing.get_context("spawn").Queue(1)
    full.put(None)
    theirs_full.put(None)
    cases: dict[str, Callable[[float], object]] = {
        "Queue.get": lambda asked: empty.get(timeout=asked),
        "Queue.put": lambda asked: full.put(None, timeout=asked),
        "JoinableQueue.get": lambda asked: acknowledged.get(timeout=asked),
        "multiprocessing get": lambda asked: theirs_empty.get(timeout=asked),
        "multiprocessing put": lambda asked: theirs_full.put(None, timeout=asked),
    }
    print("milliseconds later than asked: median, worst")
    for asked, times in ASKED.items():
        for name, call in cases.items():
            found = late(asked, max(times // 10, 3) if options.quick else times, call)
            print(
                f"{asked:6g} s  {name:20} {statistics.median(found):6.2f} {max(found):6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
