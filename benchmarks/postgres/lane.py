"""What an append-only lane for tasks would bring: a trial in SQL, beside batches of a TaskQueue.

``python -m benchmarks.postgres.lane``, with the ``bench`` extra and PostgreSQL installed. In the
trial a task is a row that never changes, a take is one row for its batch, and so is an
acknowledgement; a partition whose tasks are all acknowledged is emptied by TRUNCATE. The trial has
no priorities, delays, keys, tubes, results or leases, it acknowledges whole batches, and a call
that comes twice is done twice. The figures are µs of elapsed time and bytes of the write-ahead log
for a task, over put, take and acknowledgement; medians of the rounds.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import time
from collections.abc import Callable

import psycopg

from pressure_mp import TaskQueue

from .peers import PAYLOAD
from .server import running

SIZES = (1, 16, 128, 1000)
TASKS, CALLS = 4_000, 60

SCHEMA = """
CREATE TABLE head (added bigint NOT NULL, taken bigint NOT NULL);
INSERT INTO head VALUES (0, 0);
CREATE TABLE lane (id bigint NOT NULL, data bytea NOT NULL);
CREATE INDEX ON lane (id);
CREATE TABLE claims (first bigint NOT NULL, last bigint NOT NULL, owner text NOT NULL);
CREATE TABLE done (first bigint NOT NULL, last bigint NOT NULL);

CREATE FUNCTION lane_put(items bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    start bigint;
BEGIN
    UPDATE head SET added = added + cardinality(items) RETURNING added - cardinality(items)
        INTO start;
    INSERT INTO lane SELECT start + o, v FROM unnest(items) WITH ORDINALITY u (v, o);
END $$;

CREATE FUNCTION lane_take(most bigint) RETURNS SETOF lane LANGUAGE plpgsql AS $$
DECLARE
    start bigint;
    until bigint;
BEGIN
    SELECT taken, least(taken + most, added) INTO start, until FROM head FOR UPDATE;
    UPDATE head SET taken = until;
    INSERT INTO claims VALUES (start + 1, until, 'a process');
    RETURN QUERY SELECT * FROM lane WHERE id > start AND id <= until ORDER BY id;
END $$;

CREATE FUNCTION lane_ack(a_first bigint, a_last bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO done VALUES (a_first, a_last);
$$;
"""


def _lane(connection: psycopg.Connection[tuple[object, ...]], size: int, calls: int) -> None:
    """Put, take and acknowledge; in the end the partition is emptied."""
    for _ in range(calls):
        items = [pickle.dumps(PAYLOAD) for _ in range(size)]
        connection.execute("SELECT lane_put(%b::bytea[])", (items,))
        rows = connection.execute("SELECT * FROM lane_take(%s)", (size,)).fetchall()
        assert [pickle.loads(row[1]) for row in rows] == [PAYLOAD] * size  # type: ignore[arg-type]
        connection.execute("SELECT lane_ack(%s, %s)", (rows[0][0], rows[-1][0]))
    connection.execute("TRUNCATE lane, claims, done")


def _tasks(queue: TaskQueue[bytes], size: int, calls: int) -> None:
    for _ in range(calls):
        queue.put_many([PAYLOAD] * size)
        queue.ack_many(queue.take_many(size))


def measure(url: str, rounds: int) -> None:
    queue = TaskQueue[bytes]("lane", url=f"{url}?create=1")
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        connection.execute(SCHEMA, prepare=False)
        ways: dict[str, Callable[[int, int], None]] = {
            "TaskQueue": lambda size, calls: _tasks(queue, size, calls),
            "lane": lambda size, calls: _lane(connection, size, calls),
        }
        for size in SIZES:
            calls = min(TASKS // size, CALLS)
            times: dict[str, list[float]] = {way: [] for way in ways}
            logs: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, run in ways.items():
                    before, begin = _log(connection), time.perf_counter()
                    run(size, calls)
                    times[way].append((time.perf_counter() - begin) / calls / size * 1e6)
                    logs[way].append((_log(connection) - before) / calls / size)
            for way in ways:
                spent, log = statistics.median(times[way]), statistics.median(logs[way])
                print(f"  {size:5} {way:10} {spent:8,.1f} µs, {log:8,.0f} bytes", flush=True)


def _log(connection: psycopg.Connection[tuple[object, ...]]) -> float:
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    return float(str(row[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with running("synchronous_commit=on") as url:
        print(f"load average {os.getloadavg()[0]:.1f}", flush=True)
        measure(url, options.rounds)


if __name__ == "__main__":
    main()
