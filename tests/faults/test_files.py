"""Processes that share a file of queues, and are killed at any moment."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing

from programs import of_files
from started import quickly

from pressure_mp import Queue

#: Processes at a time, every second of which gets.
PROCESSES = 8
#: How many are killed.
SHORT, LONG = 24, 300


def test_killed_processes_double_no_item_and_leave_the_file_whole(tmp_path, seed, long, figures):
    chance = random.Random(seed)
    url = f"sqlite://{tmp_path}/queues"
    logs, alive, kills = [], [], [0, 0]

    def start(role):
        log = tmp_path / f"log-{len(logs)}"
        logs.append(log)
        run = (of_files.put, of_files.get)[role]
        process = quickly.Process(target=run, args=(url, str(len(logs)), str(log)))
        process.start()
        alive.append((process, role))

    for number in range(PROCESSES):
        start(number % 2)
    for _ in range(LONG if long else SHORT):
        time.sleep(chance.uniform(0.01, 0.3))
        process, role = alive.pop(chance.randrange(len(alive)))
        process.kill()
        process.join()
        kills[role] += 1
        start(role)
    for process, role in alive:
        process.kill()
        process.join()
        kills[role] += 1

    said = {"try": set(), "put": set(), "got": []}
    for log in logs:
        for line in log.read_text().splitlines(keepends=True) if log.exists() else ():
            what, _, item = line.rstrip("\n").partition(" ")
            if line.endswith("\n"):
                said[what].add(item) if what != "got" else said[what].append(item)
    queue = Queue(name="queue", url=url)
    found = list(said["got"])
    while not queue.empty():
        found += queue.get_many(1000)
    missing = said["put"] - {*found}
    figures.note(
        kills_of_putters=kills[0],
        kills_of_getters=kills[1],
        confirmed=len(said["put"]),
        got=len(said["got"]),
        taken_by_the_killed=len(missing),
        unconfirmed_and_there=len({*found} - said["put"]),
    )
    assert len(found) == len({*found})
    assert {*found} <= said["try"]
    assert (
        len(missing) <= 5 * kills[1]
    )  # items that a get took whose process was killed before it logged them
    assert said["put"]
    with closing(sqlite3.connect(tmp_path / "queues")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
