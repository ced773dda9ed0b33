"""A standby of PostgreSQL takes over while producers and consumers work: ``tox -e failover``."""

from __future__ import annotations

import pytest
from brokers import postgres as servers
from faults.traffic import Traffic
from waiting import Background, until

from pressure_mp import Queue
from pressure_mp.engines import registry
from pressure_mp.exceptions import BrokerUnavailable, QueueDoesNotExistError

installing = pytest.importorskip("pressure_mp.engines.postgres.installing")

pytestmark = [pytest.mark.failover, pytest.mark.timeout(300)]


@pytest.fixture
def primary():
    with servers.Postgres("fsync=on").serving() as server:
        yield server


@pytest.fixture
def standby(primary):
    server = primary.standby()
    yield server
    server.stop()


def test_nothing_is_lost_or_comes_twice_when_a_standby_takes_over(world, primary, standby, name):
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
    options = {"reconnect": 60, "lease": 1}
    running = Traffic(name, url, options, kind=world(Queue)).start()
    running.wait_for_more()
    primary.kill()
    standby.promote()
    running.wait_for_more()
    running.finish()
    print(running)
    assert (running.lost, running.duplicated, running.invented) == (0, 0, 0)
    assert running.is_in_order


def test_a_call_at_a_standby_says_that_the_url_should_name_the_primary(standby, name):
    with pytest.raises(BrokerUnavailable, match=r"is a standby.*target_session_attrs=read-write"):
        Queue(name=name, url=standby.url, reconnect=0).put("item")


@pytest.mark.usefixtures("world")
def test_unlogged_queues_are_opened_anew_when_a_standby_takes_over(primary, name):
    installing.install(registry.parse(f"{primary.url}?schema=quick"), unlogged=True)
    standby = primary.standby()
    try:
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write&schema=quick"
        q = Queue(name=name, url=url, reconnect=60)
        q.put("lost")
        primary.kill()
        standby.promote()
        with pytest.raises(QueueDoesNotExistError):
            q.put("refused")
        Queue(name=name, url=url).put("again")
        assert q.get() == "again"
    finally:
        standby.stop()


def test_calls_on_unlogged_queues_wait_for_a_standby_to_take_over(world, primary, name):
    installing.install(registry.parse(f"{primary.url}?schema=quick"), unlogged=True)
    standby = primary.standby()
    try:
        primary.kill()
        q = world(Queue)(name=name, url=f"{standby.url}?schema=quick", reconnect=60)
        opening = Background(q.open)
        log = standby.directory / "log"
        until(lambda: "cannot access temporary or unlogged relations" in log.read_text())
        standby.promote()
        opening.result()
        q.put("item")
        assert q.get() == "item"
    finally:
        standby.stop()
