"""Whether more of something makes each operation slower: waiters, queues, items, bytes.

``python -m benchmarks.scale``, with the ``test`` extra installed. It starts its own server on
loopback. In each round every case takes its turn; each figure is the median of the rounds, and
beside it is its ratio to the first case. ``--items 10_000_000`` fills a queue that far, for which
the server needs about 2 GB.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from pressure_mp import Queue

from .server import Site, running

PAYLOAD = b"x" * 100
WAITERS = (1, 4, 16, 64, 256)
SIZES = tuple(64 << shift for shift in range(21))
TRIAL = 200

Times = dict[Any, list[float]]


def show(what: str, unit: str, times: Times) -> None:
    first = None
    for case, found in times.items():
        median = statistics.median(found)
        first = median if first is None else first
        print(
            f"{what:44} {case:>10,} {median:10.1f} {unit}   ratio {median / first:.2f}", flush=True
        )


@contextlib.contextmanager
def waiting(site: Site, number: int, target: Callable[[], object]) -> Iterator[None]:
    """So many threads run ``target`` and wait in it at the server."""
    threads = [threading.Thread(target=target) for _ in range(number)]
    for thread in threads:
        thread.start()
    with site.client() as client:
        while client.info("clients")["blocked_clients"] < number:
            time.sleep(0.01)
    yield
    for thread in threads:
        thread.join()


def hand_off(site: Site, consumers: int, rounds: int) -> list[float]:
    """Microseconds from a put to the return of the get that was waiting for it."""
    q = Queue(url=site.url)
    times: list[float] = []
    taken = threading.Semaphore(0)

    def consume() -> None:
        for begin in q:
            times.append((time.perf_counter() - begin) * 1e6)
            taken.release()

    with waiting(site, consumers, consume):
        for _ in range(rounds):
            q.put(time.perf_counter())
            taken.acquire()
            time.sleep(0.002)  # the consumer that was served stands in line again
        q.shutdown()
    q.close()
    return times


def space(site: Site, producers: int, rounds: int) -> list[float]:
    """Microseconds from a get to the return of the put that was waiting for space."""
    q = Queue(1, url=site.url)
    times: list[float] = []
    put = threading.Semaphore(0)
    begin = 0.0
    stopping = False
    q.put(0)

    def produce() -> None:
        while not stopping:
            q.put(0)
            times.append((time.perf_counter() - begin) * 1e6)
            put.release()

    with waiting(site, producers, produce):
        for _ in range(rounds):
            begin = time.perf_counter()
            q.get()
            put.acquire()
            time.sleep(0.002)
        stopping = True
        q.maxsize = 0
    q.close()
    return times[:rounds]


def flow(site: Site, consumers: int, count: int) -> list[float]:
    """Thousands of items a second from one producer to so many consumers, in threads."""
    q = Queue(url=site.url)

    def consume() -> None:
        for _ in q:
            pass

    with waiting(site, consumers, consume):
        begin = time.perf_counter()
        for _ in range(count):
            q.put(PAYLOAD)
        q.shutdown()
    taken = time.perf_counter() - begin
    q.close()
    return [count / taken / 1e3]


def crowds(site: Site, rounds: int) -> None:
    cases: dict[str, tuple[str, Callable[[int], list[float]]]] = {
        "put to get, so many consumers wait": ("µs", lambda n: hand_off(site, n, TRIAL)),
        "get to put, so many producers wait": ("µs", lambda n: space(site, n, TRIAL)),
        "from 1 producer to so many consumers": ("k items/s", lambda n: flow(site, n, 10 * TRIAL)),
    }
    for what, (unit, measure) in cases.items():
        times: Times = {number: [] for number in WAITERS}
        for _ in range(rounds):
            for number, found in times.items():
                found.append(statistics.median(measure(number)))
        show(what, unit, times)


def many_queues(site: Site, number: int, rounds: int) -> None:
    """A put and a get on each of so many queues in turn, and what the process has of each."""
    process = psutil.Process()
    before = process.memory_info().rss
    queues = [Queue(name=f"scale-{at}", url=site.url) for at in range(number)]
    times: dict[str, Times] = {verb: {1: [], number: []} for verb in ("put", "get")}
    for _ in range(rounds + 1):
        for verb, found in times.items():
            for among, used in ((1, queues[:1] * number), (number, queues)):
                begin = time.perf_counter()
                for q in used:
                    q.put(PAYLOAD) if verb == "put" else q.get()
                found[among].append((time.perf_counter() - begin) / number * 1e6)
    for verb, found in times.items():
        first = found[number].pop(0)
        show(f"{verb}, in turn on so many queues", "µs", found)
        print(f"    the first on each {first:49.1f} µs")
    connections = sum(1 for one in process.net_connections("tcp") if one.raddr)
    memory = (process.memory_info().rss - before) / number / 1024
    print(
        f"with {number:,} queues: {connections} connections, {threading.active_count()} threads, "
        f"{memory:.1f} KB each"
    )
    for q in queues:
        q.delete()


def depth(site: Site, items: int, rounds: int) -> None:
    """Microseconds of a put and a get with few items queued, and with many."""
    few, many = Queue(name="few", url=site.url), Queue(name="many", url=site.url)
    few.put_many([PAYLOAD] * 1000)
    begin = time.perf_counter()
    for _ in range(items // 100_000):
        many.put_many([PAYLOAD] * 100_000)
    print(f"{items:,} items were put in {time.perf_counter() - begin:.1f} s")
    queues = {1000: few, items: many}
    calls: dict[str, Callable[[Queue], object]] = {
        "put": lambda q: q.put(PAYLOAD),
        "get": lambda q: q.get(),
        "put_many of 500": lambda q: q.put_many([PAYLOAD] * 500),
        "get_many of 500": lambda q: q.get_many(500),
    }
    times: dict[str, Times] = {what: {number: [] for number in queues} for what in calls}
    for _ in range(rounds):
        for what, call in calls.items():
            for number, q in queues.items():
                begin = time.perf_counter()
                for _ in range(TRIAL):
                    call(q)
                times[what][number].append((time.perf_counter() - begin) / TRIAL * 1e6)
    for what, found in times.items():
        show(f"{what}, so many items queued", "µs", found)
    few.delete()
    many.delete()


def payloads(site: Site, rounds: int) -> None:
    """What a byte costs in a put and a get, in items of each size: never twice what it does in
    items half as large."""
    q = Queue(url=site.url)
    times: Times = {size: [] for size in SIZES}
    for _ in range(rounds):
        for size, found in times.items():
            item = os.urandom(size)
            trial = max(2, min(TRIAL, (16 << 20) // size))
            begin = time.perf_counter()
            for _ in range(trial):
                q.put(item)
                q.get()
            found.append((time.perf_counter() - begin) / trial / size * 1e9)
    before = None
    for size, found in times.items():
        median = statistics.median(found)
        ratio = "" if before is None else f"   ratio to half the size {median / before:.2f}"
        print(
            f"put and get, bytes in an item {size:25,} {1e3 / median:10.1f} MB/s{ratio}", flush=True
        )
        before = median


def main() -> None:
    os.environ["PRESSURE_SHARED_MEMORY"] = "0"  # measure queues at the broker
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=1000)
    parser.add_argument("--only", choices=("crowds", "queues", "depth", "payloads"))
    options = parser.parse_args()
    parts: dict[str, Callable[[Site], None]] = {
        "crowds": lambda site: crowds(site, options.rounds),
        "queues": lambda site: many_queues(site, options.queues, options.rounds),
        "depth": lambda site: depth(site, options.items, 4 * options.rounds),
        "payloads": lambda site: payloads(site, options.rounds),
    }
    with running() as site:
        load = os.getloadavg()[0]
        print(f"Python {sys.version.split()[0]}, {site.server()}, load average {load:.1f}")
        for name, part in parts.items():
            if options.only in (None, name):
                part(site)


if __name__ == "__main__":
    main()
