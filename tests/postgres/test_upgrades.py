"""The functions are upgraded while clients of the former version work; clients of both versions go
on."""

from __future__ import annotations

import subprocess
import sys
import threading
from secrets import token_hex

import pytest
from brokers.postgres import ROLE
from waiting import Background, until

from pressure_mp import JoinableQueue, Queue, TaskQueue
from pressure_mp.engines import registry
from pressure_mp.engines.postgres import installing, pool, schema

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


def test_clients_of_both_versions_work_when_the_functions_were_upgraded_under_them(
    postgres, own, monkeypatch
):
    monkeypatch.setattr(pool, "VERSION", 1)  # of the clients of this process
    monkeypatch.setattr(schema, "VERSION", 2)
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
