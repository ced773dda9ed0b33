"""What queues in a file cost, beside other libraries that keep queues in files of SQLite.

``python -m benchmarks.sqlite``, with the ``bench`` extra; ``--only``, ``--rounds`` and ``--folder``
choose. The libraries take turns in each round; figures are medians of the rounds. Times of the
processor count all processes that take part, system and user. The other libraries have their
own settings: persist-queue flushes each commit, litequeue only the log's moves, huey nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import secrets
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pressure_mp import Queue
from pressure_mp.engines.sqlite import files

from .machine import load

_context = multiprocessing.get_context("fork")
_ITEM = b"x" * 100
#: Calls of a trial, and items of a batch.
_CALLS, _BATCH = 1000, 500
#: Items of the long run, how many of them wait at a time, and of how many one figure is.
_MANY, _BACKLOG, _PART = 1_000_000, 10_000, 100_000


class Peer:
    """One queue in a new file."""

    title = "pressure_mp"
    size = 1

    def __init__(self, folder: str, item: bytes = _ITEM) -> None:
        self.path = os.path.join(folder, secrets.token_hex(8))
        self.item = item
        self.open()

    def open(self) -> None:
        self.queue = Queue[bytes](name="bench", url=f"sqlite://{self.path}")

    def put(self) -> None:
        self.queue.put(self.item)

    def get(self) -> Any:
        return self.queue.get()


class Batches(Peer):
    title, size = "pressure_mp, batches", _BATCH

    def put(self) -> None:
        self.queue.put_many([self.item] * _BATCH)

    def get(self) -> Any:
        return self.queue.get_many(_BATCH)


class Flushed(Peer):
    title = 'pressure_mp, durability="fsync"'

    def open(self) -> None:
        self.queue = Queue(name="bench", url=f"sqlite://{self.path}", durability="fsync")


class PersistQueue(Peer):
    title = "persist-queue"

    def open(self) -> None:
        from persistqueue import SQLiteQueue

        self.queue = SQLiteQueue(self.path, auto_commit=True, multithreading=True)


class LiteQueue(Peer):
    title = "litequeue"

    def open(self) -> None:
        from litequeue import LiteQueue

        self.queue = LiteQueue(self.path)
        self.text = self.item.decode()

    def put(self) -> None:
        self.queue.put(self.text)

    def get(self) -> Any:
        message = self.queue.pop()
        if message is not None:
            self.queue.done(message.message_id)
        return message


class Huey(Peer):
    title = "huey"

    def open(self) -> None:
        from huey.storage import SqliteStorage

        self.queue = SqliteStorage("bench", self.path)

    def put(self) -> None:
        self.queue.enqueue(self.item)

    def get(self) -> Any:
        return self.queue.dequeue()


def _processor() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


class Figures:
    """Figures of several, by what they are of."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[float]]] = {}

    def add(self, title: str, **figures: float) -> None:
        for name, figure in figures.items():
            self._found.setdefault(title, {}).setdefault(name, []).append(figure)

    def show(self) -> None:
        """Each median, and its ratio to that of the first."""
        first = next(iter(self._found.values()))
        for title, found in self._found.items():
            told = [
                f"{name.replace('_', ' ')} {statistics.median(figures):9.1f} "
                f"({statistics.median(figures) / statistics.median(first[name]):5.2f}x)"
                for name, figures in found.items()
            ]
            print(f"  {title:34} {', '.join(told)}", flush=True)


def _single(folder: str, rounds: int) -> None:
    """Microseconds of a put, and of a get, of an item of 100 bytes."""
    _alone(folder, rounds, (Peer, Batches, PersistQueue, LiteQueue, Huey))


def _alone(folder: str, rounds: int, kinds: Sequence[Callable[[str], Peer]]) -> None:
    peers, figures = [kind(folder) for kind in kinds], Figures()
    for _ in range(rounds):
        for peer in peers:
            for name in ("put", "get"):
                call = getattr(peer, name)
                began, used = time.perf_counter(), _processor()
                for _ in range(_CALLS // peer.size or 1):
                    call()
                number = max(_CALLS, peer.size) / 1e6
                figures.add(
                    peer.title,
                    **{
                        f"{name}_took": (time.perf_counter() - began) / number,
                        f"{name}_used": (_processor() - used) / number,
                    },
                )
    figures.show()


def _pages(folder: str, rounds: int) -> None:
    """The same, with pages of several sizes."""
    for size in (100, 1000):
        print(f"  items of {size} bytes")
        peers = []
        for page in (4096, 8192, 16384):
            files._PAGE = page
            for kind in (Peer, Batches):
                peer = kind(folder, b"x" * size)
                peer.title = f"{peer.title}, pages of {page}"
                peer.put()
                peer.get()
                peers.append(peer)
        files._PAGE = 8192
        _alone(folder, rounds, [lambda folder, peer=peer: peer for peer in peers])  # type: ignore[misc]


def _get(peer: Peer) -> Any:
    """Get an item, and look every 10 ms where a get cannot wait."""
    if isinstance(peer.queue, Queue):
        return peer.queue.get()
    while True:
        with suppress(_empty()):
            if (
                found := peer.get() if not _is_persist(peer) else peer.queue.get(False)
            ) is not None:
                return found
        time.sleep(0.01)


def _is_persist(peer: Peer) -> bool:
    return isinstance(peer, PersistQueue)


def _empty() -> type[Exception]:
    from persistqueue.exceptions import Empty as PersistEmpty

    return PersistEmpty


def _answer(there: Peer, back: Peer) -> None:
    there.open()
    back.open()
    while True:
        _get(there)
        back.put()


def _hand_off(folder: str, rounds: int) -> None:
    """Microseconds from a put until a process that waits has the item, there and back, halved.
    Where a get of the others waits, it looks every 10 ms: so does this for them."""
    figures = Figures()
    for _ in range(rounds):
        for kind in (Peer, PersistQueue, LiteQueue, Huey):
            there, back = kind(folder), kind(folder)
            process = _context.Process(target=_answer, args=(there, back), daemon=True)
            process.start()
            times = []
            for number in range(60):
                began = time.perf_counter()
                there.put()
                _get(back)
                if number >= 10:
                    times.append((time.perf_counter() - began) / 2e-6)
                time.sleep(0.005)
            figures.add(kind.title, took=statistics.median(times))
            process.kill()
            process.join()
    figures.show()


class Full:
    """A row in a transaction that SQLite flushes itself."""

    title = "synchronous=FULL"

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, secrets.token_hex(8))
        self.open()
        self.do("CREATE TABLE rows(id INTEGER PRIMARY KEY, item BLOB)")

    def open(self) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=60)
        self.do = connection.execute
        self.do("PRAGMA journal_mode=WAL")
        self.do("PRAGMA synchronous=FULL")

    def put(self) -> None:
        self.do("BEGIN IMMEDIATE")
        self.do("INSERT INTO rows(item) VALUES (?)", (_ITEM,))
        self.do("COMMIT")


def _put_for(peer: Any, seconds: float, told: Any) -> None:
    peer.open()
    times = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        peer.put()
        times.append(time.perf_counter() - began)
    told.put(times)


def _flush(folder: str, rounds: int) -> None:
    """Puts a second that are on the disk, and milliseconds of the 99th of 100 calls."""
    for processes in (1, 8):
        print(f"  {processes} processes")
        figures = Figures()
        for _ in range(rounds):
            for kind in (Flushed, Full):
                peer, told = kind(folder), _context.SimpleQueue()
                peer.put()
                started = [
                    _context.Process(target=_put_for, args=(peer, 2.0, told))
                    for _ in range(processes)
                ]
                for process in started:
                    process.start()
                times = [one for _ in started for one in told.get()]
                for process in started:
                    process.join()
                late = statistics.quantiles(times, n=100)[98] * 1e3
                figures.add(kind.title, puts_a_second=len(times) / 2.0, p99=late)
        figures.show()


def _growth(folder: str, rounds: int) -> None:
    """Megabytes of the file while a million items pass through it, of which 10,000 wait."""
    peer = Batches(folder)
    for put in range(0, _MANY, _BATCH):
        peer.put()
        if put >= _BACKLOG:
            peer.get()
        if (put + _BATCH) % _PART == 0:
            sizes = [os.stat(peer.path + end).st_size / 1e6 for end in ("", "-wal")]
            print(f"  {put + _BATCH:9,} items: file {sizes[0]:.2f} MB, log {sizes[1]:.2f} MB")


MEASURES: dict[str, Callable[[str, int], None]] = {
    "single": _single,
    "pages": _pages,
    "hand-off": _hand_off,
    "flush": _flush,
    "growth": _growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--folder", help="where the files are, on the disk to measure")
    options = parser.parse_args()
    for name in options.only:
        measure = MEASURES[name]
        print(f"{name}: {measure.__doc__}")
        print(
            f"  Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, load {load()}",
            flush=True,
        )
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            measure(folder, options.rounds)


if __name__ == "__main__":
    main()
