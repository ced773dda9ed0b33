"""Messages to a service that is down for a while: tried again after 0.1, 0.2, 0.4, … seconds.

Run it with a server of its own, or with yours:

    PRESSURE_URL=embedded:// python examples/delayed_retries.py
    PRESSURE_URL=redis://localhost:6379 python examples/delayed_retries.py

A message whose delivery fails is released with a delay; the queue gives it out again when the time
has come, and nothing else has to run for that. In the end it is buried. A reminder is put with a
delay in the first place.
"""

import logging
import threading
import time

from pressure_mp import Task, TaskQueue, TaskState

FIRST_RETRY = 0.1
DOWN_SECONDS = 0.6

messages = TaskQueue(max_deliveries=5)
STARTED = time.monotonic()


def exponential(deliveries: int) -> float:
    """Seconds until the next delivery, after so many."""
    return FIRST_RETRY * 2 ** (deliveries - 1)


@messages.worker(concurrency=2, backoff=exponential)
def send(task: Task) -> None:
    now = time.monotonic() - STARTED
    if task.data == "to nobody":
        raise LookupError("there is no such address")
    if now < DOWN_SECONDS:
        raise ConnectionError("the service is down")
    print(f"{task.data!r} was sent at delivery {task.deliveries}, after {now:.1f} s")


def finished() -> int:
    """How many messages were delivered or given up."""
    stats = messages.stats()
    return stats.transitions.get("T-X", 0) + stats.counts[TaskState.BURIED]


def main() -> None:
    logging.getLogger("pressure_mp").setLevel(logging.CRITICAL)  # errors are expected here
    ids = messages.put_many(["hello", "to nobody"])
    ids.append(messages.put("a reminder", delay=1))

    done = threading.Event()
    working = threading.Thread(target=messages.run, kwargs={"stop": done})
    working.start()
    while finished() < len(ids):
        time.sleep(0.05)
    done.set()
    working.join()

    for task in messages.list("buried"):
        print(f"{task.data!r} was given up after {task.deliveries} deliveries: {task.error}")


if __name__ == "__main__":
    main()
