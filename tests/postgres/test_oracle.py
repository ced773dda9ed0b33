"""The PostgreSQL engine does in every history what the memory engine does."""

from __future__ import annotations

import pytest
from brokers import postgres as servers
from oracle.machine import Oracle
from oracle.running import run

pytestmark = pytest.mark.timeout(300)

#: How many histories of each discipline; the others are fewer, since less can be done there.
EXAMPLES = {"fifo": 25, "lifo": 5, "priority": 7, "fair": 7}


@pytest.fixture
def machine(postgres, monkeypatch):
    """A class of machines that work on one server."""
    from pressure_mp.engines.postgres import session

    # How long a client waits until it looks again by itself; the histories are short.
    monkeypatch.setattr(session, "TICK", 0.05)

    class Machine(Oracle):
        url = postgres.limited_url

        def no_caller_waits(self) -> None:
            binding = self.bindings[1]
            assert servers.waiters(binding.engine, binding.name) == 0

    return Machine


@pytest.mark.parametrize("discipline", EXAMPLES)
def test_the_engines_agree_on_every_history(machine, discipline):
    run(machine, discipline, EXAMPLES[discipline])
