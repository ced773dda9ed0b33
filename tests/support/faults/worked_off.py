"""Restarts, kills and the end of a queue of tasks in the fault suite."""

from __future__ import annotations

import random
import signal
import time

from brokers.broker import Broker
from waiting import until

from faults.nursery import Nursery
from pressure_mp import TaskQueue

#: Seconds in which a task is worked off at least, once nothing happens any more.
QUIET = 30.0


def processed(queue: TaskQueue) -> int:
    return queue.stats().transitions.get("T-X", 0)


def unfinished(queue: TaskQueue) -> int:
    counts = queue.stats().counts
    return counts["R"] + counts["W"] + counts["T"]


def restart(
    server: Broker, queue: TaskQueue, nursery: Nursery, times: int, chance: random.Random
) -> None:
    """Kill the server and start it again, so many times: each time tasks are processed after it."""
    for _ in range(times):
        time.sleep(chance.uniform(0.3, 1))
        server.kill()
        time.sleep(chance.uniform(0, 1))
        server.start()
        before = processed(queue)
        until(lambda before=before: processed(queue) > before)
        nursery.check()


def end_producers(nursery: Nursery) -> None:
    """Kill them: they have nothing in hand."""
    for client in nursery.running("put_tasks"):
        client.send(signal.SIGKILL)


def work_off(queue: TaskQueue, nursery: Nursery) -> None:
    """Kick the buried tasks, wait until each task is done or buried again, and shut down."""
    queue.kick_many()
    while unfinished(queue):
        before = processed(queue)
        until(lambda before=before: processed(queue) > before or not unfinished(queue), QUIET)
    queue.shutdown()
    nursery.wait(QUIET)
