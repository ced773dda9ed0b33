"""The disk of the write-ahead log is full: the server ends in the midst of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil

import pytest
from brokers import postgres as servers
from disks import small_disk
from waiting import Background, until

from pressure_mp import Queue, aio

#: It never removes any of its log, and never makes some ahead.
KEEPS_ALL = ("checkpoint_timeout=1h", "max_wal_size=10GB", "min_wal_size=32MB")
PART = 60_000
#: Megabytes of the log that a server makes at once.
SEGMENT = 16


@contextlib.contextmanager
def log_on_a_small_disk(server):
    """The server's log is on a disk of a few megabytes, which a call makes larger."""
    disk, place = server.directory / "small", server.directory / "data" / "pg_wal"
    with small_disk(disk, 4 * SEGMENT, "700", server.owner) as enlarge:
        for entry in list(place.iterdir()):
            shutil.move(entry, disk)
            shutil.chown(disk / entry.name, server.owner)
        place.rmdir()
        place.symlink_to(disk)
        yield lambda: enlarge(40 * SEGMENT)


@pytest.fixture
def server():
    """One that has on its disk what it acknowledged."""
    with servers.Postgres("fsync=on", "full_page_writes=on", *KEEPS_ALL).serving() as found:
        yield found


@pytest.fixture
def enlarge(server):
    server.kill()
    with log_on_a_small_disk(server) as found:
        server.start()
        yield found


def test_clients_go_on_when_it_has_space_again_and_nothing_acknowledged_is_lost(
    server, enlarge, name
):
    acknowledged, over = [], []
    options = {"url": server.limited_url, "serializer": "raw", "reconnect": 60}
    q = Queue(name=name, **options)

    def put():
        while not over:
            number = len(acknowledged).to_bytes(4, "big")
            q.put(number + os.urandom(PART))  # which cannot be compressed
            acknowledged.append(number)
        q.put(b"end")

    async def get():
        own, found = aio.Queue(name=name, **options), []
        while (item := await own.get()) != b"end":
            found.append(item[:4])
        return found

    putting, getting = Background(put), Background(asyncio.run, get())
    until(lambda: server.has_ended)  # it cannot recover without space either
    assert "No space left on device" in (server.directory / "log").read_text()
    enlarge()
    server.start()
    before = len(acknowledged)
    until(lambda: len(acknowledged) > before + 20)
    over.append(True)
    putting.result()
    assert before > 100
    assert getting.result() == acknowledged
