"""Workers that are killed and a server that is killed: a task that is put, and acknowledged, in
transactions of the program's has its result in the same database exactly once."""

from __future__ import annotations

import random
import signal
import time

import psycopg
import pytest
from brokers import postgres as servers
from faults.transactions import TABLES, Database, order
from waiting import Background, until

from pressure_mp import TaskQueue

pytestmark = pytest.mark.timeout(900)

WORKERS = 4
#: How many orders there are in one transaction.
BATCH = 5
OPTIONS = {"lease": 1.0, "reconnect": 60}
#: Seconds between two strikes, on average.
PAUSE = 0.1
#: Seconds in which everything is worked off, once nothing happens any more.
QUIET = 60.0


@pytest.fixture
def database():
    """A server that has on its disk what it committed, so that it may be killed."""
    with servers.Postgres(*servers.Postgres.durable).serving() as server:
        server.execute(TABLES)
        yield server


def test_every_order_has_its_result_once(database, name, nursery, seed, long, figures):
    kills, crashes = (200, 10) if long else (12, 1)
    chance = random.Random(seed)
    queue = TaskQueue.create(name, url=database.url, **OPTIONS)
    arguments = {"name": name, "url": database.url, "options": OPTIONS, "seed": seed}
    for _ in range(WORKERS):
        nursery.start("work_exactly_once", **arguments)
    over = False

    def order_all():
        draws, tried = random.Random(f"{seed} orders"), 0
        own = Database(database.url)
        while not over:
            order(queue, own, range(tried, tried + BATCH), fails=draws.random() < 0.2)
            tried += BATCH
            while not over and count(database, "orders", "results") > 10 * BATCH:
                time.sleep(0.01)
        own.close()
        return tried

    ordering = Background(order_all)
    strikes = ["kill"] * kills + ["crash"] * crashes
    chance.shuffle(strikes)
    for strike in strikes:
        time.sleep(chance.uniform(0, 2 * PAUSE))
        if strike == "kill":
            chance.choice(nursery.running("work_exactly_once")).send(signal.SIGKILL)
            nursery.start("work_exactly_once", **arguments)
        else:
            database.kill()
            time.sleep(chance.uniform(0, 1))
            database.start()
            before = results(database)
            until(lambda before=before: results(database) > before)
        nursery.check()
    over = True
    tried = ordering.result()
    until(lambda: count(database, "orders", "results") == 0, QUIET)
    queue.shutdown()
    nursery.wait(QUIET)
    transitions = queue.stats().transitions
    figures.note(
        seed=seed,
        tried_orders=tried,
        results=results(database),
        kills=kills,
        crashes=crashes,
        taken_again=transitions["R-T"] - transitions["T-X"],
    )
    assert missing(database, "orders", "results") == missing(database, "results", "orders") == []
    assert database.execute("SELECT id FROM results GROUP BY id HAVING count(*) > 1") == []
    assert transitions["X-R"] == transitions["T-X"] == results(database)


def results(database):
    return count(database, "results")


def count(database, table, without=None):
    """The number of rows of a table, less that of the table ``without``; while the server is away,
    it is asked again."""
    found = []

    def ask():
        try:
            found[:] = [
                database.execute(f"SELECT count(*) FROM {one}")[0][0]
                for one in (table, without)
                if one
            ]
        except psycopg.OperationalError:
            return False
        return True

    until(ask)
    return found[0] - sum(found[1:])


def missing(database, table, other):
    return database.execute(f"SELECT id FROM {table} EXCEPT SELECT id FROM {other}")
