"""What signing costs: microseconds an item, and the ratio of a signed put to an unsigned one.

Run it with the ``test`` extra installed: ``python benchmarks/signing.py``. It starts its own server
on loopback. Every figure is the median of several rounds, in which the peers take turns.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import sys
from collections.abc import Callable

from core import PAYLOAD, rate, start_server

from pressure_mp import Queue
from pressure_mp.signing import Key, Signer

LARGE = b"x" * 10_000_000


def medians(calls: dict[str, Callable[[], object]], rounds: int, count: int) -> dict[str, float]:
    """Microseconds for each of the calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(1e6 / rate(call, count))
    return {name: statistics.median(found) for name, found in times.items()}


def signatures(rounds: int, count: int) -> None:
    signer = Signer((Key(b"k" * 32),), "__pressure__", "signing")
    small, large = signer.sign(PAYLOAD), signer.sign(LARGE)
    found = medians(
        {"sign": lambda: signer.sign(PAYLOAD), "check": lambda: signer.check(small)}, rounds, count
    )
    for name, time in found.items():
        print(f"{name:5} an item of {len(PAYLOAD)} B   {time:6.2f} µs   (goal: under 3)")
    found = medians(
        {"sign": lambda: signer.sign(LARGE), "check": lambda: signer.check(large)}, rounds, 5
    )
    for name, time in found.items():
        print(f"{name:5} an item of 10 MB   {time / 1000:6.2f} ms")


def puts(port: int, rounds: int, count: int) -> None:
    url = f"redis://127.0.0.1:{port}"
    queues = {
        "unsigned": Queue(name="unsigned", url=url),
        "signed": Queue(name="signed", url=url, authkey=b"k" * 32),
    }
    for operation in ("put", "get"):
        calls: dict[str, Callable[[], object]] = {
            name: (lambda q=q: q.put(PAYLOAD)) if operation == "put" else q.get
            for name, q in queues.items()
        }
        found = medians(calls, rounds, count)
        plain, signed = found["unsigned"], found["signed"]
        print(
            f"{operation}   unsigned {plain:6.1f} µs   signed {signed:6.1f} µs   "
            f"difference {signed - plain:5.1f} µs   ratio {signed / plain:.3f}"
        )


def unpickling(rounds: int, count: int) -> None:
    copy = pickle.dumps(Queue(name="unpickled", url="memory://", authkey=b"k" * 32))
    (time,) = medians({"loads": lambda: pickle.loads(copy)}, rounds, count).values()
    print(f"a signed queue's handle unpickles in {time:.1f} µs   (goal: under 50)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--count", type=int, default=2000)
    options = parser.parse_args()
    server, port = start_server()
    try:
        print(f"Python {sys.version.split()[0]}")
        signatures(options.rounds, options.count)
        puts(port, options.rounds, options.count)
        unpickling(options.rounds, options.count)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
