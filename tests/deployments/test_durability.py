"""A put that returned was confirmed by replicas, or by the disk; one that was not says so."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
from contextlib import contextmanager

import engines
import inside
import pytest
from brokers import rights
from brokers.deployments import online_replicas, replicated, started, wait_until_confirmed
from engines import Can
from waiting import Background, until

import pressure_mp
from pressure_mp import NotDurable, PressureQueue, Queue
from pressure_mp.drivers import adrive
from pressure_mp.engines.redis import durability


@pytest.fixture(scope="module", params=engines.kinds(Can.PROTOCOL))
def pair(request):
    """A primary and its replica."""
    with replicated(request.param, 1) as servers:
        yield servers


@contextmanager
def stopped(replica, primary):
    """The replica does not run, as if it were cut off; and has caught up again afterwards."""
    os.kill(replica.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(replica.process.pid, signal.SIGCONT)
        wait_until_confirmed(primary, 1)


@pytest.fixture
def impatient(monkeypatch):
    """Replicas and disks have a quarter of a second."""
    monkeypatch.setattr(durability, "CONFIRM_SECONDS", 0.25)


def test_a_put_that_returned_is_at_a_replica(pair, name):
    primary, replica = pair
    q = Queue(name=name, url=primary.url, durability="replica:1", serializer="raw")
    with replica.client() as client:
        for number in range(100):
            item = b"%d" % number
            q.put(item)
            # Looked at once, without waiting.
            assert client.lindex(f"__pressure__:{name}", 0) == item
    q.shutdown()
    with replica.client() as client:
        assert client.exists(f"__pressure__:{name}:closed")
    q.delete()


def test_a_put_that_no_replica_confirms_says_that_the_item_is_in_the_queue(pair, name, impatient):
    primary, replica = pair
    q = Queue(name=name, url=primary.url, durability="replica:1")
    with stopped(replica, primary):
        with pytest.raises(NotDurable) as caught:
            q.put("once")
        for part in ("item is in queue", name, "0 of 1 replicas", "a second time"):
            assert part in str(caught.value)
        assert pickle.loads(pickle.dumps(caught.value)).confirmed == 0
        assert isinstance(caught.value, pressure_mp.PressureError)
        # What takes items out is never held up: the item would be lost.
        assert (q.get(), q.qsize()) == ("once", 0)
        with pytest.raises(NotDurable, match=f"queue '{name}' is shut down, but 0 of 1"):
            q.shutdown()
        assert q.is_shutdown
    q.shutdown()  # again: now it is confirmed
    q.delete()


def test_a_put_that_waited_for_space_is_confirmed_too(pair, name, impatient):
    primary, replica = pair
    q = Queue(1, name, url=primary.url, durability="replica:1")
    q.put(1)
    putting = [Background(q.put, 2), Background(q.put, 3)]
    with primary.client() as client:
        until(lambda: client.info("clients")["blocked_clients"] == 2)
    with stopped(replica, primary):
        for _ in putting:
            until(q.qsize)
            q.get()
        for put in putting:
            with pytest.raises(NotDurable):
                put.result()
    q.delete()


def test_more_replicas_than_there_are_never_confirm(pair, name, impatient):
    q = PressureQueue(name, url=pair[0].url, durability="replica:2")
    q.create()
    with pytest.raises(NotDurable, match="1 of 2 replicas") as caught:
        q.put(b"x")
    assert caught.value.confirmed == 1
    assert q.get() == b"x"
    q.delete()


def test_a_call_that_is_sent_again_waits_for_what_the_first_one_did(pair, name, impatient):
    """Its connection broke between the effect and the confirmation; the new one did nothing yet."""
    primary, replica = pair
    q = PressureQueue(name, url=primary.url, durability="replica:1")
    q.create()
    q.put(b"first")
    with stopped(replica, primary):
        putting = Background(q.put, b"second")
        with primary.client() as client:
            until(lambda: [c for c in client.client_list() if c["cmd"] == "wait"])
            (waiting,) = (c for c in client.client_list() if c["cmd"] == "wait")
            client.client_kill_filter(_id=waiting["id"])
        with pytest.raises(NotDurable):
            putting.result()
    assert [q.get(), q.get_nowait()] == [b"first", b"second"]
    with pytest.raises(pressure_mp.Empty):
        q.get_nowait()
    q.delete()


def test_a_put_waits_while_its_server_is_a_replica(pair, name):
    """As a primary is that comes back after a failover: WAIT is what it refuses first."""
    primary, _ = pair
    q = Queue(name=name, url=primary.url, durability="replica:1")
    assert q.empty()
    with primary.client() as client:
        client.config_resetstat()
        client.replicaof("127.0.0.1", 1)
        putting = Background(q.put, "x")
        until(lambda: client.info("commandstats").get("cmdstat_wait", {}).get("failed_calls"))
        client.replicaof("no", "one")
    putting.result()
    assert q.get() == "x"
    wait_until_confirmed(primary, 1)
    q.delete()


def test_an_asyncio_task_waits_for_the_confirmation_too(pair, name, impatient):
    primary, replica = pair
    q = PressureQueue(name, url=primary.url, durability="replica:1")
    q.create()
    binding = inside.bind(q)

    async def put(item):
        await adrive(inside.operations(q).put(item, True, None), binding.asession())

    asyncio.run(put(b"confirmed"))
    with stopped(replica, primary), pytest.raises(NotDurable):
        asyncio.run(put(b"not confirmed"))
    assert q.length() == 2
    q.delete()


def test_a_server_with_too_few_replicas_refuses_a_put_and_nothing_is_queued(pair, name):
    primary, _ = pair
    q = Queue(name=name, url=primary.url, reconnect=0)
    with primary.client() as client:
        client.config_set("min-replicas-to-write", 2)
        with pytest.raises(pressure_mp.BrokerUnavailable, match="NOREPLICAS"):
            q.put("x")
        client.config_set("min-replicas-to-write", 0)
    assert q.empty()
    q.delete()


def test_a_put_waits_for_the_replica_that_the_server_asks_for(pair, name):
    primary, replica = pair
    q = Queue(name=name, url=primary.url)
    with primary.client() as client, replica.client() as other:
        client.config_set("min-replicas-to-write", 1)
        other.replicaof("no", "one")
        until(lambda: not online_replicas(primary))
        putting = Background(q.put, "x")
        other.replicaof("127.0.0.1", primary.port)
        putting.result()
        client.config_set("min-replicas-to-write", 0)
    assert q.get() == "x"
    wait_until_confirmed(primary, 1)
    q.delete()


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_put_that_returned_is_on_the_disk(policy, name):
    with started("valkey", "--appendonly", "yes", "--appendfsync", policy) as server:
        q = Queue(name=name, url=server.url, durability="fsync")
        for number in range(3):
            q.put(number)
            server.kill()
            server.start()
        assert [q.get() for _ in range(3)] == [0, 1, 2]


def test_a_disk_that_does_not_confirm_says_that_the_item_is_in_the_queue(name, impatient):
    with started("valkey", "--appendonly", "yes", "--appendfsync", "no") as server:
        q = Queue(name=name, url=server.url, durability="fsync")
        with pytest.raises(NotDurable, match=f"item is in queue '{name}', but no fsync"):
            q.put("x")
        assert q.get() == "x"


@pytest.mark.parametrize(
    ("kind", "error", "why"),
    [
        ("redis", pressure_mp.UnsupportedServerError, "needs Redis 7.2"),
        ("valkey", pressure_mp.BrokerError, "appendonly is disabled"),
    ],
)
def test_a_server_that_cannot_fsync_says_so_and_nothing_is_queued(kind, error, why, name, running):
    q = Queue(name=name, url=running[kind].url, durability="fsync")
    with pytest.raises(error, match=f"durability='fsync'.*nothing was done.*{why}|{why}"):
        q.put("x")
    assert q.empty()
    q.delete()


def test_memory_refuses_durability(name):
    with pytest.raises(pressure_mp.ArgumentError, match="neither replicas nor a disk"):
        Queue(name=name, url=f"memory://{name}", durability="fsync")


@pytest.mark.parametrize("wrong", ["replica", "replica:0", "replica:-1", "replica:x", "disk", ""])
def test_a_durability_that_is_none_is_an_error(wrong):
    with pytest.raises(pressure_mp.ArgumentError, match="'replica:N', 'fsync', 'off' or None"):
        Queue(durability=wrong)
    with pytest.raises(TypeError, match="durability is a str or None, not int"):
        Queue(durability=1)


def test_the_documents_user_needs_one_right_more(pair, name):
    primary, _ = pair
    with primary.client() as client:
        rights.make_user(client, name)
        q = Queue(name=name, url=rights.url(primary, name), durability="replica:1")
        with pytest.raises(pressure_mp.BrokerError, match=r"nothing was done.*wait"):
            q.put("x")
        assert q.empty()
        client.execute_command("ACL", "SETUSER", name, "+wait")
        q.put("x")
        q.delete()
        client.execute_command("ACL", "DELUSER", name)


def test_durability_goes_with_a_pickled_handle(pair, name, impatient):
    q = Queue(name=name, url=pair[0].url, durability="replica:2")
    with pytest.raises(NotDurable):
        pickle.loads(pickle.dumps(q)).put("x")
    q.delete()
