"""The tables are upgraded while clients of the former version work; clients of both versions go on.

No version has changed a table so far: these steps are made up, and go the way of any other.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from secrets import token_hex

import psycopg
import pytest
from brokers.postgres import ROLE
from waiting import Background, until

from pressure_mp import JoinableQueue, Queue, TaskQueue, exceptions
from pressure_mp.engines import registry
from pressure_mp.engines.postgres import installing, pool, schema

STEP = """
ALTER TABLE pressure_mp.queues ADD COLUMN mark bigint NOT NULL DEFAULT 0;
ALTER TABLE pressure_mp.tasks ADD COLUMN mark bigint NOT NULL DEFAULT 0;
ALTER TABLE pressure_mp.calls ADD COLUMN mark bigint;
CREATE TABLE pressure_mp.marks (queue bigint PRIMARY KEY);
CREATE INDEX tasks_marks ON pressure_mp.tasks (queue, mark);
"""
#: How many wait for a table of their own.
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
#: A program of a version of the package.
PROGRAM = """
import sys
from pressure_mp import Queue
from pressure_mp.engines.postgres import pool, schema
url, schema.VERSION = sys.argv[1], int(sys.argv[2])
pool.VERSION = schema.VERSION
q = Queue(name="jobs", url=url)
q.put(sys.argv[2])
assert q.get() == sys.argv[2]
"""


@pytest.fixture
def own(postgres):
    """A schema that no other test has, of the version 1: its name."""
    name = f"own_{token_hex(4)}"
    installing.install(registry.parse(f"{postgres.url}?schema={name}"))
    postgres.execute(schema.grant_sql(ROLE, name))
    yield name
    postgres.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """The folder of the steps: an upgraded schema is of the version 2. The clients of this
    process are of the version 1."""
    shutil.copy(str(schema.STEPS / "begin.sql"), tmp_path)
    (tmp_path / "001_to_002.sql").write_text(STEP)
    monkeypatch.setattr(schema, "STEPS", tmp_path)
    monkeypatch.setattr(pool, "VERSION", 1)
    monkeypatch.setattr(schema, "VERSION", 2)
    return tmp_path


def upgrade(postgres, own):
    installing.upgrade(registry.parse(f"{postgres.url}?schema={own}"))


def start(url, version):
    command = [sys.executable, "-c", PROGRAM, url, str(version)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Clients:
    """They put and get, each in its own queue, until they are told to end."""

    def __init__(self, url):
        self._over = threading.Event()
        self._done = {}
        plain = Queue(2, name="plain", url=url)
        joinable = JoinableQueue(name="joinable", url=url)
        tasks = TaskQueue("tasks", url=url)

        ended = threading.Event()

        def put(number):
            plain.put(number)  # which waits for space

        def get(number):
            item = plain.get()
            if item is None:
                ended.set()
            else:
                assert item == number

        def join(number):
            joinable.put(number)
            assert joinable.get() == number
            joinable.task_done()
            joinable.join()

        def task(number):
            tasks.put(number)
            task = tasks.take()
            assert task.data == number
            task.ack()

        def put_all():
            self._work(put, self._over)
            plain.put(None)

        self._all = [
            Background(put_all),
            Background(self._work, get, ended),
            Background(self._work, join, self._over),
            Background(self._work, task, self._over),
        ]

    def _work(self, call, over):
        done = self._done
        done[call] = 0
        while not over.is_set():
            call(done[call])
            done[call] += 1

    def go_on(self, number=20):
        """Each of them does so much more."""
        before = dict(self._done)
        until(lambda: self._all_did(before, number))

    def _all_did(self, before, number):
        for one in self._all:
            if not one.is_alive():
                one.result()  # which raises what went wrong
        return len(self._done) == len(self._all) and all(
            done >= before.get(call, 0) + number for call, done in dict(self._done).items()
        )

    def end(self):
        self._over.set()
        for one in self._all:
            one.result()


def test_clients_of_both_versions_work_when_the_tables_were_upgraded_under_them(
    postgres, own, steps
):
    url = f"{postgres.limited_url}?schema={own}"
    clients = Clients(url)
    clients.go_on()
    assert "is of version 1, and this package needs 2" in start(url, 2).stderr
    upgrading = [Background(lambda: upgrade(postgres, own)) for _ in range(2)]
    for one in upgrading:
        one.result()
    clients.go_on()
    for version in (1, 2):  # programs of the former one that start now are served too
        assert start(url, version).stderr == ""
    clients.end()
    assert postgres.execute(f"SELECT {own}.version()") == [(2,)]
    assert postgres.execute(f"SELECT mark FROM {own}.queues LIMIT 1") == [(0,)]


def test_an_upgrade_of_tables_waits_for_a_transaction_and_clients_do_not_wait_behind_it(
    postgres, own, steps
):
    url = f"{postgres.limited_url}?schema={own}"
    q = Queue(name="staged", url=url)
    clients = Clients(url)
    with psycopg.connect(postgres.limited_url) as connection:
        q.put("item", connection=connection)
        upgrading = Background(lambda: upgrade(postgres, own))
        until(lambda: postgres.execute(WAITING) != [(0,)])
        clients.go_on(5)
        clients.go_on(5)
        assert upgrading.is_alive()
    upgrading.result()
    clients.end()
    assert q.get(timeout=0) == "item"


def test_an_upgrade_of_tables_that_a_transaction_uses_for_long_says_so_and_does_nothing(
    postgres, own, steps
):
    begin = steps / "begin.sql"
    begin.write_text(begin.read_text().replace("1 .. 40", "1 .. 2"))
    q = Queue(name="staged", url=f"{postgres.limited_url}?schema={own}")
    with psycopg.connect(postgres.limited_url) as connection:
        q.put("item", connection=connection)
        pid = connection.info.backend_pid
        with pytest.raises(exceptions.BrokerError, match=f"transactions that do not end.* {pid}"):
            upgrade(postgres, own)
    assert postgres.execute(f"SELECT {own}.version()") == [(1,)]
    assert q.get(timeout=0) == "item"


def test_a_step_that_fails_leaves_all_as_it_was(postgres, own, steps):
    (steps / "001_to_002.sql").write_text(STEP + "SELECT 1 / 0;")
    with pytest.raises(exceptions.BrokerError, match="division by zero"):
        upgrade(postgres, own)
    assert postgres.execute(f"SELECT {own}.version()") == [(1,)]
    assert postgres.execute(f"SELECT to_regclass('{own}.marks')") == [(None,)]


def test_where_tables_are_not_logged_new_ones_are_not_either(postgres, own, request):
    address = registry.parse(f"{postgres.url}?schema={own}")
    installing.uninstall(address)
    installing.install(address, unlogged=True)
    request.getfixturevalue("steps")
    installing.install(address, unlogged=True)
    kinds = (
        "SELECT DISTINCT c.relpersistence FROM pg_class c "
        f"WHERE c.relnamespace = '{own}'::regnamespace AND c.relkind = 'r'"
    )
    assert postgres.execute(f"SELECT {own}.version()") == [(2,)]
    assert postgres.execute(kinds) == [("u",)]


def test_there_is_a_step_from_each_version_to_the_next():
    for number in range(1, schema.VERSION):
        assert (schema.STEPS / f"{number:03}_to_{number + 1:03}.sql").is_file()
