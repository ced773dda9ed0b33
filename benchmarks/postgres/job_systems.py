"""The job queues that ``benchmarks.postgres.jobs`` compares, each as its documentation uses it.

Each of them puts jobs that are texts, and runs a handler that sleeps, on as many jobs at a time as
there are workers. What a system sets up once is in ``install``.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from importlib import metadata
from typing import Any

import psycopg

from pressure_mp import TaskQueue, aio

#: Seconds that a handler takes.
HANDLING = 0.001
#: Told of a job that a handler has begun.
Note = Callable[[str], None]
Putting = Callable[[list[str]], None]


class System(ABC):
    """A job queue at one server, in the process that uses it."""

    title = ""
    distribution = ""

    def __init__(self, url: str) -> None:
        self.url = url

    @classmethod
    def version(cls) -> str:
        return metadata.version(cls.distribution) if cls.distribution else ""

    @abstractmethod
    def install(self) -> None: ...

    @abstractmethod
    def putting(self) -> Putting:
        """Connect, and return what puts jobs in one call."""

    @abstractmethod
    def work(self, workers: int, note: Note) -> None:
        """Handle jobs until this process is killed."""


class Ours(System):
    """``put`` or ``put_many``, and ``run`` with threads."""

    title = "pressure_mp, threads"

    def queue(self) -> TaskQueue[str]:
        return TaskQueue("jobs", url=f"{self.url}?create=1", serializer="json", ttr=30)

    def install(self) -> None:
        self.queue()

    def putting(self) -> Putting:
        queue = self.queue()
        return lambda jobs: queue.put(jobs[0]) if len(jobs) == 1 else queue.put_many(jobs)

    def work(self, workers: int, note: Note) -> None:
        def handle(task: Any) -> None:
            note(task.data)
            time.sleep(HANDLING)

        self.queue().run(handle, concurrency=workers)


class OursOfAsyncio(Ours):
    """The same with ``aio.TaskQueue.run``."""

    title = "pressure_mp, asyncio"

    def work(self, workers: int, note: Note) -> None:
        async def handle(task: Any) -> None:
            note(task.data)
            await asyncio.sleep(HANDLING)

        asyncio.run(aio.TaskQueue.of(self.queue()).run(handle, concurrency=workers))


class Loop:
    """An event loop in a thread, for a program that puts without one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)


class Procrastinate(System):
    """``defer_async`` or ``batch_defer_async``, and ``run_worker_async``, which deletes jobs."""

    title = "procrastinate"
    distribution = "procrastinate"

    def app(self, note: Note | None = None) -> tuple[Any, Any]:
        from procrastinate import App, PsycopgConnector

        app = App(connector=PsycopgConnector(conninfo=self.url, max_size=20))

        @app.task(name="job")
        async def handle(job: str) -> None:
            assert note is not None
            note(job)
            await asyncio.sleep(HANDLING)

        return app, handle

    def install(self) -> None:
        async def install() -> None:
            app, _ = self.app()
            async with app.open_async():
                await app.schema_manager.apply_schema_async()

        asyncio.run(install())

    def putting(self) -> Putting:
        loop, (app, handle) = Loop(), self.app()
        loop.run(app.open_async().__aenter__())

        def put(jobs: list[str]) -> None:
            if len(jobs) == 1:
                loop.run(handle.defer_async(job=jobs[0]))
            else:
                loop.run(handle.batch_defer_async(*({"job": job} for job in jobs)))

        return put

    def work(self, workers: int, note: Note) -> None:
        async def work() -> None:
            app, _ = self.app(note)
            async with app.open_async():
                await app.run_worker_async(concurrency=workers, delete_jobs="successful")

        asyncio.run(work())


class Pgqueuer(System):
    """``enqueue``, and ``QueueManager.run``, which takes as many as half of the workers in a call:
    it refuses more."""

    title = "pgqueuer"
    distribution = "pgqueuer"

    async def queries(self) -> Any:
        from pgqueuer.queries import Queries

        connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
        return Queries.from_psycopg_connection(connection)

    def install(self) -> None:
        async def install() -> None:
            await (await self.queries()).install()

        asyncio.run(install())

    def putting(self) -> Putting:
        loop = Loop()
        queries = loop.run(self.queries())

        def put(jobs: list[str]) -> None:
            n = len(jobs)
            loop.run(queries.enqueue(["job"] * n, [job.encode() for job in jobs], [0] * n))

        return put

    def work(self, workers: int, note: Note) -> None:
        async def work() -> None:
            from pgqueuer.qm import QueueManager

            manager = QueueManager(await self.queries())

            @manager.entrypoint("job")
            async def handle(job: Any) -> None:
                note(job.payload.decode())
                await asyncio.sleep(HANDLING)

            await manager.run(
                dequeue_timeout=timedelta(seconds=1),
                batch_size=max(workers // 2, 1),
                max_concurrent_tasks=workers,
            )

        asyncio.run(work())


class Pgmq(System):
    """The functions ``pgmq.send_batch``, ``read`` for all idle threads, and ``delete`` of done
    jobs: pgmq has no workers, and this is a loop by hand. It asks again 5 ms after it found
    none."""

    title = "pgmq's SQL, by hand"
    distribution = "pgmq"

    @staticmethod
    def version() -> str:
        from pgmq.install import get_embedded_sql_version

        return get_embedded_sql_version()

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True, prepare_threshold=0)

    def install(self) -> None:
        from pgmq.install import get_embedded_install_sql

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(get_embedded_install_sql())
            connection.execute("SELECT pgmq.create('jobs')")

    def putting(self) -> Putting:
        connection = self.connect()

        def put(jobs: list[str]) -> None:
            texts = [json.dumps(job) for job in jobs]
            connection.execute("SELECT * FROM pgmq.send_batch('jobs', %s::jsonb[])", (texts,))

        return put

    def work(self, workers: int, note: Note) -> None:
        connection, running = self.connect(), dict[Future[None], int]()

        def handle(job: str) -> None:
            note(job)
            time.sleep(HANDLING)

        with ThreadPoolExecutor(workers) as pool:
            while True:
                done = [running.pop(one) for one in list(running) if one.done()]
                if done:
                    connection.execute("SELECT * FROM pgmq.delete('jobs', %s::bigint[])", (done,))
                idle = workers - len(running)
                rows = connection.execute(
                    "SELECT msg_id, message FROM pgmq.read('jobs', 30, %s)", (idle,)
                ).fetchall()
                running |= {pool.submit(handle, job): number for number, job in rows}
                if not rows:
                    time.sleep(0.005 if not running else HANDLING / 2)


class Awa(System):
    """``insert`` or ``insert_many_copy``, and the client's workers."""

    title = "awa"
    distribution = "awa-pg"

    def client(self) -> Any:
        from awa import AsyncClient

        return AsyncClient(self.url)

    def install(self) -> None:
        async def install() -> None:
            await self.client().migrate()

        asyncio.run(install())

    def putting(self) -> Putting:
        loop = Loop()

        async def connect() -> Any:
            return self.client()

        client = loop.run(connect())

        def put(jobs: list[str]) -> None:
            args = [{"job": job} for job in jobs]
            if len(jobs) == 1:
                loop.run(client.insert(args[0], kind="job", queue="jobs"))
            else:
                loop.run(client.insert_many_copy(args, kind="job", queue="jobs"))

        return put

    def work(self, workers: int, note: Note) -> None:
        async def work() -> None:
            client = self.client()

            @client.task(dict, kind="job", queue="jobs")
            async def handle(job: Any) -> None:
                note(job.args["job"])
                await asyncio.sleep(HANDLING)

            await client.start([("jobs", workers)])
            await asyncio.Event().wait()

        asyncio.run(work())


SYSTEMS: dict[str, type[System]] = {
    "threads": Ours,
    "asyncio": OursOfAsyncio,
    "procrastinate": Procrastinate,
    "pgqueuer": Pgqueuer,
    "pgmq": Pgmq,
    "awa": Awa,
}
