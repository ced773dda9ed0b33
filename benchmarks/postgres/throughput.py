"""Items a second of several processes at a time: first all put, then all get the items.

``python -m benchmarks.postgres.throughput``, with the ``bench`` extra and PostgreSQL installed.
Each queue is used as a program would that has many items, one call for each of them; the figure is
the median of the rounds.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import statistics
import time
from abc import ABC, abstractmethod
from multiprocessing.synchronize import Barrier

import psycopg

from pressure_mp import Queue

from .peers import PAYLOAD, OurWorker, Skipping
from .server import measure_each_setting

PROCESSES = 4
_fork = multiprocessing.get_context("fork")


class Way(ABC):
    """How one queue is used by several processes: the object is made before these are."""

    title = ""
    #: Of each process, in a round.
    number = 300

    def __init__(self, url: str) -> None:
        self.url = url

    def close(self) -> None:  # noqa: B027 - most need nothing
        """Nothing is put or got any more."""

    @abstractmethod
    def put(self, start: Barrier, end: Barrier) -> None:
        """Put so many, between the two."""

    @abstractmethod
    def get(self, start: Barrier, end: Barrier) -> None:
        """Get so many, or until none is left."""


class Named(Way):
    """``Queue(name=…)``: a put returns when the broker has the item."""

    title = "Queue(name)"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.queue = self.make(f"{url}?create=1")

    def make(self, url: str) -> Queue[bytes]:
        return Queue(name="throughput", url=url)

    def close(self) -> None:
        self.queue.close()

    def put(self, start: Barrier, end: Barrier) -> None:
        start.wait()
        for _ in range(self.number):
            self.queue.put(PAYLOAD)
        self.queue.flush()
        end.wait()

    def get(self, start: Barrier, end: Barrier) -> None:
        start.wait()
        for _ in range(self.number):
            self.queue.get()
        end.wait()


class Anonymous(Named):
    """``Queue()``: puts go in the background, and all are waited for in the end."""

    title = "Queue()"
    number = 2_000

    def make(self, url: str) -> Queue[bytes]:
        return Queue(url=url)


class OfPeer(Way):
    """A peer of its own for each process; its calls are measured one at a time."""

    @abstractmethod
    def peer(self) -> Skipping | OurWorker:
        """A peer, connected."""

    def put(self, start: Barrier, end: Barrier) -> None:
        peer = self.peer()
        start.wait()
        peer.put(self.number)
        end.wait()

    def get(self, start: Barrier, end: Barrier) -> None:
        peer = self.peer()
        start.wait()
        peer.get(self.number)
        end.wait()


class ByHand(OfPeer):
    """``SKIP LOCKED`` by hand."""

    title = Skipping.title

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.peer().close()  # the table is there

    def peer(self) -> Skipping:
        return Skipping(self.url)


class Tasks(OfPeer):
    """``TaskQueue(name)``: ``put``; and ``take(ack=)`` of the task before, as ``TaskQueue.run``
    with one worker does."""

    title = "TaskQueue(name)"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.peer()  # the schema and the queue are there

    def peer(self) -> OurWorker:
        return OurWorker(self.url, self.title)


class TasksByHand(Way):
    """A task is taken with ``SKIP LOCKED`` by hand, noted as taken, and removed by a second
    statement."""

    title = "tasks, SKIP LOCKED, by hand"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE tasks_by_hand (id bigserial PRIMARY KEY, taken_by text, task bytea)"
            )
            connection.execute("CREATE INDEX ON tasks_by_hand (id) WHERE taken_by IS NULL")

    def put(self, start: Barrier, end: Barrier) -> None:
        with psycopg.connect(self.url, autocommit=True, prepare_threshold=0) as connection:
            start.wait()
            for _ in range(self.number):
                connection.execute(
                    "INSERT INTO tasks_by_hand (task) VALUES (%b)", (pickle.dumps(PAYLOAD),)
                )
            end.wait()

    def get(self, start: Barrier, end: Barrier) -> None:
        with psycopg.connect(self.url, autocommit=True, prepare_threshold=0) as connection:
            start.wait()
            for _ in range(self.number):
                row = connection.execute(
                    "UPDATE tasks_by_hand SET taken_by = %s WHERE id = (SELECT id FROM "
                    "tasks_by_hand WHERE taken_by IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP "
                    "LOCKED) RETURNING id, task",
                    (self.title,),
                ).fetchone()
                assert row is not None
                pickle.loads(row[1])
                connection.execute("DELETE FROM tasks_by_hand WHERE id = %s", (row[0],))
            end.wait()


class PgqueuerRuns(Way):
    """``Queries.enqueue``, and ``QueueManager.run``, which takes ten at a time, until none is
    left."""

    title = "pgqueuer"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        asyncio.run(self._install())

    async def _install(self) -> None:
        from pgqueuer.queries import Queries

        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await Queries.from_psycopg_connection(connection).install()

    def put(self, start: Barrier, end: Barrier) -> None:
        asyncio.run(self._put(start, end))

    async def _put(self, start: Barrier, end: Barrier) -> None:
        from pgqueuer.queries import Queries

        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            queries = Queries.from_psycopg_connection(connection)
            start.wait()
            for _ in range(self.number):
                await queries.enqueue("throughput", PAYLOAD)
            end.wait()

    def get(self, start: Barrier, end: Barrier) -> None:
        asyncio.run(self._get(start, end))

    async def _get(self, start: Barrier, end: Barrier) -> None:
        from pgqueuer.models import Job
        from pgqueuer.qm import QueueManager
        from pgqueuer.queries import Queries
        from pgqueuer.types import QueueExecutionMode

        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            manager = QueueManager(Queries.from_psycopg_connection(connection))

            @manager.entrypoint("throughput")
            async def process(job: Job) -> None:
                pass

            start.wait()
            await manager.run(mode=QueueExecutionMode.drain)
            end.wait()


WAYS = (Named, Anonymous, ByHand, PgqueuerRuns, Tasks, TasksByHand)


def _seconds(way: Way, does: str) -> float:
    start, end = _fork.Barrier(PROCESSES + 1), _fork.Barrier(PROCESSES + 1)
    processes = [
        _fork.Process(target=getattr(way, does), args=(start, end)) for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    start.wait(60)
    begin = time.perf_counter()
    end.wait(60)
    taken = time.perf_counter() - begin
    for process in processes:
        process.join()
    return taken


def measure(url: str, rounds: int) -> None:
    """Four processes put, and then four get, 100 bytes each."""
    ways = [make(url) for make in WAYS]
    rates: dict[str, tuple[list[float], list[float]]] = {way.title: ([], []) for way in ways}
    for _ in range(rounds):
        for way in ways:
            for does, found in zip(("put", "get"), rates[way.title], strict=True):
                found.append(PROCESSES * way.number / _seconds(way, does))
    for way in ways:
        way.close()
    for title, (puts, gets) in rates.items():
        put, get = statistics.median(puts), statistics.median(gets)
        print(f"  {title:28} put {put:8,.0f}/s, get {get:8,.0f}/s")


if __name__ == "__main__":
    measure_each_setting(__doc__, measure)
