"""The Redis engine does in every history what the memory engine does."""

from __future__ import annotations

import pytest
from oracle import on_redis
from oracle.running import run

from pressure_mp.engines.redis import binding, session

pytestmark = pytest.mark.timeout(300)

#: How many histories of each discipline; the others are fewer, since less can be done there.
EXAMPLES = {"fifo": 40, "lifo": 10, "priority": 10, "fair": 10}


@pytest.fixture
def machine(own_server, monkeypatch):
    """A class of machines that work on one server, where no other client waits."""
    # How long a client waits until it looks again by itself; the histories are short.
    for module in (binding, session):
        monkeypatch.setattr(module, "TICK", 0.05)

    class Machine(on_redis.RedisOracle):
        pass

    Machine.url = own_server.url
    Machine.observer = own_server.client()
    yield Machine
    Machine.observer.close()


@pytest.mark.parametrize("discipline", EXAMPLES)
def test_the_engines_agree_on_every_history(machine, discipline):
    run(machine, discipline, EXAMPLES[discipline])
