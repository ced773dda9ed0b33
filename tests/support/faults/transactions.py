"""What workers do in the fault suite whose results are in the database of their tasks."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from faults.histories import Log
from pressure_mp import Empty, PressureError, ShutDown, TaskQueue

#: Seconds of work, at most, before each step: to be killed in any of them is as likely.
_WORK = 0.01

TABLES = """
    CREATE TABLE orders (id bigint PRIMARY KEY);
    CREATE TABLE results (id bigint NOT NULL, worker text NOT NULL);
"""


class Database:
    """A program's own connection, made anew after an error of the server's."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """It is committed at the end of the block, unless that raises. Raises psycopg.Error."""
        if self._connection is None:
            self._connection = psycopg.connect(self._url)
        try:
            with self._connection.transaction():
                yield self._connection
        except psycopg.Error:
            self.close()
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def order(queue: TaskQueue[int], database: Database, numbers: Sequence[int], fails: bool) -> None:
    """Some orders, and the tasks to process them, or nothing. If the outcome of the
    transaction is unknown, the table of orders tells it."""
    with suppress(psycopg.Error, PressureError), database.transaction() as connection:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO orders VALUES (%s)", [(one,) for one in numbers])
        queue.put_many(numbers, connection=connection)
        if fails:
            raise psycopg.Rollback


def work_exactly_once(log: Log, name: str, url: str, options: dict[str, Any], seed: int) -> None:
    """Take tasks; write a result for each, and acknowledge it, in one transaction; until the
    shutdown. After an error it is as if nothing was done."""
    chance = random.Random(f"{seed} {log.client}")
    queue: TaskQueue[int] = TaskQueue.attach(name, url=url, **options)
    database = Database(url)
    while True:
        with suppress(Empty, psycopg.Error, PressureError):
            try:
                task = queue.take(0.5)
            except ShutDown:
                return
            with task, database.transaction() as connection:
                time.sleep(chance.uniform(0, _WORK))
                connection.execute("INSERT INTO results VALUES (%s, %s)", [task.data, log.client])
                time.sleep(chance.uniform(0, _WORK))
                task.ack(connection=connection)
                time.sleep(chance.uniform(0, _WORK))
