"""The Executor beside the standard library's ProcessPoolExecutor; and, where they are installed,
beside the executors of dask.distributed and of mpi4py.

``python -m benchmarks.executor``, with the ``test`` extra installed. It starts its own server on
loopback, and each executor with two workers. In each round both executors take their turn at every
case; each figure is the median of the rounds. The peers come after these, one after the other: the
processes of some work also while they have nothing to do. For mpi4py, Open MPI has to be allowed to
start processes: as root that is ``PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1``.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pressure_mp import Executor

from . import machine
from .server import Site, running

WORKERS = 2
CHUNK = 100
#: Seconds in which a peer's workers are there.
START_LIMIT = 60
#: Bytes of a result that is large.
LARGE = 1_000_000
OURS, STDLIB = "pressure_mp", "ProcessPoolExecutor"
#: What ``submit`` and ``map`` are to reach beside the standard library, and beside dask.
GOALS = {
    "latency": ("µs", "≥ 0.33", "≥ 2"),
    "throughput": ("calls/s", "≥ 0.5", "≥ 2"),
    f"map(chunksize={CHUNK})": ("inputs/s", "≥ 0.9", ""),
    "results of 1 MB": ("results/s", "≥ 0.5", ""),
}


def nothing(number: int = 0) -> int:
    return number


def large(number: int) -> Any:
    """An array where there is numpy, which is pickled without a copy; else bytes."""
    try:
        import numpy
    except ImportError:
        return bytes(LARGE)
    return numpy.ones(LARGE, dtype="u1")


# The cases: each returns a rate


def latency(executor: Any, number: int) -> float:
    """One call after the other."""
    begin = time.perf_counter()
    for _ in range(number):
        executor.submit(nothing).result()
    return number / (time.perf_counter() - begin)


def throughput(executor: Any, number: int) -> float:
    """All calls are submitted, then their results are had."""
    begin = time.perf_counter()
    for future in [executor.submit(nothing, place) for place in range(number)]:
        future.result()
    return number / (time.perf_counter() - begin)


def chunks(executor: Any, number: int) -> float:
    begin = time.perf_counter()
    for _ in executor.map(nothing, range(number), chunksize=CHUNK):
        pass
    return number / (time.perf_counter() - begin)


def arrays(executor: Any, number: int) -> float:
    begin = time.perf_counter()
    for _ in executor.map(large, range(number)):
        pass
    return number / (time.perf_counter() - begin)


#: By case and executor.
Rates = dict[str, dict[str, float]]
Case = Callable[[Any, int], float]
CASES: dict[str, tuple[Case, int]] = dict(
    zip(GOALS, ((latency, 500), (throughput, 5000), (chunks, 100_000), (arrays, 60)), strict=True)
)


# The executors


@contextmanager
def dask() -> Iterator[Any]:
    distributed = importlib.import_module("distributed")
    cluster = distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster) as client, client.get_executor(pure=False) as found:
        yield found


@contextmanager
def mpi() -> Iterator[Any]:
    with importlib.import_module("mpi4py.futures").MPIPoolExecutor(WORKERS) as found:
        yield found


#: What has to be installed for a peer, and how it is started.
PEERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "dask": ("distributed", dask),
    "mpi4py": ("mpi4py", mpi),
}
#: dask's ``map`` knows nothing of chunks: each input is a call of its own.
IN_VAIN = {("dask", f"map(chunksize={CHUNK})")}


def start(stack: ExitStack, site: Site) -> dict[str, Any]:
    """Ours and the standard library's, with their workers."""
    context = get_context("forkserver")
    found: dict[str, Any] = {
        STDLIB: stack.enter_context(futures.ProcessPoolExecutor(WORKERS, mp_context=context)),
        OURS: stack.enter_context(Executor(WORKERS, mp_context=context, url=site.url)),
    }
    for executor in found.values():
        throughput(executor, 100)  # its workers are there
    return found


def measure_peers(names: list[str], peers: list[str], rounds: int, part: int) -> Rates:
    """The peers that are installed, each by itself."""
    rates: Rates = {}
    for peer in peers:
        module, begin = PEERS[peer]
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"without {peer}: {error}")
            continue
        with begin() as executor:
            try:
                executor.submit(nothing).result(START_LIMIT)
            except (futures.BrokenExecutor, futures.TimeoutError) as error:
                print(f"without {peer}, whose workers do not start: {error!r}")
                continue
            for name, by_name in measure({peer: executor}, names, rounds, part).items():
                rates.setdefault(name, {}).update(by_name)
    return rates


# Processor time, which other programs on the machine change less


class Meter:
    """The processor time of this process, of an executor's workers and of the server."""

    def __init__(self, site: Site, executor: Any) -> None:
        self._pids = [site.pid, *executor._processes]

    def read(self) -> dict[str, float]:
        server, *workers = map(seconds_of, self._pids)
        return {"client": time.process_time(), "workers": sum(workers), "server": server}


def seconds_of(pid: int) -> float:
    """How long a process has run so far, as Linux knows it."""
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def costs(site: Site, executor: Any, case: Case, number: int) -> str:
    meter = Meter(site, executor)
    before = meter.read()
    case(executor, number)
    after = meter.read()
    return ", ".join(f"{part} {(after[part] - before[part]) / number * 1e6:.1f}" for part in after)


# What waits


def pending(site: Site, number: int) -> str:
    """So many futures of which nothing is heard: what they need."""
    with Executor(0, "pending", url=site.url) as executor, site.client() as client:
        executor.submit(nothing).cancel()
        threads, connections = threading.active_count(), len(client.client_list())
        begin = time.perf_counter()
        waiting = [executor.submit(nothing) for _ in range(number)]
        seconds = time.perf_counter() - begin
        threads = threading.active_count() - threads
        connections = len(client.client_list()) - connections
        executor.shutdown(cancel_futures=True)
        assert all(future.cancelled() for future in waiting)
    return (
        f"{number:,} futures that wait, submitted to a named executor in {seconds:.1f} s: "
        f"{threads} threads and {connections} connections more than one has"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--quick", action="store_true", help="little of everything, to try it out")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    options = parser.parse_args()
    part, rounds = (50, 1) if options.quick else (1, options.rounds)
    with running() as site, ExitStack() as stack:
        executors = start(stack, site)
        print(f"Python {sys.version.split()[0]}, {site.server()}, load averages {machine.load()}")
        rates = measure(executors, options.only, rounds, part)
        if Path("/proc/self/schedstat").exists():
            print("\nµs of processor time of a call, or input:")
            for name in options.only:
                case, number = CASES[name]
                for title in (STDLIB, OURS):
                    told = costs(site, executors[title], case, max(number // part, 1))
                    print(f"  {name}, {title}: {told}")
        print(f"\n{pending(site, 10_000 // part)}")
    for name, by_name in measure_peers(options.only, options.peers, rounds, part).items():
        rates[name] |= by_name
    show(rates)
    print(f"load averages {machine.load()}")


def measure(executors: dict[str, Any], names: list[str], rounds: int, part: int) -> Rates:
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for name in names:
            case, number = CASES[name]
            for title, executor in executors.items():
                if (title, name) in IN_VAIN:
                    continue
                share = part if title in (OURS, STDLIB) else 5 * part  # others take longer
                rate = case(executor, max(number // share, 2))
                found.setdefault(name, {}).setdefault(title, []).append(rate)
    return {
        name: {title: statistics.median(rates) for title, rates in by_name.items()}
        for name, by_name in found.items()
    }


def show(rates: Rates) -> None:
    print(
        "\n| | unit | executor | | ours beside it | goal |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, by_name in rates.items():
        unit, beside_stdlib, beside_dask = GOALS[name]
        goals = {STDLIB: beside_stdlib, "dask": beside_dask}
        for title, rate in by_name.items():
            told = 1e6 / rate if unit == "µs" else rate
            ratio = "" if title == OURS else f"{by_name[OURS] / rate:.2f}"
            print(f"| {name} | {unit} | {title} | {told:,.0f} | {ratio} | {goals.get(title, '')} |")


if __name__ == "__main__":
    main()
