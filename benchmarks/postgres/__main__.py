"""What single operations, batches and tasks cost in PostgreSQL, beside others that keep queues
there; with a million queued; and while a transaction has an old snapshot.

``python -m benchmarks.postgres``, with the ``bench`` extra and PostgreSQL installed; ``--only``
chooses. It starts its own servers on loopback: with their defaults, and so that no commit waits for
the disk. The queues take turns in many short trials; each figure is the lowest decile of its
trials, because other programs on the machine only ever add to the time. The server and all
processes share one processor.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import psycopg

from ..machine import stay_on_one_processor
from .peers import (
    Ours,
    OursByPriority,
    OursFair,
    OursInBatches,
    OursJoinable,
    OursLast,
    OurTasks,
    OurTasksByPriority,
    OurTasksInTubes,
    OurWorker,
    Peer,
    Pgmq,
    Pgqueuer,
    Procrastinate,
    Skipping,
)
from .server import running

TRIAL = 20
FEW, MANY = 1_000, 1_000_000
#: Operations while a transaction has an old snapshot, and how many of them are one figure.
CURVE, PART = 200_000, 20_000


def opened(kinds: Sequence[type[Peer]], url: str) -> list[Peer]:
    """The queues that can be used here; print why others cannot."""
    found = []
    for kind in kinds:
        try:
            found.append(kind(url))
        except (ImportError, psycopg.errors.FeatureNotSupported) as error:
            print(f"  {kind.title} is left out: {str(error).splitlines()[0]}")
    return found


def costs(peers: Sequence[Peer], rounds: int, trial: int = TRIAL) -> dict[str, tuple[float, float]]:
    """Microseconds of a put and of a get of each, which take turns."""
    times: dict[str, tuple[list[float], list[float]]] = {peer.title: ([], []) for peer in peers}
    for peer in peers:  # statements are prepared, plans are made
        peer.put(trial)
        peer.get(trial)
    for _ in range(rounds):
        for peer in peers:
            for call, found in zip((peer.put, peer.get), times[peer.title], strict=True):
                begin = time.perf_counter()
                call(trial)
                found.append((time.perf_counter() - begin) / trial * 1e6)
    for peer in peers:
        peer.close()
    return {
        title: (statistics.quantiles(put, n=10)[0], statistics.quantiles(get, n=10)[0])
        for title, (put, get) in times.items()
    }


def show(found: dict[str, tuple[float, float]]) -> None:
    """Ratios are of rates: the first queue's rate to each."""
    ours = next(iter(found.values()))
    for title, (put, get) in found.items():
        print(
            f"  {title:28} put {put:7.1f} µs ({put / ours[0]:.2f}×), get {get:7.1f} µs "
            f"({get / ours[1]:.2f}×), both {put + get:7.1f} µs ({(put + get) / sum(ours):.2f}×)"
        )


def single(url: str, rounds: int) -> None:
    """Single operations of 100 bytes."""
    show(costs(opened((Ours, Skipping, Pgmq, Pgqueuer), url), rounds))


def tasks(url: str, rounds: int) -> None:
    """A task is put, taken and acknowledged."""
    show(costs(opened((OurWorker, OurTasks, Procrastinate, Pgqueuer), url), rounds))


def batches(url: str, rounds: int) -> None:
    """Batches of 500, for each item, beside single operations."""
    one = costs([Ours(url, "one")], rounds)
    many = costs([OursInBatches(url, "many")], max(rounds // 5, 5), 1000)
    show(many | one)


def depth(url: str, rounds: int) -> None:
    """With a thousand queued, and with a million."""
    peers = []
    for number in (FEW, MANY):
        peer = OursInBatches(url, f"depth-{number}")
        peer.put(number)
        single = Ours(url, f"depth-{number}")
        single.title = f"{number:,} queued"
        peers.append(single)
    show(costs(peers, rounds))


def curve(of: Callable[[str], Peer]) -> Callable[[str, int], None]:
    """Put and get, while a transaction has a snapshot from before the first put."""

    def draw(url: str, rounds: int) -> None:
        peer = of(url)
        peer.put(TRIAL)
        peer.get(TRIAL)
        number = CURVE * min(rounds, 100) // 100
        part = max(number // 10, TRIAL)
        with psycopg.connect(url) as snapshot:
            snapshot.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            snapshot.execute("SELECT 1 FROM pg_class")
            for start in range(0, number, part):
                times = []
                for _ in range(part // TRIAL):
                    begin = time.perf_counter()
                    peer.put(TRIAL)
                    peer.get(TRIAL)
                    times.append((time.perf_counter() - begin) / TRIAL * 1e6)
                cost = statistics.quantiles(times, n=10)[0]
                print(f"  {start + part:8,}: {cost:8.1f} µs for put and get", flush=True)
            snapshot.rollback()

    return draw


MEASURES: dict[str, Callable[[str, int], None]] = {
    "single": single,
    "tasks": tasks,
    "batches": batches,
    "depth": depth,
    "snapshot-items": curve(Ours),
    "snapshot-joinable": curve(OursJoinable),
    "snapshot-lifo": curve(OursLast),
    "snapshot-priority": curve(OursByPriority),
    "snapshot-fair": curve(OursFair),
    "snapshot-tasks": curve(OurTasks),
    "snapshot-tubes": curve(OurTasksInTubes),
    "snapshot-priorities": curve(OurTasksByPriority),
}
#: Measures where a commit that waits for the disk would hide the differences.
WITHOUT_DISK = ("depth", *(name for name in MEASURES if name.startswith("snapshot-")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    options = parser.parse_args()
    stay_on_one_processor()
    for setting in ("synchronous_commit=on", "synchronous_commit=off"):
        names = [name for name in options.only if "off" in setting or name not in WITHOUT_DISK]
        for name in names:
            with running(setting) as url:
                with psycopg.connect(url) as connection:
                    version = connection.info.server_version // 10000
                load = os.getloadavg()[0]
                print(
                    f"{name}, {setting}: Python {sys.version.split()[0]}, PostgreSQL {version}, "
                    f"load average {load:.1f}"
                )
                MEASURES[name](url, options.rounds)


if __name__ == "__main__":
    main()
