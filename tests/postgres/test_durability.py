"""``durability="fsync"`` has each commit wait for the disk, and needs a server that has it."""

from __future__ import annotations

import pytest
from brokers import postgres as servers
from brokers.postgres import Postgres

from pressure_mp import Queue
from pressure_mp.exceptions import ArgumentError, BrokerError


@pytest.fixture
def synchronous():
    """A server that writes to its disk, and does not wait for that unless it is asked to."""
    if not servers.is_there():
        pytest.skip("psycopg or PostgreSQL is not installed")
    server = Postgres("fsync=on", "synchronous_commit=off", "wal_writer_delay=10s")
    try:
        server.start()
        servers.prepare(server)
        yield server
    finally:
        server.stop()


def unwritten(server):
    """How many bytes of the log the disk does not have."""
    asking = "SELECT pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()"
    return int(server.execute(asking)[0][0])


def test_what_is_put_durably_is_on_the_disk_when_the_put_returns(synchronous, name):
    hasty = Queue(name=name, url=synchronous.limited_url)
    durable = Queue(name=name, url=synchronous.limited_url, durability="fsync")
    synchronous.execute("CHECKPOINT")
    hasty.put("x" * 300)
    assert unwritten(synchronous) > 300
    durable.put("y")
    assert unwritten(synchronous) < 300
    assert [hasty.get(), durable.get()] == ["x" * 300, "y"]


def test_a_server_without_fsync_refuses(postgres, name):
    with pytest.raises(BrokerError, match="fsync=off"):
        Queue(name=name, url=postgres.limited_url, durability="fsync").put(1)


def test_replicas_are_the_servers_affair(postgres, name):
    with pytest.raises(ArgumentError, match="synchronous_standby_names"):
        Queue(name=name, url=postgres.limited_url, durability="replica:1")
