"""Producers and consumers go on while another server becomes the primary: ``tox -e failover``.

A failover copies asynchronously: what it can lose or bring back is counted and printed; what was
confirmed by every replica is never lost.
"""

from __future__ import annotations

import signal

import engines
import pytest
from brokers.deployments import clustered, sentinels
from engines import Can
from faults.traffic import Traffic
from redis.crc import key_slot
from waiting import until

from pressure_mp.engines.redis.sentinel import SentinelRoute

pytestmark = [pytest.mark.failover, pytest.mark.timeout(300)]

#: Seconds for which a put may wait: the deployment itself needs some, and ``reconnect`` is 30.
STALL = 29.0

#: What the documents advise: a primary that lost its replicas accepts nothing.
ADVISED = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "2")


@pytest.fixture(params=engines.kinds(Can.PROTOCOL))
def deployment(request):
    with sentinels(request.param, 2, *ADVISED) as found:
        yield found


@pytest.fixture(params=engines.kinds(Can.PROTOCOL))
def cluster(request):
    """Three primaries, of which the first has a replica."""
    with clustered(request.param, 3, 1) as found:
        yield found


@pytest.fixture
def traffic(name):
    """Start traffic; afterwards its figures are printed."""
    started = []

    def start(url, durability=None, tag=name):
        options = {"durability": durability, "reconnect": 30, "lease": 1}
        running = Traffic(f"{{{tag}}}", url, options).start()
        started.append(running)
        running.wait_for_more()
        return running

    yield start
    for running in started:
        print(running)


def finish(running):
    """Let it end; no item is made up, and each consumer gets the items of a producer in order."""
    running.finish()
    assert running.invented == 0
    assert running.is_in_order


def kill_and_bring_back(deployment, running):
    """SIGKILL for the primary; it comes back as a replica of the next one."""
    killed = deployment.primary
    killed.kill()
    deployment.wait_for_another(killed)
    running.wait_for_more()
    killed.options += ("--replicaof", f"127.0.0.1 {deployment.primary.port}")
    killed.start()
    until(lambda: deployment.is_settled, 60)


def test_work_goes_on_across_a_planned_failover(deployment, traffic):
    running = traffic(deployment.url)
    deployment.fail_over()
    running.wait_for_more()
    finish(running)
    assert running.longest_stall < STALL


def test_a_planned_failover_loses_nothing_that_every_replica_confirmed(deployment, traffic):
    running = traffic(deployment.url, "replica:2")
    deployment.fail_over()
    running.wait_for_more()  # once the old primary is a replica
    finish(running)
    assert running.lost == 0


def test_work_goes_on_when_the_primary_is_killed(deployment, traffic):
    running = traffic(deployment.url)
    kill_and_bring_back(deployment, running)
    finish(running)
    assert running.longest_stall < STALL


def test_a_killed_primary_loses_nothing_that_every_replica_confirmed(deployment, traffic):
    running = traffic(deployment.url, "replica:2")
    killed = deployment.primary
    killed.kill()
    deployment.wait_for_another(killed)
    killed.options += ("--replicaof", f"127.0.0.1 {deployment.primary.port}")
    killed.start()
    running.wait_for_more()
    finish(running)
    assert running.lost == 0


def test_work_goes_on_when_the_primary_falls_silent(deployment, traffic, monkeypatch):
    """It keeps its connections and answers nothing, as a machine does that is cut off."""
    monkeypatch.setattr(SentinelRoute, "silence", 2.0)
    running = traffic(deployment.url)
    silent = deployment.primary
    silent.process.send_signal(signal.SIGSTOP)
    try:
        deployment.wait_for_another(silent)
        running.wait_for_more()
    finally:
        silent.process.send_signal(signal.SIGCONT)
    finish(running)
    assert running.longest_stall < STALL


def tag_at(cluster, server):
    """A hash tag whose slot that server serves."""
    tags = (f"tag{number}" for number in range(1000))
    return next(tag for tag in tags if cluster.owner(key_slot(tag.encode())) is server)


def test_a_planned_failover_in_a_cluster_loses_nothing(cluster, traffic):
    """The primary stops until its replica has everything: CLUSTER FAILOVER."""
    primary, replica = cluster.servers[0], cluster.servers[-1]
    tag = tag_at(cluster, primary)
    running = traffic(cluster.url, tag=tag)
    with replica.client() as client:
        client.execute_command("CLUSTER", "FAILOVER")
    until(lambda: cluster.owner(key_slot(tag.encode())) is replica)
    running.wait_for_more()
    finish(running)
    assert (running.lost, running.duplicated) == (0, 0)


def test_work_goes_on_when_a_clusters_primary_is_killed(cluster, traffic):
    primary, replica = cluster.servers[0], cluster.servers[-1]
    tag = tag_at(cluster, primary)
    running = traffic(cluster.url, tag=tag)
    primary.kill()
    until(lambda: cluster.owner(key_slot(tag.encode())) is replica, 60)
    running.wait_for_more()
    finish(running)
    assert running.longest_stall < STALL


def test_a_killed_primary_of_a_cluster_loses_nothing_that_its_replica_confirmed(cluster, traffic):
    primary, replica = cluster.servers[0], cluster.servers[-1]
    tag = tag_at(cluster, primary)
    running = traffic(cluster.url, "replica:1", tag)
    primary.kill()
    until(lambda: cluster.owner(key_slot(tag.encode())) is replica, 60)
    primary.start()  # it finds that it is a replica now
    running.wait_for_more()
    finish(running)
    assert running.lost == 0
