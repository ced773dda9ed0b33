"""What the promises cost: each operation with a promise beside the same without it, in one run.

``python -m benchmarks.costs``, with the ``test`` extra installed. It starts its own server on
loopback. The two take turns in many short trials; each figure is the lowest decile of its trials,
because other programs on the machine only ever add to the time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pressure_mp import JoinableQueue, Queue
from pressure_mp.effects import AnyOperation
from pressure_mp.encoding.signing import Key, Signer
from pressure_mp.operations.control import FIFO
from pressure_mp.operations.objects import ObjectOperations

from .machine import stay_on_one_processor
from .server import Site, running

PAYLOAD = b"x" * 100
KEY = b"k" * 32
TRIAL = 200

Calls = dict[str, Callable[[], object]]


def measure(calls: Calls, rounds: int, trial: int = TRIAL) -> dict[str, float]:
    """Microseconds for each of the calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(trial):
                call()
            times[name].append((time.perf_counter() - begin) / trial * 1e6)
    return {name: statistics.quantiles(found, n=10)[0] for name, found in times.items()}


#: An import, the import that it is compared with, and how much of its time it should take at most.
IMPORTS = (
    ("import pressure_mp", "import multiprocessing.queues", 1.5),
    ("from pressure_mp import Queue", "import redis", 0.33),
)


def importing(rounds: int) -> None:
    """Processor time of a new interpreter, which another program on the machine stretches less."""
    for ours, theirs, goal in IMPORTS:
        times: dict[str, list[float]] = {ours: [], theirs: []}
        for _ in range(rounds):
            for statement, found in times.items():
                code = f"import time; t = time.process_time(); {statement}; "
                command = [sys.executable, "-c", code + "print(time.process_time() - t)"]
                run = subprocess.run(command, check=True, capture_output=True)
                found.append(float(run.stdout))
        cost, of = (statistics.median(found) * 1e3 for found in times.values())
        print(f"{ours:28} {cost:6.1f} ms, {theirs} {of:.1f} ms   ratio {cost / of:.2f} ({goal})")


def signatures(rounds: int) -> None:
    signer = Signer((Key(KEY),), "__pressure__", "costs")
    item = signer.sign(PAYLOAD)
    found = measure(
        {"sign": lambda: signer.sign(PAYLOAD), "check": lambda: signer.check(item)}, rounds
    )
    for name, cost in found.items():
        print(f"{name:28} {cost:6.2f} µs an item of {len(PAYLOAD)} B   (goal: under 3)")


def compare(what: str, without: Queue, with_it: Queue, rounds: int, goal: str = "") -> None:
    """Put and get in turns, so that neither queue grows."""
    for verb in ("put", "get"):
        calls: Calls = {
            name: (lambda q=q: q.put(PAYLOAD)) if verb == "put" else q.get
            for name, q in (("without", without), ("with", with_it))
        }
        found = measure(calls, rounds)
        show(f"{verb} {what}", found, goal if verb == "put" else "")


def show(what: str, found: dict[str, float], goal: str = "") -> None:
    without, with_it = found["without"], found["with"]
    print(
        f"{what:28} {with_it:6.1f} µs, without {without:6.1f} µs   "
        f"ratio {with_it / without:.3f}{goal}"
    )


class _Untold(ObjectOperations):
    """A put and a get that do not look whether a program listens."""

    def put_object(
        self, item: Any, block: bool, timeout: float | None, order: bytes = b""
    ) -> AnyOperation[None]:
        return self.put(self.codec.encode(item), block, timeout, order=order)

    def get_object(
        self, block: bool, timeout: float | None, eof: bool = False
    ) -> AnyOperation[Any]:
        if timeout is None and block and not eof:
            return self._usual_get
        return super().get_object(block, timeout, eof)


class _UntoldQueue(Queue):
    _make_operations = staticmethod(partial(_Untold, discipline=FIFO))


def in_flight(site: Site, rounds: int) -> None:
    """A JoinableQueue's get and task_done beside a Queue's."""
    plain, joinable = Queue(url=site.url), JoinableQueue(url=site.url)
    gets: Calls = {"without": plain.get, "with": joinable.get}
    done: Calls = {"without": plain.task_done, "with": joinable.task_done}
    times: dict[str, dict[str, list[float]]] = {"get": {}, "task_done": {}}
    for _ in range(rounds):
        for q in (plain, joinable):
            for _ in range(TRIAL):
                q.put(PAYLOAD)
        for verb, calls in (("get", gets), ("task_done", done)):
            for name, cost in measure(calls, 2, TRIAL // 2).items():
                times[verb].setdefault(name, []).append(cost)
    for verb, found in times.items():
        lowest = {name: statistics.quantiles(costs, n=10)[0] for name, costs in found.items()}
        show(f"{verb} of what stays in flight", lowest)


def main() -> None:
    os.environ["PRESSURE_SHARED_MEMORY"] = "0"  # measure queues at the broker
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    stay_on_one_processor()
    with running() as site:
        load = os.getloadavg()[0]
        print(f"Python {sys.version.split()[0]}, {site.server()}, load average {load:.1f}")
        importing(max(rounds // 10, 1))
        signatures(rounds)
        fragile, lasting = Queue(url=site.url, reconnect=0), Queue(url=site.url)
        compare("exactly once", fragile, lasting, rounds, "   (goal: under 1.05)")
        unsigned = Queue(name="unsigned", url=site.url)
        signed = Queue(name="signed", url=site.url, authkey=KEY)
        compare("signed", unsigned, signed, rounds)
        untold, told = _UntoldQueue(name="untold", url=site.url), Queue(name="told", url=site.url)
        compare("telemetry off", untold, told, rounds, "   (goal: under 1.01)")
        in_flight(site, rounds // 4)


if __name__ == "__main__":
    main()
