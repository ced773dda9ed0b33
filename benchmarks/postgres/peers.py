"""The queues that are compared, each as its documentation says it is used.

A peer does so many operations when it is told to: a peer of asyncio does them in one coroutine,
so that no event loop has to be started for each.
"""

from __future__ import annotations

import asyncio
import pickle
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from datetime import timedelta
from importlib import metadata
from operator import itemgetter
from typing import Any

import psycopg

from pressure_mp import FairQueue, JoinableQueue, LifoQueue, PriorityQueue, Queue, TaskQueue

PAYLOAD = b"x" * 100


class Peer(ABC):
    """One queue at one server."""

    title = ""
    distribution = ""

    def version(self) -> str:
        return metadata.version(self.distribution) if self.distribution else ""

    @abstractmethod
    def put(self, number: int) -> None: ...

    @abstractmethod
    def get(self, number: int) -> None: ...

    def close(self) -> None:  # noqa: B027 - most need nothing
        """Nothing is put or got any more."""


class Ours(Peer):
    """``Queue(name=…)``: a put returns when the broker has the item."""

    title = "pressure_mp"

    def __init__(self, url: str, name: str = "bench") -> None:
        self.queue = Queue(name=name, url=f"{url}?create=1")

    def put(self, number: int) -> None:
        for _ in range(number):
            self.queue.put(PAYLOAD)

    def get(self, number: int) -> None:
        for _ in range(number):
            self.queue.get()


class OursInBatches(Ours):
    """``put_many`` and ``get_many`` of 500."""

    title = "pressure_mp, batches of 500"
    size = 500

    def put(self, number: int) -> None:
        for start in range(0, number, self.size):
            self.queue.put_many([PAYLOAD] * min(self.size, number - start))

    def get(self, number: int) -> None:
        while number:
            number -= len(self.queue.get_many(min(self.size, number)))


class Skipping(Peer):
    """A table, ``INSERT``, and ``DELETE … FOR UPDATE SKIP LOCKED LIMIT 1 RETURNING``, with psycopg:
    written by hand, without an order that holds, without a bound, once or never over a connection
    that breaks."""

    title = "SKIP LOCKED, by hand"

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS by_hand (id bigserial PRIMARY KEY, item bytea NOT NULL)"
        )

    def put(self, number: int) -> None:
        for _ in range(number):
            self._connection.execute(
                "INSERT INTO by_hand (item) VALUES (%b)", (pickle.dumps(PAYLOAD),)
            )

    def get(self, number: int) -> None:
        for _ in range(number):
            row = self._connection.execute(
                "DELETE FROM by_hand WHERE id = (SELECT id FROM by_hand ORDER BY id LIMIT 1 "
                "FOR UPDATE SKIP LOCKED) RETURNING item"
            ).fetchone()
            assert row is not None
            pickle.loads(row[0])


class Pgmq(Peer):
    """``pgmq.send`` and ``pgmq.pop`` with psycopg; the message is a JSON text."""

    title = "pgmq"

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS pgmq")
        self._connection.execute("SELECT pgmq.create('bench')")
        self._message = '"' + PAYLOAD.decode() + '"'

    def version(self) -> str:
        row = self._connection.execute(
            "SELECT extversion FROM pg_extension WHERE extname = 'pgmq'"
        ).fetchone()
        assert row is not None
        return str(row[0])

    def put(self, number: int) -> None:
        for _ in range(number):
            self._connection.execute("SELECT pgmq.send('bench', %s::jsonb)", (self._message,))

    def get(self, number: int) -> None:
        for _ in range(number):
            assert self._connection.execute("SELECT * FROM pgmq.pop('bench')").fetchone()


class InLoop(Peer):
    """A peer whose calls are coroutines."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._run(self.open(url))

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._loop.run_until_complete(coroutine)

    def put(self, number: int) -> None:
        self._run(self.aput(number))

    def get(self, number: int) -> None:
        self._run(self.aget(number))

    def close(self) -> None:
        self._run(self.aclose())
        self._loop.close()

    @abstractmethod
    async def open(self, url: str) -> None: ...

    @abstractmethod
    async def aclose(self) -> None: ...

    @abstractmethod
    async def aput(self, number: int) -> None: ...

    @abstractmethod
    async def aget(self, number: int) -> None: ...


class Pgqueuer(InLoop):
    """``Queries.enqueue``; ``Queries.dequeue`` with ``Queries.log_jobs``, which removes the job."""

    title = "pgqueuer"
    distribution = "pgqueuer"

    async def open(self, url: str) -> None:
        from uuid import uuid4

        from pgqueuer.queries import EntrypointExecutionParameter, Queries

        self._connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        self._queries = Queries.from_psycopg_connection(self._connection)
        await self._queries.install()
        self._entrypoints = {"bench": EntrypointExecutionParameter(0)}
        self._manager = uuid4()

    async def aclose(self) -> None:
        await self._connection.close()

    async def aput(self, number: int) -> None:
        for _ in range(number):
            await self._queries.enqueue("bench", PAYLOAD)

    async def aget(self, number: int) -> None:
        for _ in range(number):
            jobs = await self._queries.dequeue(
                1, self._entrypoints, self._manager, None, timedelta(seconds=30)
            )
            await self._queries.log_jobs([(jobs[0], "successful", None)])


class Procrastinate(InLoop):
    """``JobManager.defer_job_async``; ``fetch_job`` with ``finish_job``, which deletes the job."""

    title = "procrastinate"
    distribution = "procrastinate"

    async def open(self, url: str) -> None:
        from procrastinate import App, PsycopgConnector
        from procrastinate.jobs import Job, Status

        self._app = App(connector=PsycopgConnector(conninfo=url))
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()
        self._manager = self._app.job_manager
        self._worker = await self._manager.register_worker()
        self._done = Status.SUCCEEDED
        self._job = Job(
            queue="bench",
            lock=None,
            queueing_lock=None,
            task_name="bench",
            task_kwargs={"item": PAYLOAD.decode()},
        )

    async def aclose(self) -> None:
        await self._app.close_async()

    async def aput(self, number: int) -> None:
        for _ in range(number):
            await self._manager.defer_job_async(self._job)

    async def aget(self, number: int) -> None:
        for _ in range(number):
            job = await self._manager.fetch_job(["bench"], self._worker)
            assert job is not None
            await self._manager.finish_job(job, self._done, delete_job=True)


class OurTasks(Peer):
    """``TaskQueue(name)``: ``put``; and ``take`` with ``ack``."""

    title = "pressure_mp, tasks"

    def __init__(self, url: str, name: str = "bench") -> None:
        self.queue = TaskQueue(name, url=f"{url}?create=1")

    def put(self, number: int) -> None:
        for _ in range(number):
            self.queue.put(PAYLOAD)

    def get(self, number: int) -> None:
        for _ in range(number):
            self.queue.take().ack()


class OurWorker(OurTasks):
    """``put``; and ``take(ack=)`` of the task before, as one worker of
    ``TaskQueue.run`` does."""

    title = "pressure_mp, tasks, as its workers do"

    def __init__(self, url: str, name: str = "worker") -> None:
        super().__init__(url, name)

    def get(self, number: int) -> None:
        task = self.queue.take()
        for _ in range(number - 1):
            task = self.queue.take(ack=task)
        task.ack()


class OursJoinable(Ours):
    """``JoinableQueue(name=…)``: ``put``; and ``get`` with ``task_done``."""

    title = "pressure_mp, joinable"
    queue: JoinableQueue[bytes]

    def __init__(self, url: str, name: str = "joinable") -> None:
        self.queue = JoinableQueue(name=name, url=f"{url}?create=1")

    def get(self, number: int) -> None:
        for _ in range(number):
            self.queue.get()
            self.queue.task_done()


class OursLast(Ours):
    """``LifoQueue(name=…)``."""

    title = "pressure_mp, last in, first out"

    def __init__(self, url: str, name: str = "lifo") -> None:
        self.queue = LifoQueue(name=name, url=f"{url}?create=1")


class InTurn(Peer):
    """A queue of items of several keys, which are put in turn."""

    queue: PriorityQueue[tuple[int, bytes]] | FairQueue[tuple[int, bytes]]
    keys: int

    def put(self, number: int) -> None:
        for at in range(number):
            self.queue.put((at % self.keys, PAYLOAD))

    def get(self, number: int) -> None:
        for _ in range(number):
            self.queue.get()


class OursByPriority(InTurn):
    """``PriorityQueue(name=…, key=…)``."""

    title = "pressure_mp, ten priorities"
    keys = 10

    def __init__(self, url: str, name: str = "priority") -> None:
        self.queue = PriorityQueue(name=name, key=itemgetter(0), url=f"{url}?create=1")


class OursFair(InTurn):
    """``FairQueue(key, name=…)``."""

    title = "pressure_mp, three keys"
    keys = 3

    def __init__(self, url: str, name: str = "fair") -> None:
        self.queue = FairQueue(itemgetter(0), name=name, url=f"{url}?create=1")


class OurTasksInTubes(OurTasks):
    """Tasks of three tubes in turn, taken from each."""

    title = "pressure_mp, tasks in three tubes"

    def put(self, number: int) -> None:
        for at in range(number):
            self.queue.put(PAYLOAD, tube=f"tube {at % 3}")

    def get(self, number: int) -> None:
        for at in range(number):
            self.queue.take(tube=f"tube {at % 3}").ack()


class OurTasksByPriority(OurTasks):
    """Tasks of ten priorities in turn."""

    title = "pressure_mp, tasks of ten priorities"

    def put(self, number: int) -> None:
        for at in range(number):
            self.queue.put(PAYLOAD, priority=at % 10)
