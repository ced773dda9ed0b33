"""What it costs a server that programs wait: commands or transactions, and bytes, a second.

``python -m benchmarks.idle``, with the ``test`` extra and PostgreSQL installed; ``--only redis`` or
``postgres``, ``--rows`` and ``--seconds`` choose. Each row has a process of its own, and the server
counts. Redis and Valkey count the commands in scripts as well: these are left out here.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from pressure_mp import Executor, Queue, TaskQueue, aio

from .postgres.server import running as running_postgres
from .server import running

#: The commands that scripts never call.
_BY_CLIENTS = ("evalsha", "eval", "blmove", "brpop", "client", "script", "hello", "multi", "exec")
#: Seconds after which nothing is new any more: connections, scripts, the first looks.
_WARM = 8.0


class Cost(NamedTuple):
    """Commands or transactions, and bytes where the server counts them."""

    calls: float
    size: float


def _in_threads(number: int, begin: Callable[[int], Callable[[], object]]) -> None:
    for one in range(number):
        threading.Thread(target=begin(one), daemon=True).start()


def _get(url: str, one: int) -> None:
    Queue[int](name=f"idle-{one}", url=url).get()


def _threads(url: str, number: int) -> object:
    return _in_threads(number, lambda one: Queue[int](name=f"idle-{one}", url=url).get)


def _threads_of_one(url: str, number: int) -> object:
    return _in_threads(number, lambda one: Queue[int](name="idle", url=url).get)


def _processes(url: str, number: int) -> object:
    for one in range(number):
        multiprocessing.get_context("fork").Process(
            target=_get, args=(url, one), daemon=True
        ).start()
    return None


def _tasks(url: str, number: int) -> object:
    async def get() -> None:
        await asyncio.gather(*(aio.Queue(name=f"idle-{i}", url=url).get() for i in range(number)))

    return _in_threads(1, lambda one: lambda: asyncio.run(get()))


def _workers(url: str, number: int) -> object:
    tasks = TaskQueue[int]("idle", url=url)
    return _in_threads(1, lambda one: lambda: tasks.run(print, concurrency=number))


def _executor(url: str, number: int) -> object:
    executor = Executor(number, url=url)
    list(executor.map(abs, range(number)))
    return executor


def _producers(url: str, number: int) -> object:
    def begin(one: int) -> Callable[[], object]:
        queue = Queue[int](1, name=f"idle-{one}", url=url)
        queue.put(0)
        return lambda: queue.put(1)

    return _in_threads(number, begin)


def _descriptors(url: str, number: int) -> object:
    queues = [Queue[int](name=f"idle-{one}", url=url) for one in range(number)]
    return [queues, [queue.fileno() for queue in queues]]


ROWS: dict[str, tuple[Callable[[str, int], object], int]] = {
    "1 thread in `get`": (_threads, 1),
    "10 threads, each at a queue of its own": (_threads, 10),
    "100 threads, each at a queue of its own": (_threads, 100),
    "100 threads at one queue": (_threads_of_one, 100),
    "10 processes, each at a queue of its own": (_processes, 10),
    "1,000 tasks of asyncio, each at a queue of its own": (_tasks, 1000),
    "`TaskQueue.run` with 10 workers": (_workers, 10),
    "`Executor(4)`": (_executor, 4),
    "10 threads in `put`, each at a full queue of its own": (_producers, 10),
    "20 queues with `fileno()`": (_descriptors, 20),
}


def _idle(url: str, row: str) -> None:
    """What the process of a row does, until it is told to end."""
    begin, number = ROWS[row]
    kept = begin(url, number)
    print("begun", flush=True)
    sys.stdin.read()
    del kept


def _measure(url: str, row: str, read: Callable[[], Cost], seconds: float) -> Cost:
    command = [sys.executable, "-m", "benchmarks.idle", "--idle", url, row]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"begun\n":
            raise RuntimeError(f"the program of the row {row!r} ended")
        time.sleep(_WARM)
        before, begin = read(), time.monotonic()
        time.sleep(seconds)
        after, took = read(), time.monotonic() - begin
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
    return Cost((after.calls - before.calls) / took, (after.size - before.size) / took)


def _of_redis(rows: list[str], seconds: float, program: str | None) -> dict[str, Cost]:
    found = {}
    for row in rows:
        with running(program) as site, site.client() as client:

            def read() -> Cost:
                counted: dict[str, Any] = client.info("commandstats")
                stats = client.info("stats")
                calls = sum(
                    told["calls"]
                    for name, told in counted.items()
                    if name.removeprefix("cmdstat_").partition("|")[0] in _BY_CLIENTS
                )
                return Cost(calls, stats["total_net_input_bytes"] + stats["total_net_output_bytes"])

            found[row] = _measure(site.url, row, read, seconds)
    return found


def _of_postgres(rows: list[str], seconds: float) -> dict[str, Cost]:
    found = {}
    for row in rows:
        with running_postgres() as url, psycopg.connect(url, autocommit=True) as connection:

            def read() -> Cost:
                connection.execute("SELECT pg_stat_clear_snapshot()")
                told = connection.execute(
                    "SELECT xact_commit + xact_rollback FROM pg_stat_database"
                    " WHERE datname = current_database()"
                ).fetchone()
                assert told is not None
                return Cost(told[0], 0)

            found[row] = _measure(f"{url}?create=1", row, read, seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["redis", "postgres"])
    parser.add_argument("--program", help="the server, in the place of Valkey")
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--idle", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.idle:
        _idle(*chosen.idle)
        return
    redis = (
        {} if chosen.only == "postgres" else _of_redis(chosen.rows, chosen.seconds, chosen.program)
    )
    postgres = {} if chosen.only == "redis" else _of_postgres(chosen.rows, chosen.seconds)
    print("| waits | commands/s | KB/s | PostgreSQL: transactions/s |")
    print("| --- | --- | --- | --- |")
    for row in chosen.rows:
        told = (
            [f"{redis[row].calls:.1f}", f"{redis[row].size / 1000:.1f}"]
            if row in redis
            else ["", ""]
        )
        told.append(f"{postgres[row].calls:.1f}" if row in postgres else "")
        print(f"| {row} | {' | '.join(told)} |")


if __name__ == "__main__":
    main()
