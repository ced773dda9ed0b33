"""The Redis engine does in every history what the memory engine does."""

from __future__ import annotations

import pytest
from hypothesis import Phase
from hypothesis.stateful import run_state_machine_as_test
from oracle import on_redis
from random_histories import drawn

from pressure_mp.engines.redis import binding, session

pytestmark = pytest.mark.timeout(300)

#: How many histories of each discipline; the others are fewer, since less can be done there.
EXAMPLES = {"fifo": 40, "lifo": 10, "priority": 10, "fair": 10}
STEPS = 50


@pytest.fixture
def machine(own_server, monkeypatch):
    """A class of machines that work on one server, where nobody else waits."""
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
    machine.discipline = discipline
    run_state_machine_as_test(
        machine,
        settings=drawn(
            EXAMPLES[discipline],
            stateful_step_count=STEPS,
            # A history takes a while, and some of what can go wrong depends on time: one that fails
            # is shown as it was found.
            phases=[Phase.generate],
            database=None,
        ),
    )
